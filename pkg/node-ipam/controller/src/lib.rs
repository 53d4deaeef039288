//! node-ipam: every Node gets its pod CIDR, never the same twice.
//!
//! [`NodeIpam`] is what the manager registers. Inside, from pure to I/O: `options` turns flags into
//! pools, `cluster_cidr` does so with objects, `cloud` takes what VMs have, `allocator` decides who gets which block, `patch`
//! knows the body and the meaning of answers, `api` sends, `reconciler` works on one Node,
//! `node_work` on all of them, of which `backlog` holds back those that the queue has no room for,
//! `controller` runs it all. What the allocators of both kinds share stands beside them: `snapshot` is what metrics show,
//! `outcome` what may yet become of a PATCH, `pressure` how full a pool is, `second_allocator` who else gives out
//! pod CIDRs, and `hold` until when none is given out for that. [`survey`] stands beside all this: it says
//! what is wrong with the pod CIDRs of a cluster before anything runs. The rules that code and tests cite stand
//! in `RULES.md`; which allocator is for whom in `ALLOCATORS.md`.

mod allocator;
mod api;
mod backlog;
mod cloud;
mod cluster_cidr;
mod controller;
mod flags;
mod metrics;
mod node_work;
mod options;
mod outcome;
mod patch;
mod pressure;
mod reconciler;
mod second_allocator;
mod snapshot;
mod survey;
mod suspicion;

pub use controller::NodeIpam;
pub use options::Ranges;
pub use survey::{Finding, PoolUsage, Surveyed, survey, usage};

/// The controller's name, which its log lines carry.
const LOGGER: &str = "node-ipam-controller";
