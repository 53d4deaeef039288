//! Control plane: it is initialized once a Machine of it has a Node.

use objects::Object;

use super::reconcile::Clusters;
use super::report::Report;
use crate::api::GROUP;
use crate::api::cluster::Cluster;
use crate::api::machine::{cluster_key, proves_control_plane};

const INITIALIZED: &str = "ControlPlaneInitialized";

impl Clusters {
    /// Without Machines, or without their kind, nothing is wrong.
    pub(super) async fn look_for_control_plane(
        &self,
        cluster: &Object<Cluster>,
        report: &mut Report,
    ) {
        let before = cluster.status.control_plane_was_initialized();
        if before || self.is_proved(&cluster.metadata.key).await {
            report.control_plane_initialized = true;
            report.conditions.state(INITIALIZED, true, "Initialized", "");
        } else {
            let message = "no Machine of the control plane has a Node yet";
            report.conditions.state(INITIALIZED, false, "WaitingForNode", message);
        }
    }

    async fn is_proved(&self, key: &str) -> bool {
        let (machines, _) = self.machines.known(GROUP, "Machine").await;
        machines.objects.frozen(|machines| {
            machines.values().any(|machine| {
                proves_control_plane(machine) && cluster_key(machine).as_deref() == Some(key)
            })
        })
    }
}
