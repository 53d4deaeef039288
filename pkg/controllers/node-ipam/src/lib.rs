//! node-ipam: every Node gets its pod CIDR, never the same twice.
//!
//! [`NodeIpam`] is what the manager registers. Inside, from pure to I/O: `options` turns flags into
//! pools, `allocator` decides who gets which block, `patch` knows the body and the meaning of
//! answers, `api` sends, `reconciler` works on one Node, `controller` runs it all. The rules that
//! code and tests cite stand in `RULES.md`.

mod allocator;
mod api;
mod controller;
mod flags;
mod metrics;
mod options;
mod patch;
mod predecessor;
mod reconciler;

pub use controller::NodeIpam;

/// The controller's name, which its log lines carry.
const LOGGER: &str = "node-ipam-controller";
