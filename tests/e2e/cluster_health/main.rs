//! Cluster health with real API servers: one that manages, others that are its members.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod audit;
mod beats;
mod beside_core;
mod beside_core_crowd;
mod certificates;
mod checks;
mod cluster_api;
mod cluster_profile;
mod dormant;
mod guard;
mod kubefed;
mod listeners;
mod probe_command;
mod prometheus;
mod scene;
mod set_ups;
mod sharding;
