//! Follows Machines: what changes among them becomes work on the queue of their Clusters.

use std::sync::Arc;

use informer::{Delta, Informer, Subscription};
use manager::{Context, Failure};
use objects::Object;
use workqueue::WorkQueue;

use super::health::{Lookup, MachineHealth, cluster_of, moved};
use super::rounds::MachineReconciler;
use super::status::{is_live, is_locked};
use crate::api::tke::{Cluster, Machine};
use crate::reading::Reading;

/// Reads the cache; nothing when Machines are not looked after.
pub(crate) fn lookup(machines: Option<&Informer<Object<Machine>>>) -> Lookup {
    match machines.cloned() {
        Some(machines) => Box::new(move |key| machines.get(key)),
        None => Box::new(|_| None),
    }
}

/// Until the run stops.
pub(crate) async fn follow(
    context: &Context,
    clusters: &Informer<Object<Cluster>>,
    machines: Option<Informer<Object<Machine>>>,
    queue: &WorkQueue<Arc<str>>,
    reconciler: MachineReconciler,
) -> Result<(), Failure> {
    let Some(machines) = machines else { return Ok(()) };
    let concurrency = reconciler.options.summary_concurrency;
    let _subscription = subscribe(&machines, Arc::clone(&reconciler.machines), queue.clone());
    context
        .run(queue, Arc::new(Reading::new(reconciler, &context.stop)))
        .workers(concurrency)
        .start_filled(&machines)
        .start_filled(clusters)
        .until_stopped()
        .await
}

/// Keeps the index of Machines, then fills the queue.
fn subscribe(
    machines: &Informer<Object<Machine>>,
    health: Arc<MachineHealth>,
    queue: WorkQueue<Arc<str>>,
) -> Subscription<Object<Machine>> {
    machines.subscribe(move |delta| {
        match delta {
            Delta::Added(machine) => health.index.insert(machine),
            Delta::Updated { old, new } => {
                if moved(old, new) {
                    health.removed(old);
                }
                health.index.insert(new);
            }
            Delta::Deleted(machine) => health.removed(machine),
            Delta::ListStarts | Delta::ListEnds => {}
        }
        if let Some(cluster) = work(&delta) {
            queue.add(cluster);
        }
    })
}

/// The Cluster whose Machines are to be looked at after this, if any
/// (`rule:own-writes-of-machines-are-no-work`).
fn work(delta: &Delta<'_, Object<Machine>>) -> Option<Arc<str>> {
    let depends_on = |machine: &Object<Machine>| {
        let ip = machine.body.spec.ip.clone();
        (cluster_of(machine), ip, is_live(machine), is_locked(machine))
    };
    match delta {
        Delta::Added(machine) => Some(cluster_of(machine)),
        Delta::Updated { old, new } if depends_on(old) != depends_on(new) => Some(cluster_of(new)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tke::testing::machine;

    /// rule:own-writes-of-machines-are-no-work
    #[test]
    fn a_machine_is_looked_at_when_it_comes_or_changes_and_not_for_what_we_wrote_about_it() {
        let before = Arc::new(machine(|_| {}));
        assert_eq!(work(&Delta::Added(&before)).as_deref(), Some("cls-1"));
        assert_eq!(work(&Delta::Deleted(&before)), None, "there is nothing left to look at");
        // (what is changed, to what, the cluster that is looked at)
        let rows: [(&str, Value, Option<&str>); 8] = [
            ("/spec/clusterName", json!("cls-2"), Some("cls-2")),
            ("/spec/ip", json!("10.0.0.2"), Some("cls-1")),
            ("/status/locked", json!(true), Some("cls-1")),
            ("/status/phase", json!("Upgrading"), Some("cls-1")),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), Some("cls-1")),
            ("/status/phase", json!("Failed"), None),
            ("/status/conditions", json!([{"type": "HealthCheck", "status": "Unknown"}]), None),
            ("/status/machineInfo", json!({"kubeletVersion": "v1.36.3"}), None),
        ];
        for (field, value, expected) in rows {
            let (parent, name) = field.rsplit_once('/').unwrap();
            let after = Arc::new(machine(|object| {
                object["metadata"]["resourceVersion"] = "8".into();
                object.pointer_mut(parent).unwrap()[name] = value.clone();
            }));
            let delta = Delta::Updated { old: &before, new: &after };
            assert_eq!(work(&delta).as_deref(), expected, "{field} {value}");
        }
    }
}
