//! [`Clusters`]: one reconcile of one Cluster, with the parts that are short: the spec and the
//! control plane.

use std::sync::Arc;

use cidr::IpNet;
use events::{EventType, ObjectRef, Recorder};
use informer::Informer;
use kube_api::Metadata;
use objects::{Dynamic, Error, Object, ObjectClient, Why};
use resilience::wall_now;
use workqueue::{Next, Reconcile, Retry};

use super::metrics::ClusterMetrics;
use super::references::References;
use super::report::{Errors, Report, StepError, phase};
use crate::api::cluster::{
    Cluster, Endpoint, Machine, NetworkRanges, cluster_key, dialect, is_paused,
    proves_control_plane,
};
use crate::api::secret::Secret;
use crate::api::{CLUSTER_FINALIZER, CLUSTERS, DIALECT_ANNOTATION, GROUP};
use crate::kind_caches::KindCaches;
use crate::kubeconfig::Checked;

/// Reconciles Clusters by key.
pub(super) struct Clusters {
    pub(super) cache: Informer<Object<Cluster>>,
    pub(super) client: ObjectClient<Cluster>,
    /// Infrastructure objects that Clusters refer to.
    pub(super) externals: KindCaches<Dynamic>,
    /// Machines and what makes them.
    pub(super) machines: KindCaches<Machine>,
    /// Metadata of Secrets with the label of their Cluster.
    pub(super) secrets: Informer<Metadata>,
    pub(super) secret_client: ObjectClient<Secret>,
    pub(super) references: References,
    pub(super) checked: Checked,
    pub(super) recorder: Recorder,
    pub(super) metrics: ClusterMetrics,
    pub(super) generate_ca: bool,
}

impl Reconcile for Clusters {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let Some(cluster) = self.cache.get(key) else {
            self.references.forget(key);
            self.checked.forget(key);
            self.metrics.set(key, None);
            return Ok(Next::Done);
        };
        self.metrics.set(key, Some(phase(&cluster, &cluster.status)));
        // Before anything is decided: after a restart in the middle of a deletion, too, it must be
        // heard when the infrastructure is gone.
        if let Some(reference) = &cluster.body.spec.infrastructure_ref {
            self.references.set(key, reference);
            drop(self.externals.get(reference.group(), &reference.kind));
        }
        if is_paused(&cluster) {
            return self.pause(&cluster).await;
        }
        if cluster.metadata.deleting() {
            return self.end(&cluster).await;
        }
        let is_remembered = cluster.metadata.annotations.contains_key(DIALECT_ANNOTATION);
        if !is_remembered || !cluster.metadata.has_finalizer(CLUSTER_FINALIZER) {
            // The watch brings it back, and then everything else begins.
            self.hold(&cluster).await.map_err(manager::retry)?;
            return Ok(Next::Done);
        }
        self.build(&cluster).await
    }
}

impl Clusters {
    /// Before anything is built: the finalizer, and the dialect (`rule:the-dialect-is-remembered`).
    async fn hold(&self, cluster: &Arc<Object<Cluster>>) -> Result<(), Error> {
        let held = self.client.change(cluster, |now_there, draft| {
            if now_there.metadata.deleting() {
                return;
            }
            if !now_there.metadata.has_finalizer(CLUSTER_FINALIZER) {
                draft.metadata.finalizers.push(CLUSTER_FINALIZER.to_owned());
            }
            let remembered = draft.metadata.annotations.entry(DIALECT_ANNOTATION.to_owned());
            remembered.or_insert_with(|| dialect(now_there).name().to_owned());
        });
        held.await.map(drop)
    }

    /// Writes the condition `Paused`, and nothing else; a deletion waits, too.
    async fn pause(&self, cluster: &Arc<Object<Cluster>>) -> Result<Next, Retry> {
        let message = if cluster.metadata.deleting() {
            "reconciliation and deletion are paused; remove spec.paused and the annotation \
             cluster.x-k8s.io/paused to continue"
        } else {
            "reconciliation is paused; remove spec.paused and the annotation \
             cluster.x-k8s.io/paused to continue"
        };
        let mut report = Report::default();
        report.conditions.mark_true("Paused", "Paused", message);
        let mut errors = Errors::default();
        errors.take(self.write(cluster, &report).await);
        errors.into_retry().map_or(Ok(Next::Done), Err)
    }

