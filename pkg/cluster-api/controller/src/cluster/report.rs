//! [`Report`]: what a pass found out about a Cluster, and how that is published in the words of all
//! dialects. Pure.

use jiff::Timestamp;
use objects::Object;
use serde_json::Value;

use super::step_error::StepError;
use crate::api::cluster::{Cluster, ClusterStatus, Initialization, dialect};
use crate::api::condition::Conditions;
use crate::api::endpoint::Endpoint;
use crate::phase::{Facts, Phase};

pub(super) const INFRASTRUCTURE_READY: &str = "InfrastructureReady";

/// What a pass found out. What it did not look at stays as it is published.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Everything that the cluster needs was there.
    pub(super) infrastructure_ready: bool,
    /// Where clients reach the API server, as the infrastructure says.
    pub(super) endpoints: Vec<Endpoint>,
    /// Zones, as the infrastructure says.
    pub(super) failure_domains: Option<Value>,
    /// Why the infrastructure cannot go on.
    pub(super) failure: Failure,
    /// A Machine of the control plane has had a Node.
    pub(super) control_plane_initialized: bool,
    /// Facts.
    pub(super) conditions: Conditions,
}

/// What the infrastructure says of its failure.
#[derive(Debug, Default)]
pub(super) enum Failure {
    /// It was not asked.
    #[default]
    NotAsked,
    /// It goes on.
    None,
    /// It cannot go on without help.
    Said {
        /// As one word.
        reason: String,
        /// For people.
        message: String,
    },
}

impl Report {
    /// Why the infrastructure of a Cluster that was never ready could not be looked after: its user
    /// does not read our log.
    pub(super) fn infrastructure_failed(&mut self, cluster: &Object<Cluster>, error: &StepError) {
        if !self.infrastructure_ready && !cluster.status.infrastructure_was_ready() {
            self.conditions.state(INFRASTRUCTURE_READY, false, "Failed", error.to_string());
        }
    }

    /// Changes a status to say what was found out (`rule:all-dialects-are-published`).
    pub(super) fn publish(
        &self,
        cluster: &Object<Cluster>,
        status: &mut ClusterStatus,
        now: Timestamp,
    ) {
        self.publish_milestones(status);
        let stated = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        match &self.failure {
            Failure::NotAsked => {}
            Failure::None => (status.error_reason, status.error_message) = (None, None),
            Failure::Said { reason, message } => {
                (status.error_reason, status.error_message) = (stated(reason), stated(message));
            }
        }
        status.failure_reason.clone_from(&status.error_reason);
        status.failure_message.clone_from(&status.error_message);
        if status.api_endpoints.is_empty() {
            status.api_endpoints.clone_from(&self.endpoints);
        }
        if self.failure_domains.is_some() {
            status.failure_domains.clone_from(&self.failure_domains);
        }
        self.conditions.publish(&mut status.conditions, cluster.metadata.generation, now);
        status.observed_generation = Some(cluster.metadata.generation);
        let word = phase(cluster, status).word(dialect(cluster));
        status.phase = Some(word.to_owned());
    }

    /// They stay once they have happened (`rule:milestones-stay`).
    fn publish_milestones(&self, status: &mut ClusterStatus) {
        let ready = self.infrastructure_ready || status.infrastructure_was_ready();
        let initialized = self.control_plane_initialized || status.control_plane_was_initialized();
        status.infrastructure_ready = Some(ready);
        status.control_plane_initialized = Some(initialized);
        status.initialization = Some(Initialization {
            infrastructure_provisioned: Some(ready),
            control_plane_initialized: Some(initialized),
        });
    }
}

/// The phase that follows from a status.
pub(super) fn phase(cluster: &Object<Cluster>, status: &ClusterStatus) -> Phase {
    let facts = Facts {
        has_infrastructure_ref: cluster.body.spec.infrastructure_ref.is_some(),
        infrastructure_ready: status.infrastructure_was_ready(),
        failed: status.error_reason.is_some() || status.error_message.is_some(),
        deleting: cluster.metadata.deleting(),
    };
    Phase::of(facts, dialect(cluster))
}

#[cfg(test)]
mod tests;
