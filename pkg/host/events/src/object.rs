//! The object of an event ([`ObjectRef`]), and its identity: equal events have one name in every process, so a new leader counts on what the one before it wrote.

/// The object of an event (`involvedObject`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Group and version, as `v1` or `coordination.k8s.io/v1`.
    pub api_version: String,
    /// Kind, as `Node`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects, whose events land in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`; empty when unknown, and then `kubectl describe` may not show the event.
    pub uid: String,
}

impl ObjectRef {
    /// A Node.
    pub fn node(name: &str, uid: &str) -> Self {
        Self::new("v1", "Node", "", name, uid)
    }

    /// A Lease.
    pub fn lease(namespace: &str, name: &str, uid: &str) -> Self {
        Self::new("coordination.k8s.io/v1", "Lease", namespace, name, uid)
    }

    /// Any object; `namespace` is empty for cluster-scoped ones.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// Namespace of events about this object.
    pub(crate) fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }

    /// `namespace/name`, or the name alone: for logs.
    pub(crate) fn display_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

/// How serious an event is; Kubernetes knows these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something happened that is part of normal operation.
    Normal,
    /// Something an operator may have to act upon.
    Warning,
}

impl EventType {
    /// The value of the field `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Longest name the server accepts (DNS subdomain).
const NAME_LIMIT: usize = 253;

/// `<object>.<hex>`, as client-go names Events; the object's name is cut where the whole would be too
/// long.
pub(crate) fn event_name(object: &str, series: u64) -> String {
    let suffix = format!(".{series:x}");
    let mut end = object.len().min(NAME_LIMIT - suffix.len());
    while !object.is_char_boundary(end) {
        end -= 1;
    }
    // A label may not end in a dash, nor may there be an empty one.
    let object = object[..end].trim_end_matches(['.', '-']);
    format!("{object}{suffix}")
}

/// FNV-1a, which no release of a library changes.
struct Hash(u64);

impl Hash {
    fn add(&mut self, text: &str) {
        // The end of a text counts, too: "ab" and "c" are not "a" and "bc".
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A number for all that makes events equal; `message` is `None` for those that are folded.
pub(crate) fn fingerprint(
    component: &str,
    object: &ObjectRef,
    event_type: EventType,
    reason: &str,
    message: Option<&str>,
) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    let ObjectRef { api_version, kind, namespace, name, uid } = object;
    for text in [component, api_version, kind, namespace, name, uid, event_type.as_str(), reason] {
        hash.add(text);
    }
    if let Some(message) = message {
        hash.add(message);
    }
    hash.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_object_and_the_series_in_hex() {
        assert_eq!(event_name("node-1", 0x17f0_abcd), "node-1.17f0abcd");
    }

    #[test]
    fn a_name_too_long_is_cut_without_leaving_an_empty_label() {
        let series = 0x17f0_1234_5678_9abc; // 16 digits
        let name = event_name(&"a".repeat(253), series);
        assert_eq!(name.len(), 253);
        assert!(name.ends_with(".17f0123456789abc"));
        let cut_at_a_dash = format!("{}-.-{}", "a".repeat(233), "b".repeat(17));
        assert_eq!(event_name(&cut_at_a_dash, series), format!("{}.{series:x}", "a".repeat(233)));
    }

    #[test]
    fn the_number_is_the_same_in_every_release() {
        let node = ObjectRef::node("n", "u");
        let number =
            fingerprint("cidrAllocator", &node, EventType::Normal, "Full", Some("no block"));
        assert_eq!(number, expected(b"cidrAllocator\0v1\0Node\0\0n\0u\0Normal\0Full\0no block\0"));
    }

    /// FNV-1a as its authors write it.
    fn expected(bytes: &[u8]) -> u64 {
        let offset = 14_695_981_039_346_656_037_u64;
        bytes
            .iter()
            .fold(offset, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211))
    }

    #[test]
    fn different_events_have_different_numbers() {
        let (node, other) = (ObjectRef::node("n", "u"), ObjectRef::node("n", "v"));
        let all = [
            fingerprint("a", &node, EventType::Normal, "Full", Some("m")),
            fingerprint("b", &node, EventType::Normal, "Full", Some("m")),
            fingerprint("a", &other, EventType::Normal, "Full", Some("m")),
            fingerprint("a", &node, EventType::Warning, "Full", Some("m")),
            fingerprint("a", &node, EventType::Normal, "Failed", Some("m")),
            fingerprint("a", &node, EventType::Normal, "Full", Some("n")),
            fingerprint("a", &node, EventType::Normal, "Full", Some("")),
            fingerprint("a", &node, EventType::Normal, "Full", None),
        ];
        let distinct: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
