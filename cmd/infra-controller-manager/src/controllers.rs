//! The list of hosted controllers: a new group is added here and nowhere else.

use manager::Controller;

/// All controllers, in the order in which they are started.
pub const ALL: &[&dyn Controller] = &[&node_ipam::NodeIpam];
