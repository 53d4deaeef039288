//! The process around the controllers on a real API server: command line, identity, throttle,
//! leadership, serving, events.
//!
//! What happens to the lease and to writes under way when the server fails, is in the tests
//! `races`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod absent_lease;
mod access;
mod check;
mod command_line;
mod dry_run;
mod events;
mod garbage;
mod identity;
mod leadership;
mod log_streams;
mod prometheus;
mod readiness;
mod same_as_stock;
mod scene;
mod serving;
mod starvation;
mod stock;
mod throttle;
mod unread_log;
