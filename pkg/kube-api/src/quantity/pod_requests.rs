//! [`PodRequests`]: what a Pod requests of its Node (`rule:pod-request`).

use crate::go::null_is_default;
use serde::Deserialize;

use crate::quantity::Resources;

/// The part of a Pod's `spec` that says what it requests of which Node; the rest is skipped while
/// reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodRequests {
    /// The Node that it is bound to.
    pub node_name: Option<Box<str>>,
    #[serde(deserialize_with = "null_is_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_is_default")]
    init_containers: Vec<Container>,
    /// Of the Pod as a whole.
    #[serde(deserialize_with = "null_is_default")]
    resources: Requirements,
    /// What its runtime takes beside its containers.
    #[serde(deserialize_with = "null_is_default")]
    overhead: Resources,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    #[serde(deserialize_with = "null_is_default")]
    resources: Requirements,
    restart_policy: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Requirements {
    #[serde(deserialize_with = "null_is_default")]
    requests: Resources,
}

impl Container {
    /// An init container that runs on beside the containers.
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl PodRequests {
    /// What the scheduler sets aside for the Pod.
    pub fn total(&self) -> Resources {
        let mut most = Resources::default();
        let mut sidecars = Resources::default();
        for init in &self.init_containers {
            if init.is_sidecar() {
                sidecars += &init.resources.requests;
            } else {
                let mut step = sidecars.clone();
                step += &init.resources.requests;
                most.raise_to(&step);
            }
        }
        let mut running = sidecars;
        for container in &self.containers {
            running += &container.resources.requests;
        }
        most.raise_to(&running);
        most.replace_by(&self.resources.requests);
        most += &self.overhead;
        most
    }
}

#[cfg(test)]
mod tests;
