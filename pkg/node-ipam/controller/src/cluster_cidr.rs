//! ClusterCIDRs: objects that map Nodes to the ranges of their pod CIDRs
//! (`--cidr-allocator-type=MultiCIDRRangeAllocator`).
//!
//! Without I/O: `spec` holds the fields of the kind, `selector` decides which Nodes an object
//! selects, `plan` makes pools of a spec or says what is wrong with it, orders objects, and builds
//! the object for the flags. With I/O: `reconciler` works on one object, `run` runs them all.

pub(crate) mod plan;
mod reconciler;
pub(crate) mod run;
pub(crate) mod selector;
mod spec;

pub(crate) use plan::Plan;
pub(crate) use spec::ClusterCidrSpec;
