//! Cluster API: Clusters as their users declare them, and what they need on AWS. The rules stand in
//! `RULES.md`.
//!
//! In standalone mode this crate takes the place of Cluster API's core as far as clusters need it:
//! it adopts the object that makes the infrastructure, passes on what that says, makes certificates
//! and kubeconfig, and takes everything apart in order. In provider mode Clusters are left to the
//! core, and AWSClusters are kept for it.
//!
//! | file | holds |
//! |---|---|
//! | `api.rs` | the kinds in all their dialects, labels and annotations |
//! | `ownership.rs`, `infrastructure.rs` | owner references; the status of infrastructure objects; pure |
//! | `contract.rs` | the contracts between Cluster API's core and infrastructure; pure |
//! | `aws_identity.rs` | the identities that an AWSCluster gets its credentials from; pure |
//! | `certificates.rs`, `kubeconfig.rs` | certificate authorities and kubeconfig of a cluster; pure |
//! | `aws_spec.rs`, `aws_plan.rs` | an AWSCluster as the network planner takes it; the plan of a manifest; pure |
//! | `plan_command.rs` | the command `plan` |
//! | `kind_caches.rs` | caches of kinds that Clusters name at run time |
//! | `cluster.rs` | the Cluster controller |
//! | `aws_cluster.rs` | the AWSCluster controller; in builds with the feature `aws` |
//! | `controller.rs`, `options.rs`, `flags.rs` | the controllers as the manager starts them, with their flags |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg_attr(
    not(feature = "aws"),
    allow(dead_code, unused_imports, reason = "only the controller of AWSClusters uses all of it")
)]
mod api;
#[cfg(feature = "aws")]
mod aws_cluster;
#[cfg_attr(
    not(feature = "aws"),
    allow(dead_code, unused_imports, reason = "only the controller of AWSClusters uses all of it")
)]
mod aws_identity;
mod aws_plan;
#[cfg_attr(
    not(feature = "aws"),
    allow(dead_code, unused_imports, reason = "only the controller of AWSClusters uses all of it")
)]
mod aws_spec;
mod certificates;
mod cluster;
#[cfg_attr(
    not(feature = "aws"),
    allow(dead_code, unused_imports, reason = "only the controller of AWSClusters uses all of it")
)]
mod contract;
mod controller;
mod flags;
mod infrastructure;
mod kind_caches;
mod kubeconfig;
mod options;
mod ownership;
mod plan_command;
#[cfg(test)]
mod tests;

pub use controller::ClusterApi;

/// In `--controllers`, as the group of the flags, and in the log.
pub(crate) const NAME: &str = "cluster-api-infrastructure-controller";
