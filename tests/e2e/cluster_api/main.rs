//! Cluster API's kinds and the controllers of them, on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod birth;
mod death;
mod dialects;
mod printing;
mod refusals;
mod restarts;
mod scene;
mod troubles;