    /// All parts are tried, whichever of them fail.
    async fn build(&self, cluster: &Arc<Object<Cluster>>) -> Result<Next, Retry> {
        let (mut report, mut errors) = (Report::default(), Errors::default());
        report.conditions.mark_false("Paused", "NotPaused", "");
        let mut waits = Vec::new();
        let part = self.make_infrastructure(cluster, &mut report).await;
        if let Err(error) = &part {
            report.infrastructure_failed(cluster, error);
        }
        waits.extend(errors.take(part).flatten());
        let part = self.make_kubeconfig(cluster, &mut report).await;
        waits.extend(errors.take(part).flatten());
        self.look_for_control_plane(cluster, &mut report).await;
        self.judge_spec(cluster, &mut report);
        errors.take(self.mirror_endpoint(cluster, &report).await);
        errors.take(self.write(cluster, &report).await);
        match (errors.into_retry(), waits.into_iter().min()) {
            (Some(retry), _) => Err(retry),
            (None, Some(wait)) => Ok(Next::After(wait)),
            (None, None) => Ok(Next::Done),
        }
    }

    async fn end(&self, cluster: &Arc<Object<Cluster>>) -> Result<Next, Retry> {
        if !cluster.metadata.has_finalizer(CLUSTER_FINALIZER) {
            return Ok(Next::Done);
        }
        let (mut report, mut errors) = (Report::default(), Errors::default());
        report.conditions.mark_false("Paused", "NotPaused", "");
        let wait = self.take_apart(cluster, &mut report, &mut errors).await;
        if let Some(retry) = errors.into_retry() {
            // The log says what went wrong, the status what is waited for.
            drop(self.write(cluster, &report).await);
            return Err(retry);
        }
        let mut errors = Errors::default();
        if let Some(wait) = wait {
            errors.take(self.write(cluster, &report).await);
            return errors.into_retry().map_or(Ok(Next::After(wait)), Err);
        }
        self.event(cluster, EventType::Normal, "Deleted", "all objects of the Cluster are deleted");
        errors.take(self.client.remove_finalizer(cluster, CLUSTER_FINALIZER).await);
        errors.into_retry().map_or(Ok(Next::Done), Err)
    }

    /// v1beta2 has the endpoint in the spec.
    async fn mirror_endpoint(
        &self,
        cluster: &Arc<Object<Cluster>>,
        report: &Report,
    ) -> Result<(), StepError> {
        let published = cluster.status.api_endpoints.first().or(report.endpoints.first());
        let Some(endpoint) = published else { return Ok(()) };
        let mirrored = self.client.change(cluster, |_, draft| {
            let there = &mut draft.body.spec.control_plane_endpoint;
            if !there.as_ref().is_some_and(Endpoint::is_set) {
                *there = Some(endpoint.clone());
            }
        });
        mirrored.await?;
        Ok(())
    }

    async fn write(
        &self,
        cluster: &Arc<Object<Cluster>>,
        report: &Report,
    ) -> Result<(), StepError> {
        let now = wall_now();
        let written = self.client.change_status(cluster, |now_there, status| {
            report.publish(now_there, status, now);
        });
        let written = match written.await {
            Err(Error { why: Why::Gone, .. }) => return Ok(()),
            written => written?.object,
        };
        let after = phase(&written, &written.status);
        self.metrics.set(&cluster.metadata.key, Some(after));
        if written.status.phase != cluster.status.phase {
            let word = after.word(dialect(cluster));
            let message = match &cluster.status.phase {
                Some(before) => format!("the phase changed from {before} to {word}"),
                None => format!("the phase is {word}"),
            };
            self.event(cluster, EventType::Normal, "PhaseChanged", &message);
        }
        self.report_milestones(cluster, &written);
        Ok(())
    }

