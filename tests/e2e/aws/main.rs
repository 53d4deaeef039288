//! A cluster's network on moto: planned by `aws-network`, carried out by `aws`, watched by a proxy that is as strict as
//! AWS is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells on stdout what it has measured"
)]

mod budgets;
mod crash_points;
mod fixtures;
mod inventory;
mod policies;
mod refusals;
mod totals;
mod world;
