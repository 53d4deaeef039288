//! [`FieldOwners`]: which elements of a status belong to other field managers. A status that several programs
//! write is applied without force: what the server refuses for that is left out for a while
//! (`rule:a-shared-status-is-shared`). Without I/O.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

/// The prefix of conditions and properties that no other program writes on purpose.
pub(crate) const OWN_PREFIX: &str = "infra-controller-manager/";
/// How long an element of another field manager is left out.
const LEFT_OUT_FOR: Duration = Duration::from_secs(10 * 60);

/// The elements that are left out, by the UID of the object.
#[derive(Default)]
pub(crate) struct FieldOwners(Mutex<HashMap<Arc<str>, HashMap<Element, Instant>>>);

/// A part of a status that has one owner: a field, or in a list the element of a type or name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Element {
    field: Box<str>,
    name: Option<Box<str>>,
}

/// The result of a refused apply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Another field manager took an element with [`OWN_PREFIX`]: the next apply takes it back.
    pub(crate) is_ours: bool,
    /// Elements of others.
    pub(crate) others: Vec<Element>,
    /// Those of them that were not left out before.
    pub(crate) new: Vec<Element>,
}

impl Element {
    /// Reads the path of a refused field, such as `.status.conditions[type="Ready"].reason`.
    fn of_path(path: &str) -> Option<Self> {
        let path = path.strip_prefix(".status.")?;
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (field, rest) = path.split_at(end);
        let name =
            rest.strip_prefix('[').and_then(|key| key.split_once("=\"")?.1.split_once("\"]"));
        Some(Self { field: field.into(), name: name.map(|(name, _)| name.into()) })
    }

    fn is_ours(&self) -> bool {
        self.name.as_deref().is_some_and(|name| name.starts_with(OWN_PREFIX))
    }

    /// Takes the element out of `{"status": {…}}`.
    fn take_from(&self, fields: &mut Value) {
        let Some(status) = fields["status"].as_object_mut() else { return };
        match (&self.name, status.get_mut(&*self.field)) {
            (Some(name), Some(Value::Array(elements))) => {
                elements.retain(|it| it["type"] != **name && it["name"] != **name);
            }
            _ => drop(status.remove(&*self.field)),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or(&self.field))
    }
}

impl FieldOwners {
    /// Takes what is left out at this time from the fields of an apply.
    pub(crate) fn strip(&self, uid: &str, fields: &mut Value, now: Instant) {
        let of_objects = self.0.lock();
        let left_out = of_objects.get(uid).into_iter().flatten();
        let left_out = left_out.filter(|(_, until)| **until > now);
        left_out.for_each(|(element, _)| element.take_from(fields));
    }

    /// Takes in an apply that was refused for the fields at these paths.
    pub(crate) fn refused(&self, uid: &Arc<str>, paths: &[String], now: Instant) -> Refused {
        let (mut is_ours, mut others, mut new) = (false, Vec::new(), Vec::new());
        let mut of_objects = self.0.lock();
        for element in paths.iter().filter_map(|path| Element::of_path(path)) {
            if element.is_ours() {
                is_ours = true;
            } else if !others.contains(&element) {
                let left_out = of_objects.entry(Arc::clone(uid)).or_default();
                if left_out.insert(element.clone(), now + LEFT_OUT_FOR).is_none() {
                    new.push(element.clone());
                }
                others.push(element);
            }
        }
        Refused { is_ours, others, new }
    }

    /// An apply without what is left out was accepted: elements whose time has passed were in it, and are
    /// owned by us.
    pub(crate) fn accepted(&self, uid: &str, sent: Instant) {
        let mut of_objects = self.0.lock();
        if let Some(left_out) = of_objects.get_mut(uid) {
            left_out.retain(|_, until| *until > sent);
            if left_out.is_empty() {
                of_objects.remove(uid);
            }
        }
    }

    /// The object is gone, or no longer ours.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OWN: &str = r#".status.conditions[type="infra-controller-manager/Healthy"].status"#;
    const OTHER: &str = r#".status.conditions[type="ControlPlaneHealthy"].reason"#;

    fn fields() -> Value {
        json!({"status": {
            "conditions": [{"type": "infra-controller-manager/Healthy"}, {"type": "ControlPlaneHealthy"}],
            "properties": [{"name": "a"}, {"name": "b"}],
            "version": {"kubernetes": "v1"},
        }})
    }

    #[test]
    fn an_element_of_another_manager_is_left_out_for_ten_minutes_and_reported_once() {
        let (owners, uid, start) = (FieldOwners::default(), Arc::from("u"), Instant::now());
        let paths: Vec<_> =
            [OTHER, OTHER, r#".status.properties[name="a"].value"#, ".status.version.kubernetes"]
                .map(str::to_owned)
                .into();
        let refused = owners.refused(&uid, &paths, start);
        let names: Vec<_> = refused.new.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["ControlPlaneHealthy", "a", "version"]);
        assert_eq!((refused.is_ours, &refused.others), (false, &refused.new));
        let sent = |after: Duration| {
            let mut fields = fields();
            owners.strip(&uid, &mut fields, start + after);
            fields
        };
        let left = json!({"status": {
            "conditions": [{"type": "infra-controller-manager/Healthy"}],
            "properties": [{"name": "b"}],
        }});
        assert_eq!(sent(LEFT_OUT_FOR.mul_f64(0.99)), left);
        assert_eq!(sent(LEFT_OUT_FOR), fields());
        let again = owners.refused(&uid, &paths, start + LEFT_OUT_FOR);
        assert_eq!((again.others.len(), again.new.len()), (3, 0));
        owners.accepted(&uid, start + 2 * LEFT_OUT_FOR);
        assert_eq!(owners.refused(&uid, &paths, start + 3 * LEFT_OUT_FOR).new.len(), 3);
        owners.forget(&uid);
        assert!(owners.0.lock().is_empty());
    }

    #[test]
    fn what_is_ours_by_its_name_is_never_left_out() {
        let (owners, uid, now) = (FieldOwners::default(), Arc::from("u"), Instant::now());
        let refused = owners.refused(&uid, &[OWN.to_owned(), "no path".to_owned()], now);
        assert_eq!(refused, Refused { is_ours: true, others: vec![], new: vec![] });
        let mut sent = fields();
        owners.strip(&uid, &mut sent, now);
        assert_eq!(sent, fields());
    }
}
