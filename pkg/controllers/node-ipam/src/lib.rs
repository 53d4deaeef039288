//! node-ipam: every Node gets its pod CIDR, never the same twice.
//!
//! [`NodeIpam`] is what the manager registers. Inside, from pure to I/O:
//! [`options`] turns flags into pools, [`allocator`] decides who gets which block, [`patch`]
//! knows the body and the meaning of answers, [`api`] sends, [`reconciler`] works on one Node,
//! [`controller`] runs it all. Rules are cited by their number in `node-ipam.md`.

pub mod allocator;
pub mod api;
pub mod controller;
pub mod flags;
pub mod metrics;
pub mod options;
pub mod patch;
mod predecessor;
pub mod reconciler;

pub use controller::NodeIpam;

/// The controller's name, which its log lines carry.
const LOGGER: &str = "node-ipam-controller";
