//! The MultiCIDRRangeAllocator end to end, on a real API server with the CRD and the rights of
//! `config`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod choice;
mod crashes;
mod draining;
mod lifecycle;
mod moves;
mod pools;
mod refusals;
mod scene;
mod sizes;
mod waits;
