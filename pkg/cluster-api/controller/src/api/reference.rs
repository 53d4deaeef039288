//! [`Reference`]: an object that a Cluster names, in either dialect.

pub(crate) use aws_network::Dialect;
use serde::{Deserialize, Serialize};

/// An object in the namespace of the Cluster: v1alpha2 names its `apiVersion`, v1beta2 its
/// `apiGroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    /// `group/version`; the version is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_group: Option<String>,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Reference {
    /// The group; empty for core.
    pub(crate) fn group(&self) -> &str {
        if let Some(group) = &self.api_group {
            return group;
        }
        let version = self.api_version.as_deref().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The dialect that earlier releases took from the form of a reference.
    pub(crate) fn dialect_by_form(&self) -> Dialect {
        if self.api_group.is_some() { Dialect::V1Beta2 } else { Dialect::V1Alpha2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Reference {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_reference_of_either_dialect_names_a_group_and_shows_its_dialect() {
        let older =
            read(serde_json::json!({"apiVersion": "g.io/v1alpha2", "kind": "K", "name": "n",
            "namespace": "elsewhere", "uid": "u"}));
        assert_eq!((older.group(), older.dialect_by_form()), ("g.io", Dialect::V1Alpha2));
        let newer = read(serde_json::json!({"apiGroup": "g.io", "kind": "K", "name": "n"}));
        assert_eq!((newer.group(), newer.dialect_by_form()), ("g.io", Dialect::V1Beta2));
        let core = read(serde_json::json!({"apiVersion": "v1", "kind": "K", "name": "n"}));
        assert_eq!(core.group(), "");
    }
}
