//! A controller of custom resources end to end, on a real API server, and what it stands on: whole
//! objects, views of metadata, kinds that are absent, several leases in one process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod absent_kinds;
mod audit;
mod harbour;
mod leases;
mod metadata;
mod panics;
mod replicas;
mod scene;
mod story;
mod whole_objects;
