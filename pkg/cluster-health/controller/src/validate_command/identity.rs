//! [`Identity`]: which object an object is.

use std::fmt;

use kube_api::printable;
use serde_json::Value;

/// Group, version, kind, namespace and name, as far as an object says them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Identity {
    pub(super) fn of(object: &Value) -> Self {
        let text = |path: &str| {
            object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// The stored object of the same name.
    pub(super) fn find<'a>(&self, objects: &'a [Value]) -> Option<&'a Value> {
        let mut objects = objects.iter().filter(|_| !self.name.is_empty());
        objects.find(|object| Self::of(object) == *self)
    }
}

/// `Machine/mc-1`, `KubeFedCluster/fed/one`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, other| if text.is_empty() { other } else { printable(text) };
        f.write_str(&or(&self.kind, "(no kind)".to_owned()))?;
        if !self.namespace.is_empty() {
            write!(f, "/{}", printable(&self.namespace))?;
        }
        write!(f, "/{}", or(&self.name, "(no name)".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_known_by_kind_namespace_and_name() {
        let object = |namespace: &str, name: &str| json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"namespace": namespace, "name": name}});
        let (one, unnamed) = (Identity::of(&object("n", "one")), Identity::of(&object("", "")));
        let stored = [object("n", "two"), object("m", "one"), object("n", "one"), object("", "")];
        assert_eq!(one.find(&stored), Some(&stored[2]));
        assert_eq!(one.find(&stored[..2]), None);
        assert_eq!(unnamed.find(&stored), None, "the API server makes its name");
        assert_eq!([one, unnamed].map(|it| it.to_string()), ["K/n/one", "K/(no name)"]);
        assert_eq!(Identity::of(&json!(7)).to_string(), "(no kind)/(no name)");
        assert_eq!(Identity::of(&object("n\n", "a\nvalid")).to_string(), "K/n?/a?valid");
    }
}
