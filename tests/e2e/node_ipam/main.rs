//! node-ipam end to end, on a real API server: the rows of `node-ipam.md` 3.2, the start-up rules
//! of its section 2, and the invariants of 5.1.
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
