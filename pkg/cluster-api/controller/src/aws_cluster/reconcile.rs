//! One reconcile of one AWSCluster: chooses between creation, deletion and doing nothing.

use std::sync::Arc;
use std::time::Duration;

use objects::{Error, Object, ObjectMeta};
use workqueue::{Next, Reconcile, Retry};

use super::aws_clusters::AwsClusters;
use super::goal;
use super::owner::{Found, Owner, holder_of_its_owner_id};
use super::removal::CONFLICT;
use super::report::{READY, Report};
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::is_paused;
use crate::api::{
    ADOPT_ANNOTATION, AWS_CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION,
    MOVED_ANNOTATION, OWNER_ID_ANNOTATION, PAUSED_ANNOTATION,
};
use crate::kind_caches::Known;

/// Upstream's kind of an EKS cluster.
const EKS_GROUP: &str = "controlplane.cluster.x-k8s.io";
const EKS_CONTROL_PLANE: &str = "AWSManagedControlPlane";

/// Until an AWSCluster whose owner id another one has is looked at again.
const HOLDER_AGAIN: Duration = Duration::from_secs(60);
const PAUSED: &str = "reconciliation is paused; remove the annotation cluster.x-k8s.io/paused and \
    spec.paused of the Cluster to continue";
const MOVED: &str = "clusterctl move has set the annotation clusterctl.cluster.x-k8s.io/delete-for-move, so nothing \
    is done on AWS; if this AWSCluster was not moved, restore its annotation aws.cluster.x-k8s.io/owner-id if it is \
    missing, then remove delete-for-move";
/// While a cache is being filled.
const SOON: Duration = Duration::from_secs(2);

impl Reconcile for AwsClusters {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let Some(object) = self.cache.get(key) else {
            self.reconciliations.forget(key);
            self.metrics.forget(key);
            return Ok(Next::Done);
        };
        let metadata = &object.metadata;
        let marks = [&metadata.annotations, &metadata.labels];
        if marks.iter().any(|it| it.contains_key(MANAGED_BY_ANNOTATION)) {
            // Another program manages it: no finalizer, no call to AWS, no status.
            self.reconciliations.forget(key);
            self.metrics.forget(key);
            return Ok(Next::Done);
        }
        let owner = match self.owner(&object).await {
            Found::Owner(owner) => owner,
            Found::Unknown(why) => {
                tracing::debug!(%why, "The Cluster of the AWSCluster is not known yet");
                return Ok(Next::After(SOON));
            }
            Found::None => {
                tracing::debug!("No Cluster refers to the AWSCluster yet");
                return Ok(Next::Done);
            }
        };
        let is_paused = owner.cluster.as_deref().is_some_and(is_paused)
            || object.metadata.annotations.contains_key(PAUSED_ANNOTATION);
        if is_paused {
            return self.pause(&object, PAUSED).await;
        }
        if is_moved(metadata) {
            return self.pause(&object, MOVED).await;
        }
        let holder = self.cache.frozen(|all| {
            holder_of_its_owner_id(&object.metadata, all.values().map(|it| &it.metadata))
        });
        if let Some(holder) = holder {
            // No call to AWS is made for this one (`rule:one-awscluster-for-an-owner-id`).
            let id = object.metadata.annotations.get(OWNER_ID_ANNOTATION);
            let message = format!(
                "owner-id {} belongs to {holder}; remove the annotation {OWNER_ID_ANNOTATION}",
                id.map_or("", String::as_str)
            );
            return self.conflict(&object, &message).await;
        }
        if let Some(message) = self.eks_conflict(&object, &owner.name).await {
            return self.conflict(&object, &message).await;
        }
        if object.metadata.deleting() {
            return self.end(&object, &owner).await;
        }
        self.keep(&object, &owner).await
    }
}

/// Whether `clusterctl move` has taken the AWSCluster to another management cluster. It replaces all annotations of the
/// one that stays, the owner id included, and deletes it then; the caches may show the deletion of its Cluster, which was
/// paused, first. A move that is repeated can bring these annotations to the other management cluster.
fn is_moved(metadata: &ObjectMeta) -> bool {
    metadata.annotations.contains_key(MOVED_ANNOTATION)
        && (metadata.deleting() || !metadata.annotations.contains_key(OWNER_ID_ANNOTATION))
}

impl AwsClusters {
    /// Writes the condition `Paused`, and nothing else; a deletion waits, too.
    async fn pause(&self, object: &Arc<Object<AwsCluster>>, why: &str) -> Result<Next, Retry> {
        // What is done to AWS meanwhile is looked at afterwards.
        self.reconciliations.forget(&object.metadata.key);
        self.metrics.rests(&object.metadata.key);
        let mut message = why.to_owned();
        if object.metadata.deleting() {
            message.push_str("; the deletion waits, too");
        }
        let mut report = Report::default();
        report.conditions.mark_true("Paused", "Paused", message);
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::Done)
    }

    /// Why the network is not adopted although its user asks for it: upstream's EKS controller
    /// keeps a cluster of this name, and both would write to one network
    /// (`rule:eks-is-not-adopted`).
    async fn eks_conflict(&self, object: &Object<AwsCluster>, cluster: &str) -> Option<String> {
        if !goal::adopts(&object.metadata) {
            return None;
        }
        let (kind_cache, known) = self.machines.known(EKS_GROUP, EKS_CONTROL_PLANE).await;
        if let Known::Nothing(why) = known {
            return Some(format!("cannot adopt: cannot check for an {EKS_CONTROL_PLANE}: {why}"));
        }
        let namespace = object.metadata.namespace();
        let name = kind_cache.objects.frozen(|all| {
            let mut of_namespace = all.values().filter(|it| it.metadata.namespace() == namespace);
            let label = |it: &ObjectMeta| it.labels.get(CLUSTER_NAME_LABEL).cloned();
            let found = of_namespace.find(|it| {
                it.metadata.name() == cluster || label(&it.metadata).is_some_and(|it| it == cluster)
            });
            found.map(|it| it.metadata.name().to_owned())
        })?;
        Some(format!(
            "cannot adopt: {EKS_CONTROL_PLANE} {name} exists, so the network belongs to an EKS cluster; \
             remove the annotation {ADOPT_ANNOTATION}"
        ))
    }

    /// Reports a conflict; no call to AWS is made.
    async fn conflict(
        &self,
        object: &Arc<Object<AwsCluster>>,
        message: &str,
    ) -> Result<Next, Retry> {
        let mut report = Report::not_paused();
        if object.metadata.deleting() {
            return self.withhold(object, report, CONFLICT, message).await;
        }
        self.reconciliations.forget(&object.metadata.key);
        self.metrics.rests(&object.metadata.key);
        self.event_once(object, READY, CONFLICT, message);
        report.conditions.mark_false(READY, CONFLICT, message.to_owned());
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::After(HOLDER_AGAIN))
    }

    async fn keep(&self, object: &Arc<Object<AwsCluster>>, owner: &Owner) -> Result<Next, Retry> {
        // Its watch tells when it comes back.
        let Some(cluster) = &owner.cluster else { return Ok(Next::Done) };
        let metadata = &object.metadata;
        let is_held = metadata.has_finalizer(AWS_CLUSTER_FINALIZER)
            && metadata.annotations.contains_key(OWNER_ID_ANNOTATION);
        if !is_held && !self.options.plan_only {
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
}
