//! [`Cloud`]: AWS in memory, as the actions and queries of `aws-network` see it. [`inventory`]: what it has, as text.
//! Crates name it under `[dev-dependencies]` only, and the simulation.
//!
//! | file | holds |
//! |---|---|
//! | `cloud.rs` | [`Cloud`]: calls, time, delays and refusals |
//! | `cloud/` | calls by kind of resource; reads; whose resources a call names |
//! | `store.rs` | the resources of one kind with their past |
//! | `inventory.rs` | [`inventory`] and [`differences`] |
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cloud;
mod inventory;
mod store;

pub use cloud::{Called, Cloud, Nature};
pub use inventory::{differences, inventory};
pub use store::Store;
