//! [`Reference`]: an object that a Cluster names, in either dialect.

use serde::{Deserialize, Serialize};

use super::GROUP;

/// In which words an object is written. Cluster API's v1alpha2 and v1beta2 say the same things by
/// other names, and some defaults differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// v1alpha2, Cluster API 0.2.
    V1Alpha2,
    /// v1beta2, Cluster API since 1.11.
    V1Beta2,
}

impl Dialect {
    /// The dialect of an `apiVersion`: everything newer than v1alpha2 speaks as v1beta2 does.
    pub(crate) fn of_version(api_version: &str) -> Self {
        if api_version.ends_with("/v1alpha2") { Self::V1Alpha2 } else { Self::V1Beta2 }
    }

    /// The dialect of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::V1Alpha2, Self::V1Beta2].into_iter().find(|dialect| dialect.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V1Alpha2 => "v1alpha2",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// `group/version` of a Cluster of this dialect.
    pub(crate) fn cluster_api_version(self) -> String {
        format!("{GROUP}/{}", self.name())
    }
}

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
