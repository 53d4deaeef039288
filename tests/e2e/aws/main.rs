//! A cluster's network on moto: planned by `aws-network`, carried out by `aws`, watched by a proxy
//! that is as strict as AWS is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells on stdout what it has measured"
)]

mod accounts;
mod budgets;
mod complaints;
mod crash_points;
mod dual_stack;
mod error_classes;
mod faults;
mod inventory;
mod leaders;
mod neighbours;
mod policies;
mod polls;
mod refusals;
mod regional;
mod rights;
mod strict;
mod sweeps;
mod totals;
mod world;
