//! The end of a Cluster: its Machines go first, then its infrastructure, then it.

use std::sync::Arc;
use std::time::Duration;

use aws_network::listed;
use objects::{Dynamic, Object, ObjectClient};

use super::reconcile::Clusters;
use super::references;
use super::report::{Errors, Report, StepError};
use crate::api::GROUP;
use crate::api::cluster::{Cluster, Machine, cluster_key, is_control_plane};
use crate::kind_caches::{KindCache, Known};
use crate::ownership;

const DELETING: &str = "Deleting";
/// In this order.
const MAKERS: [&str; 2] = ["MachineDeployment", "MachineSet"];
/// While something of it is left.
const DESCENDANTS_AGAIN: Duration = Duration::from_secs(5);
/// Should the watch not tell that the infrastructure is gone.
const INFRASTRUCTURE_AGAIN: Duration = Duration::from_secs(30);

/// Something that belongs to a Cluster.
struct Descendant {
    name: String,
    object: Arc<Object<Machine>>,
    client: Option<ObjectClient<Machine>>,
}

impl Clusters {
    /// When to look again; `None` when nothing is left, or something went wrong.
    pub(super) async fn take_apart(
        &self,
        cluster: &Object<Cluster>,
        report: &mut Report,
        errors: &mut Errors,
    ) -> Option<Duration> {
        let descendants = errors.take(self.descendants(cluster, report).await)?;
        let Some(descendants) = descendants else { return Some(DESCENDANTS_AGAIN) };
        if !descendants.is_empty() {
            for descendant in &descendants {
                errors.take(descendant.delete(cluster).await);
            }
            report.conditions.mark_true(DELETING, "WaitingForMachines", waiting_for(&descendants));
            return Some(DESCENDANTS_AGAIN);
        }
        errors.take(self.delete_infrastructure(cluster, report).await)?
    }

    /// All that carries the Cluster's label, whether it owns it or not, in the order in which it
    /// goes; `None` while that is not known.
    async fn descendants(
        &self,
        cluster: &Object<Cluster>,
        report: &mut Report,
    ) -> Result<Option<Vec<Descendant>>, StepError> {
        let mut found = Vec::new();
        for kind in MAKERS.into_iter().chain(["Machine"]) {
            let (kind_cache, known) = self.machines.known(GROUP, kind).await;
            if let Known::Nothing(why) = known {
                report.conditions.mark_true(
                    DELETING,
                    "WaitingForMachines",
                    format!("{kind}s: {why}"),
                );
                return Ok(None);
            }
            found.extend(of_cluster(&kind_cache, kind, &cluster.metadata.key));
        }
        // Workers before the control plane that they talk to; the sort keeps the order of kinds.
        found.sort_by_key(|it| is_control_plane(&it.object));
        Ok(Some(found))
    }

    async fn delete_infrastructure(
        &self,
        cluster: &Object<Cluster>,
        report: &mut Report,
    ) -> Result<Option<Duration>, StepError> {
        let Some(reference) = &cluster.body.spec.infrastructure_ref else { return Ok(None) };
        let name = format!("{} {}", reference.kind, reference.name);
        let client = match self.externals.named(reference.group(), &reference.kind).await {
            Ok((_, client)) => client,
            // Its objects went with the kind.
            Err(Known::NotServed | Known::Listed) => return Ok(None),
            Err(Known::Nothing(why)) => {
                let message = format!("{name}: {why}; or remove spec.infrastructureRef");
                report.conditions.mark_true(DELETING, "WaitingForInfrastructure", message);
                return Ok(Some(DESCENDANTS_AGAIN));
            }
        };
        // Not from the cache: the Cluster ends on this.
        let key = references::key(&cluster.metadata.key, reference);
        let Some(object) = client.read(&key).await? else { return Ok(None) };
        if ownership::other_cluster(&object.metadata, cluster).is_some() {
            return Ok(None);
        }
        // Read after the object: it may be that of a Cluster which came after this one under its name, and which the
        // cache does not show yet (`rule:infrastructure-of-another-cluster-is-left`).
        if !self.may_take(cluster, &object.metadata).await? {
            return Ok(None);
        }
        report.conditions.mark_true(
            DELETING,
            "WaitingForInfrastructure",
            format!("waiting for the deletion of {name}"),
        );
        delete(&client, &object).await?;
        Ok(Some(INFRASTRUCTURE_AGAIN))
    }
}

impl Descendant {
    /// Deletes the object unless it has another owner, with which it goes.
    async fn delete(&self, cluster: &Object<Cluster>) -> Result<(), StepError> {
        let Some(client) = &self.client else { return Ok(()) };
        let ours = ownership::is_owned_by(&self.object.metadata, cluster);
        if ours && !self.object.metadata.deleting() {
            client.delete(&self.object).await?;
        }
        Ok(())
    }
}

fn of_cluster<'a>(
    kind_cache: &'a KindCache<Machine>,
    kind: &'a str,
    cluster: &'a str,
) -> impl Iterator<Item = Descendant> {
    let mut found = kind_cache.objects.frozen(|objects| {
        let of_it = |it: &&Arc<Object<Machine>>| cluster_key(it).as_deref() == Some(cluster);
        objects.values().filter(of_it).cloned().collect::<Vec<_>>()
    });
    found.sort_by(|one, other| one.metadata.key.cmp(&other.metadata.key));
    found.into_iter().map(move |object| Descendant {
        name: format!("{kind} {}", object.metadata.name()),
        object,
        client: kind_cache.client.clone(),
    })
}

async fn delete(client: &ObjectClient<Dynamic>, object: &Object<Dynamic>) -> Result<(), StepError> {
    if !object.metadata.deleting() {
        client.delete(object).await?;
    }
    Ok(())
}

fn waiting_for(descendants: &[Descendant]) -> String {
    let names: Vec<_> = descendants.iter().map(|it| &*it.name).collect();
    format!("waiting for the deletion of {}", listed(&names))
}
