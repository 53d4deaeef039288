//! Every rule of `RULES.md`, with objects that it accepts and objects that it refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod any_json;
mod aws_cluster;
mod cluster;
mod cluster_cidr;
mod cluster_network;
mod cluster_updates;
mod completeness;
mod kubefed;
mod licence;
mod machine;
mod objects;
mod requests;
mod row;
mod samples;
