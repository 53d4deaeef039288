//! [`AwsClusters`]: one look at one AWSCluster.

use std::sync::Arc;
use std::time::Duration;

use aws::Account;
use aws_network::{Memory, Problem, Rest};
use events::{EventType, ObjectRef, Recorder};
use fence::Fence;
use informer::Informer;
use jiff::Timestamp;
use objects::{Error, Object, ObjectClient, Why};
use tokio_util::sync::CancellationToken;
use workqueue::{Next, Reconcile, Retry};

use super::metrics::AwsClusterMetrics;
use super::owner::{Found, Owner};
use super::passes::Passes;
use super::report::Report;
use super::stored_memory;
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::{Cluster, is_paused};
use crate::api::machine::Machine;
use crate::api::{
    AWS_CLUSTER_FINALIZER, AWS_CLUSTERS, MANAGED_BY_ANNOTATION, OWNER_ID_ANNOTATION,
    PAUSED_ANNOTATION,
};
use crate::kind_caches::KindCaches;
use crate::options::AwsOptions;

/// While a cache is being filled.
const SOON: Duration = Duration::from_secs(2);

/// Brings AWSClusters to what they are to be, by key.
pub(super) struct AwsClusters {
    pub(super) cache: Informer<Object<AwsCluster>>,
    pub(super) client: ObjectClient<AwsCluster>,
    /// Clusters, in whichever version they are served.
    pub(super) clusters: KindCaches<Cluster>,
    /// What runs in the networks.
    pub(super) machines: KindCaches<Machine>,
    pub(super) account: Account,
    pub(super) fence: Fence,
    pub(super) passes: Passes,
    pub(super) recorder: Recorder,
    pub(super) metrics: AwsClusterMetrics,
    pub(super) options: AwsOptions,
    /// From look to look.
    pub(super) sync_period: Duration,
    /// Cancelled when nothing more is to be begun.
    pub(super) stop: CancellationToken,
}

impl Reconcile for AwsClusters {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let Some(object) = self.cache.get(key) else {
            self.passes.forget(key);
            return Ok(Next::Done);
        };
        if object.metadata.annotations.contains_key(MANAGED_BY_ANNOTATION) {
            // Somebody else makes it (`rule:externally-managed-is-not-touched`).
            self.passes.forget(key);
            return Ok(Next::Done);
        }
        let owner = match self.owner(&object).await {
            Found::Owner(owner) => owner,
            Found::Unknown(why) => {
                tracing::debug!(%why, "The Cluster that it belongs to is not known yet");
                return Ok(Next::After(SOON));
            }
            Found::None => {
                tracing::debug!("No Cluster has adopted it yet");
                return Ok(Next::Done);
            }
        };
        let is_paused = owner.cluster.as_deref().is_some_and(is_paused)
            || object.metadata.annotations.contains_key(PAUSED_ANNOTATION);
        if is_paused {
            return self.pause(&object).await;
        }
        if object.metadata.deleting() {
            return self.end(&object, &owner).await;
        }
        self.keep(&object, &owner).await
    }
}

impl AwsClusters {
    /// Nothing is done, deletion included (`rule:paused-is-left-alone`).
    async fn pause(&self, object: &Arc<Object<AwsCluster>>) -> Result<Next, Retry> {
        // What is done to AWS meanwhile is looked at afterwards.
        self.passes.forget(&object.metadata.key);
        let mut message = "nothing is done until the annotation cluster.x-k8s.io/paused, and spec.paused of the Cluster, are taken away".to_owned();
        if object.metadata.deleting() {
            message.push_str(", its deletion included");
        }
        let mut report = Report::default();
        report.fact("Paused", true, "Paused", message);
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::Done)
    }

    async fn keep(&self, object: &Arc<Object<AwsCluster>>, owner: &Owner) -> Result<Next, Retry> {
        // Its watch tells when it comes back.
        let Some(cluster) = &owner.cluster else { return Ok(Next::Done) };
        let metadata = &object.metadata;
        let is_held = metadata.has_finalizer(AWS_CLUSTER_FINALIZER)
            && metadata.annotations.contains_key(OWNER_ID_ANNOTATION);
        if !is_held {
            self.hold(object).await.map_err(manager::retry)?;
            // The watch brings it back, and then everything else begins.
            return Ok(Next::Done);
        }
        self.build(object, owner, cluster).await
    }

    /// Before anything is made on AWS (`rule:held-before-the-first-write`).
    async fn hold(&self, object: &Arc<Object<AwsCluster>>) -> Result<(), Error> {
        let held = self.client.change(object, |now_there, draft| {
            if now_there.metadata.deleting() {
                return;
            }
            if !now_there.metadata.has_finalizer(AWS_CLUSTER_FINALIZER) {
                draft.metadata.finalizers.push(AWS_CLUSTER_FINALIZER.to_owned());
            }
            let identity = draft.metadata.annotations.entry(OWNER_ID_ANNOTATION.to_owned());
            identity.or_insert_with(|| now_there.metadata.uid.to_string());
        });
        held.await.map(drop)
    }

    /// Writes what was found out, with the memory of a pass.
    pub(super) async fn publish(
        &self,
        object: &Arc<Object<AwsCluster>>,
        report: &Report,
        memory: Option<&Memory>,
    ) -> Result<(), Error> {
        let now = Timestamp::now();
        let written = self.client.change_status(object, |now_there, status| {
            report.publish(now_there, status, now);
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
            let message =
                endpoint.map_or_else(String::new, |it| format!("its API server is at {it}"));
            self.tell(&after, EventType::Normal, "Ready", &message);
        }
        Ok(())
    }

    /// Tells what stands in the way and is not in the status that was seen: once, not in every
    /// pass.
    pub(super) fn tell_problems(&self, before: &Object<AwsCluster>, problems: &[Problem]) {
        for problem in problems.iter().filter(|problem| !problem.reason.is_advice()) {
            let known = before.status.conditions.iter();
            if known.clone().all(|it| !it.message.contains(&problem.message)) {
                let kind = problem.part.condition();
                let message = format!("{kind}: {}", problem.message);
                self.tell(before, EventType::Warning, problem.reason.as_str(), &message);
            }
        }
    }

    /// How long a rest is.
    pub(super) fn length(&self, rest: Rest) -> Duration {
        match rest {
            Rest::For(seconds) => Duration::from_secs(seconds),
            // Clusters that were made together are not looked at together for ever.
            Rest::Reached | Rest::Stuck => self.sync_period.mul_f64(rand::random_range(0.9..1.1)),
        }
    }

    pub(super) fn tell(
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
