//! TKEStack's Clusters with real API servers as members.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod aggregated;
mod checks;
mod credentials;
mod health;
mod incident;
mod machines;
mod rights;
mod scene;
mod taken_over;
mod totals;
mod upstream_crds;
