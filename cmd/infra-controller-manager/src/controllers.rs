//! The list of hosted controllers: a new group is added here and nowhere else.

use manager::Controller;

/// What a program hosts, in the order in which it is started.
pub type Controllers = &'static [&'static dyn Controller];

/// All controllers of the product.
pub const ALL: Controllers = &[
    &node_ipam::NodeIpam,
    &cluster_health::ClusterHealth,
    &cluster_health::ValidationWebhook,
    &cluster_api::ClusterApi,
];

/// Those that run only when `--controllers` names them: the webhook takes a port that others may have.
pub const BY_NAME_ONLY: &[&str] = &["validation-webhook-controller"];
