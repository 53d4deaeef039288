//! `config/rbac` and `deploy/static-pod` on a real API server: they are what it takes, the product
//! runs with them, and they grant nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod alerts;
mod audit;
mod cluster_health;
mod clusterctl;
mod files;
mod helm;
mod hosted;
mod image;
mod promql;
mod rbac;
mod rights;
mod static_pod;
