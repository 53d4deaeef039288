//! Tells the allocator which ClusterCIDRs there are, in the order of the watch.

use std::sync::Arc;

use informer::{Delta, Informer, Subscription};
use objects::Object;
use tokio::sync::Notify;
use workqueue::WorkQueue;

use super::plan::{Plan, Rules};
use super::spec::{ClusterCidr, FINALIZER};
use crate::allocator::{Allocator, Effects, SeenClusterCidr, Standing};
use crate::cached_node::CachedNode;
use crate::reconciler::Reconciler;

/// Tells of every change, and adds the object to `queue`; `changed` hears of it afterwards.
pub(super) fn watch<N: CachedNode>(
    objects: &Informer<Object<ClusterCidr>>,
    reconciler: &Arc<Reconciler<N>>,
    queue: &WorkQueue<Arc<str>>,
    rules: Rules,
    changed: &Arc<Notify>,
) -> Subscription<Object<ClusterCidr>> {
    let reconciler = Arc::downgrade(reconciler);
    let (queue, changed) = (queue.clone(), Arc::clone(changed));
    objects.subscribe(move |delta| {
        let Some(reconciler) = reconciler.upgrade() else { return };
        let (object, effects) = match delta {
            Delta::Added(object) | Delta::Updated { new: object, .. } => {
                (object, see(&mut reconciler.allocator.lock(), object, rules))
            }
            Delta::Deleted(object) => {
                let mut allocator = reconciler.allocator.lock();
                (object, allocator.cluster_cidr_gone(&object.metadata.uid))
            }
            Delta::ListStarts | Delta::ListEnds => return,
        };
        reconciler.carry_out(effects);
        queue.add(Arc::clone(&object.metadata.key));
        changed.notify_one();
    })
}

fn see(allocator: &mut Allocator, object: &Object<ClusterCidr>, rules: Rules) -> Effects {
    let metadata = &object.metadata;
    let Ok(plan) = Plan::of(&object.body.spec, rules) else {
        return allocator.cluster_cidr_gone(&metadata.uid);
    };
    allocator.see_cluster_cidr(SeenClusterCidr {
        name: Arc::clone(&metadata.key),
        uid: Arc::clone(&metadata.uid),
        standing: standing(object),
        spec: object.body.spec.clone(),
        plan,
    })
}

fn standing(object: &Object<ClusterCidr>) -> Standing {
    if object.metadata.deleting() {
        Standing::Terminating
    } else if object.metadata.has_finalizer(FINALIZER) {
        Standing::Serving
    } else {
        Standing::Unheld
    }
}
