//! ClusterCIDRs: objects that say which Nodes get blocks of which ranges
//! (`--cidr-allocator-type=MultiCIDRRangeAllocator`).
//!
//! Without I/O: `spec` and `status` are the kind's fields, `selector` tells which Nodes an object
//! selects, `plan` makes a spec into pools or says what is wrong with it, `rank` orders objects,
//! and `from_flags` writes the object that stands for the flags. With it: `keeper` works on one
//! object, `watch` tells the allocator what there is, and `run` runs them all.

mod keeper;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod selector;
mod spec;

pub(crate) use plan::Plan;
pub(crate) use spec::ClusterCidrSpec;
