//! Races and faults end to end, on a real API server behind the fault proxy: what node-ipam and the
//! host promise for the moments when things go wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod first_list;
mod foreign_writers;
mod frozen_store;
mod incidents;
mod lost_answers;
mod outages;
mod refusals;
mod replaced_nodes;
mod restored_store;
mod scene;
mod shutdown;
mod takeover;
mod watch_faults;
