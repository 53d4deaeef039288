//! [`Subject`]: an object as it is to be and as it was, and what is known beside it.

use serde_json::Value;

use crate::environment::Environment;
use crate::place::Place;

/// What is judged.
pub(crate) struct Subject<'a> {
    object: &'a Value,
    old: Option<&'a Value>,
    pub(crate) environment: &'a Environment,
}

impl<'a> Subject<'a> {
    /// `old` is what is stored, and `None` of an object that is made.
    pub(crate) fn new(
        object: &'a Value,
        old: Option<&'a Value>,
        environment: &'a Environment,
    ) -> Self {
        Self { object, old, environment }
    }

    pub(crate) fn object(&self) -> &'a Value {
        self.object
    }

    pub(crate) fn old(&self) -> Option<&'a Value> {
        self.old
    }

    pub(crate) fn is_new(&self) -> bool {
        self.old.is_none()
    }

    pub(crate) fn root(&self) -> Place<'a> {
        Place::root(self.object)
    }

    pub(crate) fn spec(&self) -> Place<'a> {
        self.root().field("spec")
    }

    pub(crate) fn old_spec(&self) -> Option<Place<'a>> {
        self.old.map(|old| Place::root(old).field("spec"))
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        name_of(self.object)
    }

    /// Whether this object of the environment is not the stored one of the subject.
    pub(crate) fn is_other(&self, object: &Value) -> bool {
        let own = self.name();
        own.is_none() || name_of(object) != own
    }
}

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// Whether an update changes nothing but metadata and status, of which the main resource takes the
/// metadata alone.
pub(crate) fn only_metadata_differs(old: &Value, new: &Value) -> bool {
    let is_judged = |name: &str| !matches!(name, "metadata" | "status" | "apiVersion" | "kind");
    match (old.as_object(), new.as_object()) {
        (Some(one), Some(other)) => {
            let names = one.keys().chain(other.keys()).filter(|name| is_judged(name));
            names.into_iter().all(|name| one.get(name) == other.get(name))
        }
        _ => old == new,
    }
}
