//! Types of the Kubernetes API that several crates use: slim copies of API objects for
//! caches with the contract by which an informer keeps them, quantities, and conventions of Go.
//!
//! A full Node takes 25 KB of memory and 24 µs to decode; the fields the controllers use take
//! about 0.4 KB and a few µs. So a slim type such as [`Node`] names only the fields that are
//! read: serde skips the rest without allocating. For the same reason no slim type can be
//! serialized. A slim object sent by PUT would erase what it does not carry, so writers send
//! patches of their own.
//!
//! | file | holds |
//! |---|---|
//! | `kind.rs` | [`Kind`]: which objects an informer watches; [`Cached`]: what it needs of their type; [`Resource`], a kind and its paths |
//! | `node.rs` | [`Node`], slim and strict; [`LabelledNode`], with labels and taints; [`CloudNode`], with its VM |
//! | `label_selector.rs` | [`LabelSelector`] in the syntax of kubectl |
//! | `metadata.rs` | [`Metadata`] of an object of any kind, [`ListMeta`]; [`printable`] keys and names; serde readers |
//! | `own_writes.rs` | [`OwnWrites`], what a cache must show before a key is worked on |
//! | `protobuf.rs` | a reader of protobuf messages |
//! | `status.rs` | [`Status`]: a refusal in the words of the API server; [`Condition`]: `metav1.Condition` |
//! | `quantity.rs` | exact numbers of resources, and what a Pod requests |
//! | `go.rs` | conventions of Go: null for what is empty, names of platforms, durations |

pub mod go;
mod kind;
mod label_selector;
mod metadata;
mod node;
mod own_writes;
pub mod protobuf;
pub mod quantity;
mod status;

pub use kind::Kind;
pub use kind::Resource;
pub use kind::{Cached, Decoding, FromProtobuf, StaticKind, View};
pub use label_selector::{
    LabelSelector, LabelSelectorError, LabelTest, is_dns_label, is_dns_subdomain, is_label_key,
};
pub use metadata::{ListMeta, Metadata, object_key, printable, resource_version};
pub use node::{CloudNode, LabelledNode, Node, NodeMarks, PodCidrs};
pub use own_writes::{OwnWrite, OwnWrites};
pub use status::{Cause, Details, Status};
pub use status::{Condition, set_status_condition};
