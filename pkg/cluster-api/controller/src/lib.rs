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
//! | `api.rs` | the kinds: typed unions of their dialects, and the marks on objects |
//! | `phase.rs`, `ownership.rs`, `infrastructure.rs` | what follows from them; pure |
//! | `contract.rs` | what Cluster API's cores want of infrastructure, in their words; pure |
//! | `certificates.rs`, `kubeconfig.rs` | what the administrator of a cluster is given; pure |
//! | `aws_spec.rs`, `aws_plan.rs` | an AWSCluster as the network planner takes it, and what would be made for it; pure |
//! | `plan_command.rs` | the command `plan` |
//! | `kind_caches.rs` | caches of kinds that are learnt at run time |
//! | `cluster.rs` | the Cluster controller |
//! | `aws_cluster.rs` | the AWSCluster controller; in builds with the feature `aws` |
//! | `controller.rs`, `name.rs`, `options.rs`, `flags.rs` | the group as the manager sees it |

pub mod api;
#[cfg(feature = "aws")]
mod aws_cluster;
pub mod aws_plan;
pub mod aws_spec;
pub mod certificates;
mod cluster;
pub mod contract;
mod controller;
mod crd_manifests;
mod flags;
pub mod infrastructure;
mod kind_caches;
pub mod kubeconfig;
mod name;
mod options;
pub mod ownership;
pub mod phase;
mod plan_command;

pub use controller::ClusterApi;
