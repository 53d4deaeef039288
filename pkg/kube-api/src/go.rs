//! Conventions of Go that show in the API of Kubernetes: null for what is empty, names of platforms,
//! durations.

mod duration;

use std::env::consts::{ARCH, OS};

use serde::{Deserialize, Deserializer};

pub use duration::{DurationError, GoDuration};

/// For `#[serde(deserialize_with = …)]`: `null` is the value's default. Go writes `null` for an
/// empty list or map.
///
/// # Errors
/// What the value itself cannot be read for.
pub fn null_is_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The platform of this program as `GOOS/GOARCH`, such as `linux/amd64`.
pub fn platform() -> String {
    format!("{OS}/{}", architecture(ARCH))
}

/// Go's name of an architecture, by Rust's.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Object {
        #[serde(deserialize_with = "null_is_default")]
        items: Vec<u8>,
    }

    #[test]
    fn null_reads_as_an_absent_field_does_and_a_wrong_type_is_an_error() {
        for (object, items) in [
            (json!({}), Some(vec![])),
            (json!({"items": null}), Some(vec![])),
            (json!({"items": [1]}), Some(vec![1])),
            (json!({"items": "one"}), None),
        ] {
            let read: Result<Object, _> = serde_json::from_value(object.clone());
            assert_eq!(read.ok().map(|read| read.items), items, "{object}");
        }
    }

    #[test]
    fn architectures_have_the_names_of_go() {
        for (rust, go) in
            [("x86_64", "amd64"), ("aarch64", "arm64"), ("x86", "386"), ("s390x", "s390x")]
        {
            assert_eq!(architecture(rust), go);
        }
        assert!(platform().starts_with(&format!("{OS}/")), "{}", platform());
    }
}
