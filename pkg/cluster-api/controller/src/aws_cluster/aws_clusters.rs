//! [`AwsClusters`]: what every look at an AWSCluster shares, and how it publishes and tells.

use std::sync::Arc;
use std::time::Duration;

use aws_network::{Memory, Problem, Rest};
use events::{EventType, ObjectRef, Recorder};
use informer::Informer;
use objects::{Error, Object, ObjectClient, Why};
use resilience::{Fence, draw, wall_now};
use tokio_util::sync::CancellationToken;

use super::identities::Identities;
use super::metrics::AwsClusterMetrics;
use super::reconciliations::Reconciliations;
use super::report::Report;
use super::stored_memory;
use crate::api::AWS_CLUSTERS;
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::{Cluster, Machine};
use crate::kind_caches::KindCaches;
use crate::options::AwsOptions;

/// Reconciles AWSClusters by key.
pub(super) struct AwsClusters {
    pub(super) cache: Informer<Object<AwsCluster>>,
    pub(super) client: ObjectClient<AwsCluster>,
    /// Clusters, in whichever version they are served.
    pub(super) clusters: KindCaches<Cluster>,
    /// Machines in the networks of clusters.
    pub(super) machines: KindCaches<Machine>,
    pub(super) identities: Identities,
    pub(super) fence: Fence,
    pub(super) reconciliations: Reconciliations,
    pub(super) recorder: Recorder,
    pub(super) metrics: AwsClusterMetrics,
    pub(super) options: AwsOptions,
    /// From look to look.
    pub(super) sync_period: Duration,
    /// Cancelled when the process stops.
    pub(super) stop: CancellationToken,
}

impl AwsClusters {
    /// Writes what was found out, with the memory of a reconciliation.
    pub(super) async fn publish(
        &self,
        object: &Arc<Object<AwsCluster>>,
        report: &Report,
        memory: Option<&Memory>,
    ) -> Result<(), Error> {
        let now = wall_now();
        let written = self.client.change_status(object, |now_there, status| {
            report.publish(now_there, status, now, self.options.contract);
            if let Some(memory) = memory {
                stored_memory::write(memory, status);
            }
        });
        let after = match written.await {
            Err(Error { why: Why::Gone, .. }) => return Ok(()),
            written => written?.object,
        };
        if after.status.was_ready() && !object.status.was_ready() {
            self.metrics.provisioned(&after, now);
            let endpoint = after.status.api_endpoints.first();
            let message = endpoint
                .map_or_else(String::new, |it| format!("the API server of the Cluster is at {it}"));
            self.event(&after, EventType::Normal, "Ready", &message);
        }
        Ok(())
    }

    /// Tells what stands in the way, did not before this pass, and is not in the status that was
    /// seen: once, not in every reconciliation. A status lists a few of many problems only.
    pub(super) fn report_problems(
        &self,
        before: &Object<AwsCluster>,
        known: &[Problem],
        problems: &[Problem],
    ) {
        let is_new = |problem: &&Problem| !known.contains(problem);
        for problem in problems.iter().filter(is_new).filter(|it| !it.reason.is_advice()) {
            let known = before.status.conditions.iter();
            if known.clone().all(|it| !it.message.contains(&problem.message)) {
                let kind = problem.part.condition();
                let message = format!("{kind}: {}", problem.message);
                self.event(before, EventType::Warning, problem.reason.as_str(), &message);
            }
        }
    }

    /// Tells what stands in the way, unless the condition of this kind said the same when it was
    /// seen last.
    pub(super) fn event_once(
        &self,
        object: &Object<AwsCluster>,
        kind: &str,
        reason: &'static str,
        message: &str,
    ) {
        let mut conditions = object.status.conditions.iter();
        if !conditions.any(|it| it.kind == kind && it.reason == reason && it.message == message) {
            self.event(object, EventType::Warning, reason, message);
        }
    }

    /// How long a rest is.
    pub(super) fn length(&self, rest: Rest) -> Duration {
        match rest {
            Rest::For(seconds) => Duration::from_secs(seconds),
            // Jitter: clusters that were created together shall not be read together each time.
            Rest::Reached | Rest::Stuck => self.sync_period.mul_f64(0.9 + 0.2 * draw()),
        }
    }

    pub(super) fn event(
        &self,
        object: &Object<AwsCluster>,
        severity: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let metadata = &object.metadata;
        let about = ObjectRef::new(
            &AWS_CLUSTERS.api_version(),
            &AWS_CLUSTERS.kind,
            metadata.namespace().unwrap_or_default(),
            metadata.name(),
            &metadata.uid,
        );
        self.recorder.event(about, severity, reason, message.to_owned());
    }
}
