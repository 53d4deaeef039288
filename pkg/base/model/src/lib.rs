//! What the caches hold: slim copies of API objects, read by serde and never written back.
//!
//! A full Node takes 25 KB of memory and 24 µs to decode; the fields the controllers use take
//! about 0.4 KB and a few µs (`rust-guide.md` 2). So every type here names only the fields that
//! somebody reads: serde skips the rest without allocating. For the same reason no type here can
//! be serialized. A slim object sent by PUT would erase what it does not carry, so writers send
//! patches of their own.
//!
//! | file | holds |
//! |---|---|
//! | `cached.rs` | [`Cached`], what an informer needs to know of a type |
//! | `node.rs` | [`Node`] |
//! | `resource.rs` | [`Resource`], a kind and its paths as a value |
//! | `own_writes.rs` | [`OwnWrites`], what a cache must show before a key is worked on |
//! | `read.rs` | the serde readers for text, versions and presence |

mod cached;
mod node;
mod own_writes;
pub mod protobuf;
mod read;
mod resource;

pub use cached::{Cached, FromProtobuf};
pub use node::Node;
pub use own_writes::{OwnWrite, OwnWrites};
pub use read::resource_version;
pub use resource::Resource;
