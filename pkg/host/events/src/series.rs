//! The name of a series of equal events, which is the same in every process: a new leader counts on
//! what the one before it wrote (rule:a-series-outlives-its-leader).
//!
//! Used by [`crate::correlate`].

use crate::object::{EventType, ObjectRef};

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
pub(crate) fn of(
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
    fn the_number_is_the_same_in_every_release() {
        let node = ObjectRef::node("n", "u");
        let number = of("cidrAllocator", &node, EventType::Normal, "Full", Some("no block"));
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
    fn whatever_tells_two_events_apart_makes_two_numbers() {
        let (node, other) = (ObjectRef::node("n", "u"), ObjectRef::node("n", "v"));
        let all = [
            of("a", &node, EventType::Normal, "Full", Some("m")),
            of("b", &node, EventType::Normal, "Full", Some("m")),
            of("a", &other, EventType::Normal, "Full", Some("m")),
            of("a", &node, EventType::Warning, "Full", Some("m")),
            of("a", &node, EventType::Normal, "Failed", Some("m")),
            of("a", &node, EventType::Normal, "Full", Some("n")),
            of("a", &node, EventType::Normal, "Full", Some("")),
            of("a", &node, EventType::Normal, "Full", None),
        ];
        let distinct: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
