//! Follows Machines: what changes among them becomes work on the queue of their Clusters.

use std::sync::Arc;

use informer::{Delta, Informer, Subscription};
use manager::{Context, Failure};
use objects::Object;
use workqueue::WorkQueue;

use super::rounds::Rounds;
use super::ward::{Lookup, Ward, cluster_of, moved};
use crate::api::tke::{Cluster, Machine};
use crate::reading::Reading;

/// Clusters whose Nodes are listed at once for their Machines.
const WORKERS: usize = 64;

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
    rounds: Rounds,
) -> Result<(), Failure> {
    let Some(machines) = machines else { return Ok(()) };
    // Before the queue hears of them.
    let _booked = keep(&machines, Arc::clone(&rounds.ward));
    context
        .run(queue, Arc::new(Reading::new(rounds, &context.stop)))
        .workers(WORKERS)
        .feed(&machines, |machine| Some(cluster_of(machine)))
        .start_filled(clusters)
        .until_stopped()
        .await
}

/// Keeps the book of Machines.
fn keep(machines: &Informer<Object<Machine>>, ward: Arc<Ward>) -> Subscription<Object<Machine>> {
    machines.subscribe(move |delta| match delta {
        Delta::Added(machine) => ward.book.see(machine),
        Delta::Updated { old, new } => {
            if moved(old, new) {
                ward.gone(old);
            }
            ward.book.see(new);
        }
        Delta::Deleted(machine) => ward.gone(machine),
        Delta::ListStarts | Delta::ListEnds => {}
    })
}
