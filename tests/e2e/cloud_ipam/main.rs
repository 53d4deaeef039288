//! The allocators that ask a cloud, end to end: a real API server, and a stub of Google's calls.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cloud_allocator;
mod dry_run;
mod failover;
mod races;
mod scene;
mod syncing;
