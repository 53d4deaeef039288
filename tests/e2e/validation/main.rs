//! The errors of an object, from the library, from the command and from a real API server.
//!
//! `table.rs` feeds the rows of the library's own tests to the command, and `alone.rs` feeds them to an API server
//! that has the CRDs and no webhook, so that neither side knows the other; `shipped.rs` does so with the shipped
//! samples, and `random.rs` with objects that are made up from the schemas. `dynamic_rules.rs` has the product judge
//! by what is stored and by the network; `failures.rs` breaks the webhook, and `incident.rs` everything;
//! `replicas.rs` is about its certificate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod addresses;
mod alone;
mod dynamic_rules;
mod failures;
mod incident;
mod random;
mod replicas;
mod scene;
mod server;
mod shipped;
mod table;

// The rows of the library's tests: one table for all.
#[path = "../../../pkg/cluster-health/validation/tests/rules/aws_cluster.rs"]
mod aws_cluster;
#[allow(dead_code, reason = "the library's tests use more of it")]
#[path = "../../../pkg/cluster-health/validation/tests/rules/cluster.rs"]
mod cluster;
#[path = "../../../pkg/cluster-health/validation/tests/rules/cluster_cidr.rs"]
mod cluster_cidr;
#[path = "../../../pkg/cluster-health/validation/tests/rules/cluster_network.rs"]
mod cluster_network;
#[path = "../../../pkg/cluster-health/validation/tests/rules/cluster_updates.rs"]
mod cluster_updates;
#[allow(dead_code, reason = "the library's tests use more of it")]
#[path = "../../../pkg/cluster-health/validation/tests/rules/kubefed.rs"]
mod kubefed;
#[path = "../../../pkg/cluster-health/validation/tests/rules/licence.rs"]
mod licence;
#[path = "../../../pkg/cluster-health/validation/tests/rules/machine.rs"]
mod machine;
#[path = "../../../pkg/cluster-health/validation/tests/rules/objects.rs"]
mod objects;
#[allow(dead_code, reason = "the library's tests use more of it")]
#[path = "../../../pkg/cluster-health/validation/tests/rules/row.rs"]
mod row;
#[allow(dead_code, reason = "the library's tests use more of it")]
#[path = "../../../pkg/cluster-health/validation/tests/rules/samples.rs"]
mod samples;
