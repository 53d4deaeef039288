//! node-ipam end to end, on a real API server: pools of every form, what ends the start, and what
//! holds at every moment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod events;
mod invariants;
mod pool_rows;
mod service_rows;
mod startup;
mod story;
