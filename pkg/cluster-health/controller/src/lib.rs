//! Health of member clusters: TKEStack's `Cluster` and `Machine`, `KubeFedCluster`, `ClusterProfile`, and the `Cluster` of
//! Cluster API.
//!
//! [`ClusterHealth`] is what the manager registers. `flags` and `options` judge the command line,
//! [`engine`] probes and publishes, and each flavour registers its clusters. [`Subject`] is one
//! cluster for the command `probe`. [`ValidationWebhook`] judges objects before they are stored; it and
//! the command `validate` check the network by [`network_checker`]. `RULES.md` has the rules that code
//! and tests cite.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod admission;
mod api;
mod beat_command;
mod check_document;
mod check_requests;
mod cluster_api;
mod cluster_profile;
mod controller;
mod credential_policy;
mod engine;
mod flags;
mod kubeconfig;
mod kubefed;
mod network_checker;
mod options;
mod paging;
mod probe_command;
mod secret_data;
mod shared_conditions;
mod shared_flavour;
mod stored_objects;
mod subject;
#[cfg(test)]
mod testing;
mod tke;
mod validate_command;
pub mod webhook_registration;

pub use admission::ValidationWebhook;
pub use controller::ClusterHealth;
pub(crate) use credential_policy::{Asker, Lookup};
pub(crate) use stored_objects::StoredObjects;
pub(crate) use subject::Subject;

/// The User-Agent of probes.
pub(crate) const USER_AGENT: &str = "infra-controller-manager/cluster-health";
