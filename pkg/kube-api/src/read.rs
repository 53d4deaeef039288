//! Readers of single fields for `#[serde(deserialize_with = "…")]`, each with at most one
//! allocation.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Unexpected, Visitor};

/// Reads a string straight into an `Arc<str>`; serde's own reader goes through a `Box<str>`.
pub(crate) fn shared_text<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(Arc::from(text))
        }
    }
    from.deserialize_str(Text)
}

/// Reads a `resourceVersion`: decimal text without a sign, comparable as a number by the API's
/// contract.
///
/// # Errors
/// When the field is not a string of digits that fits 64 bits.
pub fn resource_version<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    struct Version;
    impl Visitor<'_> for Version {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a resource version: a string of digits")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            // `u64::from_str` takes a leading plus sign, which is no resource version.
            let digits = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
            let value = if digits { text.parse().ok() } else { None };
            value.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
    from.deserialize_str(Version)
}

/// Key of an object: `namespace/name`, or the name of one without a namespace.
pub fn object_key(namespace: Option<&str>, name: Arc<str>) -> Arc<str> {
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}").into(),
        _ => name,
    }
}

/// True when the field is there and not null, whatever it holds.
pub(crate) fn presence<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(from)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_object_has_its_namespace_if_there_is_one() {
        for (namespace, key) in [(Some("ns"), "ns/a"), (Some(""), "a"), (None, "a")] {
            assert_eq!(&*object_key(namespace, "a".into()), key, "{namespace:?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused_with_what_belongs_there() {
        let mut five = serde_json::Deserializer::from_str("5");
        let refusal = shared_text(&mut five).unwrap_err().to_string();
        assert!(refusal.contains("expected a string at"), "{refusal}");
        let mut five = serde_json::Deserializer::from_str("5");
        let refusal = resource_version(&mut five).unwrap_err().to_string();
        assert!(refusal.contains("expected a resource version: a string of digits"), "{refusal}");
    }
}
