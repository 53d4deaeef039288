//! An API server that is a function, for unit tests: it is given each request and says what becomes
//! of it. Clients reach it in memory, where a test may pause the clock, or on a loopback port.
//! Crates name it under `[dev-dependencies]` only.
//!
//! | file | holds |
//! |---|---|
//! | `server.rs` | [`ApiServer`]: the function, what it was asked, clients in memory |
//! | `asked.rs` | [`Asked`], one request |
//! | `reply.rs` | [`Reply`], what becomes of it |
//! | `store.rs` | [`Store`], a server that keeps what it is sent |
//! | `calls.rs` | [`Calls`], a server whose test answers each request by hand |
//! | `loopback.rs` | [`Loopback`], the same server on a port |
//! | `fields.rs` | [`fields`]: the fields of our CRDs, and the steps of a test of each |
//! | `fleet.rs` | [`Fleet`], a server with as many Nodes as the largest clusters have |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

mod asked;
mod calls;
pub mod fields;
mod fleet;
mod loopback;
mod reply;
mod server;
mod store;

pub use asked::Asked;
pub use calls::{Call, Calls};
pub use fleet::{Fleet, FleetCounts, FleetOptions, NodeSize, NodeTimes, manifest};
pub use loopback::Loopback;
pub use reply::Reply;
pub use server::{ApiServer, client, client_of_unchanging};
pub use store::{Store, merge};

#[cfg(test)]
mod tests;
