//! node-ipam end to end, on a real API server: pools, the rules of the start, and the rules in its
//! `RULES.md` that show without faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod events;
mod invariants;
mod pools;
mod record;
mod selector;
mod service_ranges;
mod startup;
mod story;
