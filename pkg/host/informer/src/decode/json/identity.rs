//! Whose JSON it is that cannot be read, as far as that can be read.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use kube_api::object_key;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::unreadable::Unreadable;

/// What names an object.
pub(super) struct Identity {
    key: Arc<str>,
    uid: String,
    version: u64,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "type")]
    kind: String,
    object: Named,
}

#[derive(Deserialize)]
struct Named {
    metadata: Map<String, Value>,
}

/// The type of a line of a watch and the identity of its object.
pub(super) fn of_line(line: &[u8]) -> (String, Option<Identity>) {
    match serde_json::from_slice(line) {
        Ok(Line { kind, object }) => (kind, Identity::of(&object)),
        Err(_) => (String::new(), None),
    }
}

/// The identity of an object.
pub(super) fn of_object(text: &[u8]) -> Option<Identity> {
    Identity::of(&serde_json::from_slice(text).ok()?)
}

impl Identity {
    fn of(Named { metadata }: &Named) -> Option<Self> {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        Some(Self {
            key: object_key(text("namespace"), text("name")?.into()),
            uid: text("uid").unwrap_or_default().to_owned(),
            version: text("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0),
        })
    }

    pub(super) fn unreadable(self, cause: impl Error + Send + Sync + 'static) -> Unreadable {
        let Self { key, uid, version } = self;
        Unreadable { key, uid, version, cause: Box::new(cause) }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {:?}", self.key)
    }
}
