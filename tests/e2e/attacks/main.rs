//! Attacks on the real program: hostile peers, tenants and members. Each scene has a control that shows that it can fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod certificates;
mod credentials;
mod members;
mod names;
mod serving;
mod stranger;
mod webhook;