    fn report_milestones(&self, before: &Object<Cluster>, after: &Object<Cluster>) {
        if after.status.infrastructure_was_ready() && !before.status.infrastructure_was_ready() {
            let endpoint = after.status.api_endpoints.first();
            let message = match endpoint {
                Some(endpoint) => format!("the API server of the Cluster is at {endpoint}"),
                None => "the infrastructure has no endpoint".to_owned(),
            };
            self.event(after, EventType::Normal, "InfrastructureReady", &message);
        }
        let initialized = |it: &Object<Cluster>| it.status.control_plane_was_initialized();
        if initialized(after) && !initialized(before) {
            let message = "the control plane is initialized: one of its Machines has a Node";
            self.event(after, EventType::Normal, "ControlPlaneInitialized", message);
        }
    }

    pub(super) fn event(
        &self,
        cluster: &Object<Cluster>,
        severity: EventType,
        reason: &'static str,
        message: &str,
    ) {
        let metadata = &cluster.metadata;
        let object = ObjectRef::new(
            &CLUSTERS.api_version(),
            &CLUSTERS.kind,
            metadata.namespace().unwrap_or_default(),
            metadata.name(),
            &metadata.uid,
        );
        self.recorder.event(object, severity, reason, message.to_owned());
    }
}

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
            report.conditions.mark_true(INITIALIZED, "Initialized", "");
        } else {
            let message = "no Machine of the control plane has a Node yet";
            report.conditions.mark_false(INITIALIZED, "WaitingForNode", message);
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

const TOPOLOGY: &str = "TopologyReconciled";

impl Clusters {
    /// Says so, in events once for each generation.
    pub(super) fn judge_spec(&self, cluster: &Object<Cluster>, report: &mut Report) {
        if cluster.body.spec.topology.is_some() {
            let message = "spec.topology is not supported and has no effect";
            report.conditions.mark_false(TOPOLOGY, "Unsupported", message);
        } else {
            report.conditions.gone.push(TOPOLOGY);
        }
        let is_new = cluster.status.observed_generation != Some(cluster.metadata.generation);
        if is_new && let Some((pods, services)) = overlap(cluster) {
            let message = format!("the pod range {pods} overlaps the Service range {services}");
            self.event(cluster, EventType::Warning, "OverlappingNetworks", &message);
        }
    }
}

fn overlap(cluster: &Object<Cluster>) -> Option<(IpNet, IpNet)> {
    let network = cluster.body.spec.cluster_network.as_ref()?;
    let services = cidrs(network.services.as_ref());
    cidrs(network.pods.as_ref()).into_iter().find_map(|pods| {
        let hit = services.iter().find(|it| it.contains(&pods) || pods.contains(*it))?;
        Some((pods, *hit))
    })
}

fn cidrs(ranges: Option<&NetworkRanges>) -> Vec<IpNet> {
    let blocks = ranges.into_iter().flat_map(|ranges| &ranges.cidr_blocks);
    blocks.filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn networks_overlap_when_one_holds_the_other_in_either_family() {
        let of = |pods: &[&str], services: &[&str]| {
            let cluster: Object<Cluster> = Object::read(json!({
                "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
                "spec": {"clusterNetwork": {"pods": {"cidrBlocks": pods}, "services": {"cidrBlocks": services}}},
            }))
            .unwrap();
            overlap(&cluster).map(|(pods, services)| format!("{pods} {services}"))
        };
        assert_eq!(of(&["10.66.0.0/24"], &["192.168.0.0/16"]), None);
        let inside = Some("10.66.0.0/24 10.0.0.0/8".to_owned());
        assert_eq!(of(&["fd00::/48", "10.66.0.0/24"], &["10.0.0.0/8"]), inside);
        assert_eq!(
            of(&["10.0.0.0/8"], &["10.96.0.0/12"]).as_deref(),
            Some("10.0.0.0/8 10.96.0.0/12")
        );
        assert_eq!(of(&["no CIDR"], &["10.96.0.0/12"]), None);
    }
}
