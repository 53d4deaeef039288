//! A stub of the few calls of Google Compute Engine that the product makes, on a loopback port. It
//! has the quirks of the real thing: a fingerprint on every interface, aliases that are replaced as
//! a whole, operations that take their time and fail late, pages, tokens that expire; and it plays
//! the faults that a test asks for.
//!
//! | file | holds |
//! |---|---|
//! | `stub.rs` | [`GceStub`]: what a test says and asks |
//! | `server.rs` | the port, and which call a request is |
//! | `cloud.rs`, `operations.rs` | VMs and their changes |
//! | `tokens.rs` | the metadata server and its kin |
//! | `faults.rs` | [`Fault`]: what goes wrong |
//! | `reply.rs` | answers |
//! | `key.rs` | a key for service accounts of tests |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

mod cloud;
mod faults;
mod key;
mod operations;
mod reply;
mod server;
mod stub;
mod tokens;

pub use cloud::{PROJECT, SECONDARY_RANGE};
pub use faults::Fault;
pub use key::SERVICE_ACCOUNT_KEY;
pub use stub::{Call, GceStub};
