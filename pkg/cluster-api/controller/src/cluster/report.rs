//! [`Report`]: what one reconcile found out about a Cluster: status, [`Phase`] and errors. Pure.

use jiff::Timestamp;
use objects::Object;
use serde_json::Value;
use workqueue::Retry;

use crate::api::Conditions;
use crate::api::Dialect;
use crate::api::cluster::{Cluster, ClusterStatus, Endpoint, Initialization, dialect};
use crate::certificates::CertificateError;

pub(super) const INFRASTRUCTURE_READY: &str = "InfrastructureReady";

/// Results of a reconcile. Fields that were not determined keep their published value.
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
    pub(super) conditions: Conditions,
}

/// Terminal failure of the infrastructure.
#[derive(Debug, Default)]
pub(super) enum Failure {
    /// The reconciliation ended before this was determined.
    #[default]
    NotAsked,
    /// The Cluster can go on.
    None,
    /// A failure that needs the user.
    Said { reason: String, message: String },
}

impl Report {
    /// Why the infrastructure of a Cluster that was never ready could not be looked after: its user
    /// does not read our log.
    pub(super) fn infrastructure_failed(&mut self, cluster: &Object<Cluster>, error: &StepError) {
        if !self.infrastructure_ready && !cluster.status.infrastructure_was_ready() {
            self.conditions.mark_false(INFRASTRUCTURE_READY, "Failed", error.to_string());
        }
    }

    /// Writes the findings into the fields of all dialects, so that every reader sees them without
    /// a conversion.
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
        // That of the infrastructure counts once; that of the spec, whenever its user changes it.
        let of_spec = cluster.body.spec.control_plane_endpoint.as_ref();
        let is_of_spec = self.endpoints.first().is_some_and(|found| Some(found) == of_spec);
        let is_published = status.api_endpoints.first() == self.endpoints.first();
        if status.api_endpoints.is_empty() || (is_of_spec && !is_published) {
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

    /// Milestones never go back: kubeconfigs and certificates depend on them, as in all of Cluster
    /// API.
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

/// Why a part of a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Object(#[from] objects::Error),
    /// The infrastructure is ready and says no endpoint.
    #[error(
        "cannot publish an endpoint: {0} is ready but has none in status.apiEndpoints or \
         spec.controlPlaneEndpoint"
    )]
    NoEndpoint(String),
    /// The status of the infrastructure object has a form that no contract has.
    #[error("cannot read the status of {0}: {1}")]
    Unreadable(String, serde_json::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Errors of one reconcile; all of its parts were tried.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<StepError>);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Several(String);

impl Errors {
    /// Notes the error of a part, which then has no result.
    pub(super) fn take<T>(&mut self, part: Result<T, impl Into<StepError>>) -> Option<T> {
        part.map_err(|error| self.0.push(error.into())).ok()
    }

    /// How the key is tried again, if anything went wrong.
    pub(super) fn into_retry(self) -> Option<Retry> {
        let mut errors = self.0;
        let last = errors.pop()?;
        if errors.is_empty() {
            return Some(match last {
                StepError::Object(error) => manager::retry(error),
                error => Retry::new(error),
            });
        }
        let messages: Vec<_> = errors.iter().chain([&last]).map(ToString::to_string).collect();
        Some(Retry::new(Several(messages.join("; "))))
    }
}

/// How far a Cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Nothing makes its infrastructure yet.
    Pending,
    Provisioning,
    Provisioned,
    Deleting,
    Failed,
}

/// Inputs of the phase of a Cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Facts {
    /// Something is to make its infrastructure.
    pub(crate) has_infrastructure_ref: bool,
    /// The infrastructure was ready once.
    pub(crate) infrastructure_ready: bool,
    pub(crate) failed: bool,
    pub(crate) deleting: bool,
}

impl Phase {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pending, Self::Provisioning, Self::Provisioned, Self::Deleting, Self::Failed];

    /// The phase of these facts. v1beta2 has no phase for failed.
    pub(crate) fn of(facts: Facts, dialect: Dialect) -> Self {
        match facts {
            Facts { deleting: true, .. } => Self::Deleting,
            Facts { failed: true, .. } if dialect == Dialect::V1Alpha2 => Self::Failed,
            Facts { infrastructure_ready: true, .. } => Self::Provisioned,
            Facts { has_infrastructure_ref: true, .. } => Self::Provisioning,
            Facts { .. } => Self::Pending,
        }
    }

    /// The value of `status.phase` in this dialect.
    pub(crate) fn word(self, dialect: Dialect) -> &'static str {
        let [older, newer] = match self {
            Self::Pending => ["pending", "Pending"],
            Self::Provisioning => ["provisioning", "Provisioning"],
            Self::Provisioned => ["provisioned", "Provisioned"],
            Self::Deleting => ["deleting", "Deleting"],
            Self::Failed => ["failed", "Failed"],
        };
        match dialect {
            Dialect::V1Alpha2 => older,
            Dialect::V1Beta2 => newer,
        }
    }
}

#[cfg(test)]
mod phase_tests {
    use super::*;

    #[test]
    fn the_phase_is_the_last_that_the_facts_allow() {
        let facts = |digits: [bool; 4]| {
            let [has_infrastructure_ref, infrastructure_ready, failed, deleting] = digits;
            Facts { has_infrastructure_ref, infrastructure_ready, failed, deleting }
        };
        // (facts, word of v1alpha2, word of v1beta2)
        for (digits, older, newer) in [
            ([false, false, false, false], "pending", "Pending"),
            ([true, false, false, false], "provisioning", "Provisioning"),
            ([true, true, false, false], "provisioned", "Provisioned"),
            ([false, true, false, false], "provisioned", "Provisioned"),
            ([true, false, true, false], "failed", "Provisioning"),
            ([true, true, true, false], "failed", "Provisioned"),
            ([true, true, true, true], "deleting", "Deleting"),
            ([false, false, false, true], "deleting", "Deleting"),
        ] {
            let word = |dialect: Dialect| Phase::of(facts(digits), dialect).word(dialect);
            assert_eq!(word(Dialect::V1Alpha2), older, "{digits:?}");
            assert_eq!(word(Dialect::V1Beta2), newer, "{digits:?}");
        }
    }
}

#[cfg(test)]
mod tests;
