//! [`Cached`]: the contract between a type and the informer that keeps its objects.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::Kind;
use crate::protobuf::Malformed;

/// Reads a type from its protobuf message.
pub type FromProtobuf<T> = fn(&[u8]) -> Result<T, Malformed>;

/// What an object that cannot be decoded does to its collection (rule:strict-or-tolerant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// The collection waits until the object can be read: it may hold what others must not get.
    Strict,
    /// The object is skipped and its last good copy kept; the others go on.
    Tolerant,
}

/// How much of an object the API server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it; what the type does not name is skipped while reading.
    Object,
    /// `metadata` only, as a `PartialObjectMetadata`.
    Metadata,
}

/// An object that an informer can list, watch and keep.
///
/// `Deserialize` reads the object as the API server sends it, in JSON.
pub trait Cached: DeserializeOwned + Send + Sync + 'static {
    /// What becomes of a collection with an object that cannot be decoded.
    const DECODING: Decoding;

    /// What the API server is asked for.
    const VIEW: View = View::Object;

    /// Reads the object from its protobuf message, without the envelope. `None`, the default: the
    /// API server has no protobuf of this type, as of all custom resources.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;

    /// Name, or `namespace/name` for a namespaced object. Unique among the live objects.
    fn key(&self) -> &Arc<str>;

    /// UID. A name that comes back with another UID is another object.
    fn uid(&self) -> &str;

    /// Takes over from an older copy what both have alike, so that whoever keeps a part of one does
    /// not keep a second one alive.
    fn share_with(&mut self, _older: &Self) {}

    /// Version of this copy; of two copies of one object the higher one is newer.
    fn resource_version(&self) -> u64;
}

/// Holds the text of `older` in place of an equal one.
pub(crate) fn share(text: &mut Arc<str>, older: &Arc<str>) {
    if text == older {
        text.clone_from(older);
    }
}

/// A type whose kind is known when the program is compiled.
pub trait StaticKind: Cached {
    /// Where the API server serves it.
    const KIND: Kind;
}
