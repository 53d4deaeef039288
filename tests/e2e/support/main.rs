//! The support library keeps its own promises: what the other tests rest on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod binaries;
mod citations;
mod clusters;
mod faults;
mod leftovers;
mod processes;
mod seeded_faults;
mod simulated_api;
mod test_script;
mod watches;
