//! Infrastructure: the object that makes it is adopted, and what it says is passed on.

use std::sync::Arc;
use std::time::Duration;

use events::EventType;
use objects::{Dynamic, Error, Object, ObjectClient, ObjectMeta, Why};

use super::reconcile::Clusters;
use super::references;
use super::report::{Failure, INFRASTRUCTURE_READY as READY, Report, StepError};
use crate::api::CLUSTER_NAME_LABEL;
use crate::api::Condition;
use crate::api::Dialect;
use crate::api::cluster::{Cluster, Endpoint, dialect};
use crate::infrastructure::Infrastructure;
use crate::kind_caches::Known;
use crate::ownership;

/// Should nothing tell of an object, or of its kind, that is not there.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// While a cache is being filled.
const SOON: Duration = Duration::from_secs(2);

impl Clusters {
    /// When to look again, if nothing tells.
    pub(super) async fn make_infrastructure(
        &self,
        cluster: &Arc<Object<Cluster>>,
        report: &mut Report,
    ) -> Result<Option<Duration>, StepError> {
        let spec = &cluster.body.spec;
        if let Some(endpoint) = spec.control_plane_endpoint.clone().filter(Endpoint::is_set) {
            report.endpoints = vec![endpoint];
        }
        let Some(reference) = &spec.infrastructure_ref else {
            without_reference(dialect(cluster), report);
            return Ok(None);
        };
        let name = format!("{} {}", reference.kind, reference.name);
        let found = self.externals.named(reference.group(), &reference.kind).await;
        let (objects, client) = match found {
            Ok(found) => found,
            Err(Known::Nothing(why)) => {
                let message = format!("cannot read {name}: {why}");
                report.conditions.mark_false(READY, "KindNotListed", message);
                return Ok(Some(SOON));
            }
            Err(Known::NotServed | Known::Listed) => {
                let message = format!("{}.{} is not served", reference.kind, reference.group());
                report.conditions.mark_false(READY, "KindNotServed", message);
                return Ok(Some(LOOK_AGAIN));
            }
        };
        let Some(object) = objects.get(&references::key(&cluster.metadata.key, reference)) else {
            return Ok(self.is_missing(cluster, &name, report));
        };
        self.take_over(cluster, &client, &object, &name, report).await
    }

    fn is_missing(
        &self,
        cluster: &Object<Cluster>,
        name: &str,
        report: &mut Report,
    ) -> Option<Duration> {
        if !cluster.status.infrastructure_was_ready() {
            report.conditions.mark_false(
                READY,
                "WaitingForInfrastructure",
                format!("{name} does not exist"),
            );
            return Some(LOOK_AGAIN);
        }
        let fact = format!(
            "{name} was ready and does not exist any more; create it again or delete the Cluster"
        );
        let is_known =
            cluster.status.conditions.iter().any(|it| it.reason == "InfrastructureDeleted");
        if !is_known {
            self.event(cluster, EventType::Warning, "InfrastructureDeleted", &fact);
        }
        report.conditions.mark_false(READY, "InfrastructureDeleted", fact);
        None
    }

    /// Whether an infrastructure object may be taken by this Cluster: it has this UID among its owners, or
    /// a read that begins after that of the object shows that this Cluster is still there.
    pub(super) async fn may_take(
        &self,
        cluster: &Object<Cluster>,
        object: &ObjectMeta,
    ) -> Result<bool, Error> {
        if ownership::is_owned_by(object, cluster) {
            return Ok(true);
        }
        let now_there = self.client.read(&cluster.metadata.key).await?;
        Ok(now_there.is_some_and(|it| it.metadata.uid == cluster.metadata.uid))
    }

    async fn take_over(
        &self,
        cluster: &Arc<Object<Cluster>>,
        client: &ObjectClient<Dynamic>,
        object: &Arc<Object<Dynamic>>,
        name: &str,
        report: &mut Report,
    ) -> Result<Option<Duration>, StepError> {
        if let Some(other) = ownership::other_cluster(&object.metadata, cluster) {
            let fact = format!(
                "{name} belongs to the Cluster {other}; set spec.infrastructureRef to another \
                 object"
            );
            report.conditions.mark_false(READY, "OwnedByAnotherCluster", fact);
            return Ok(None);
        }
        if !object.metadata.deleting() {
            let may_take = self.may_take(cluster, &object.metadata).await?;
            if !may_take || !adopt(cluster, client, object).await? {
                return Ok(self.is_missing(cluster, name, report));
            }
        }
        let said = Infrastructure::read(object)
            .map_err(|error| StepError::Unreadable(name.to_owned(), error))?;
        let api_version = client.resource().api_version();
        report.failure = match &said.failure {
            None => Failure::None,
            Some((reason, message)) => Failure::Said {
                reason: reason.clone(),
                message: format!("{api_version} {name}: {message}"),
            },
        };
        if object.metadata.deleting() {
            report.conditions.mark_false(
                READY,
                "InfrastructureDeleting",
                format!("{name} is being deleted"),
            );
            return Ok(None);
        }
        report.conditions.stated.push(mirrored(&said, name));
        if !said.ready {
            // Its watch tells when it is.
            return Ok(None);
        }
        report.infrastructure_ready = true;
        report.failure_domains.clone_from(&said.failure_domains);
        if report.endpoints.is_empty() {
            report.endpoints = said.endpoints;
        }
        let has_endpoint = !report.endpoints.is_empty() || !cluster.status.api_endpoints.is_empty();
        if !has_endpoint && cluster.body.spec.control_plane_ref.is_none() {
            return Err(StepError::NoEndpoint(name.to_owned()));
        }
        Ok(None)
    }
}

/// v1alpha2 waits for a reference; in v1beta2 there may be nothing to make.
fn without_reference(dialect: Dialect, report: &mut Report) {
    match dialect {
        Dialect::V1Alpha2 => {
            let message = "set spec.infrastructureRef";
            report.conditions.mark_false(READY, "NoInfrastructureReference", message);
        }
        Dialect::V1Beta2 => {
            report.infrastructure_ready = true;
            report.conditions.mark_true(
                READY,
                "NoInfrastructureReference",
                "the Cluster has no spec.infrastructureRef, so no infrastructure is created",
            );
        }
    }
}

/// The infrastructure's own condition `Ready`, if it has one.
fn mirrored(said: &Infrastructure, name: &str) -> Condition {
    let mut condition = match &said.ready_condition {
        Some(own) => Condition::new(READY, own.holds(), &own.reason, own.message.clone()),
        None if said.ready => Condition::new(READY, true, "Ready", ""),
        None => Condition::new(READY, false, "NotReady", format!("{name} is not ready yet")),
    };
    if condition.reason.is_empty() {
        let reason = if condition.holds() { "Ready" } else { "NotReady" };
        reason.clone_into(&mut condition.reason);
    }
    condition
}

/// False when the object is gone: what the cache shows of it says nothing of the next one of its name.
async fn adopt(
    cluster: &Object<Cluster>,
    client: &ObjectClient<Dynamic>,
    object: &Arc<Object<Dynamic>>,
) -> Result<bool, StepError> {
    let name = cluster.metadata.name();
    let adopted = client.change(object, |_, draft| {
        ownership::add_owner(&mut draft.metadata.owner_references, cluster);
        draft.metadata.labels.insert(CLUSTER_NAME_LABEL.to_owned(), name.to_owned());
    });
    match adopted.await {
        Ok(_) => Ok(true),
        Err(Error { why: Why::Gone, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
