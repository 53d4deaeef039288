//! [`Schema`]: the fields that a controller knows of one kind.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The typed view of one kind. Types name the fields that the controller uses; what they do not
/// name stays in the object and survives every write (`rule:unknown-fields-survive`).
pub trait Schema: Debug + Send + Sync + 'static {
    /// The fields beside `apiVersion`, `kind`, `metadata` and `status`: for most kinds a struct
    /// with the one field `spec`.
    type Body: Clone + Serialize + DeserializeOwned + Send + Sync;

    /// The field `status`; `()` for a kind that has none. The default stands for an absent one.
    type Status: Clone + Default + Serialize + DeserializeOwned + Send + Sync;

    /// The only fields of `spec` that an object of this kind keeps in memory, for kinds whose spec
    /// holds passwords; `None` keeps all (`rule:unneeded-secrets-are-dropped`).
    const KEPT_OF_SPEC: Option<&'static [&'static str]> = None;

    /// The field of `spec` whose writer tells the version in which the object was written; see
    /// [`Object::written_as`](crate::Object::written_as).
    const TELLS_VERSION: Option<&'static str> = None;
}

/// A kind that is learnt at run time: its fields are JSON.
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {}

impl Schema for Dynamic {
    type Body = Map<String, Value>;
    type Status = Value;
}
