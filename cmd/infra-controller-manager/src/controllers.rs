//! The list of hosted controllers: the only code that names them.

use manager::Controller;
use manager::command::Command;

/// Controllers of a program, in the order in which they are started.
pub type Controllers = &'static [&'static dyn Controller];

/// All controllers of the product.
pub const ALL: Controllers = &[
    &node_ipam::NodeIpam,
    &cluster_health::ClusterHealth,
    &cluster_health::ValidationWebhook,
    &cluster_api::ClusterApi,
];

/// The commands of all controllers.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    ALL.iter().flat_map(|controller| controller.commands())
}
