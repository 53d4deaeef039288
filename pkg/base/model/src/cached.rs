//! [`Cached`]: the contract between a slim type and the informer that keeps it.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::protobuf::Malformed;

/// Reads a type from its protobuf message.
pub type FromProtobuf<T> = fn(&[u8]) -> Result<T, Malformed>;

/// An object that an informer can list, watch and keep.
///
/// `Deserialize` reads the object as the API server sends it, whole, in JSON; what the type does
/// not name is skipped.
pub trait Cached: DeserializeOwned + Send + Sync + 'static {
    /// Kind as in manifests, such as `Node`.
    const KIND: &'static str;
    /// API group, empty for core.
    const GROUP: &'static str;
    /// API version inside the group, such as `v1`.
    const VERSION: &'static str;
    /// Plural resource name, such as `nodes`; the label of metrics and logs.
    const RESOURCE: &'static str;
    /// Path of the collection over all namespaces, such as `/api/v1/nodes`.
    const PATH: &'static str;

    /// Reads the object from its protobuf message, without the envelope. `None`, the default: the
    /// API server has no protobuf of this type, as of all custom resources.
    const FROM_PROTOBUF: Option<FromProtobuf<Self>> = None;

    /// Name, or `namespace/name` for a namespaced object. Unique among the live objects.
    fn key(&self) -> &Arc<str>;

    /// UID. A name that comes back with another UID is another object.
    fn uid(&self) -> &str;

    /// Version of this copy; of two copies of one object the higher one is newer.
    fn resource_version(&self) -> u64;
}
