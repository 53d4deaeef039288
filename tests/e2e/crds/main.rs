//! `config/crd` and `config/samples` on a real API server, by the hands of a user with kubectl and
//! of the product.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod admission;
mod installing;
mod objects;
mod printing;
mod schemas;
mod static_rules;
mod status_writes;
mod stored_before;
mod upstream;
mod validate_command;
