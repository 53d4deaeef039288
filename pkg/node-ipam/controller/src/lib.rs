//! node-ipam: assigns a pod CIDR to every Node, and never one block to two Nodes.
//!
//! [`NodeIpam`] is what the manager registers. From pure to I/O: `options` and `cluster_cidr` make
//! pools of flags and objects; `ledger` holds the claims on them; `allocator` decides which Node gets
//! which block; `patch` is the write and the meaning of its answers; `api` sends it; `reconciler` works
//! on one Node, `node_work` on all of them; `cloud` decides what is done for Nodes whose VMs have
//! ranges; `node_events` tells their owners; `controller` runs it all, with the cache that `standby`
//! has prepared. `second_allocator` detects another writer of pod CIDRs, `pressure`, `metrics` and the
//! ConfigMap of `pool_record` show how full the pools are. [`survey`] reports what is wrong with the pod
//! CIDRs of a cluster before anything runs. `RULES.md` has the rules that code and tests cite,
//! `ALLOCATORS.md` the choice of an allocator.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod allocator;
mod api;
mod cloud;
mod cluster_cidr;
mod controller;
mod flags;
mod ledger;
mod metrics;
mod node_events;
mod node_work;
mod options;
mod patch;
mod pool_events;
mod pool_publisher;
mod pool_record;
mod pressure;
mod reconciler;
mod second_allocator;
mod standby;
mod survey;
mod writer;

pub use controller::NodeIpam;
pub use options::Ranges;
pub use pool_record::{POOL_RECORD, PoolRecord, RecordedPool};
pub use survey::{Finding, PoolDetails, PoolUsage, Surveyed, details, survey, usage};

/// The controller's name, which its log lines carry.
const LOGGER: &str = "node-ipam-controller";

/// The program: the field manager of Nodes, and the label of what it creates.
const PRODUCT: &str = "infra-controller-manager";
