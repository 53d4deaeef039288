//! A controller of custom resources end to end, on a real API server: what `objects` and the
//! sample controller promise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod audit;
mod harbour;
mod replicas;
mod scene;
mod story;
mod whole_objects;
