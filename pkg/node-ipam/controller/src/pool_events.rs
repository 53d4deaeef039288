//! Events when pools cannot serve another Node, and when they can again. They are about
//! the ClusterCIDR, or about the leader's Lease for the pools of the flags.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use manager::Failure;
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::allocator::{Allocator, Uid};
use crate::cluster_cidr::object_ref;
use crate::pressure::Servable;

/// How often the pools are looked at. A block that is freed and taken within this time makes no
/// event.
const LOOK_EVERY: Duration = Duration::from_secs(2);

const FULL: &str = "PodCIDRPoolFull";
const HAS_ROOM: &str = "PodCIDRPoolHasRoom";

/// Reports crossings until the stop.
pub(crate) async fn report(
    allocator: &Mutex<Allocator>,
    recorder: &Recorder,
    lease: &ObjectRef,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let reporting = async {
        let mut known = None;
        loop {
            let looked = allocator.lock().servable_since_start();
            let crossings = looked.map(|(now, at_start)| crossings(&mut known, &now, &at_start));
            for (object, reason, message) in crossings.into_iter().flatten() {
                let kind = if reason == FULL { EventType::Warning } else { EventType::Normal };
                let about = object.map(|(name, uid)| object_ref(&name, &uid));
                recorder.event(about.unwrap_or_else(|| lease.clone()), kind, reason, message);
            }
            sleep(LOOK_EVERY).await;
        }
    };
    // The loop ends only by the stop.
    stop.run_until_cancelled(reporting).await;
    Ok(())
}

type Crossing = (Option<(Arc<str>, Uid)>, &'static str, String);

/// What has changed since the last look, or since the start: the process before has reported what
/// was full then. `known` are the UIDs of the ClusterCIDRs that were full at the last look; `None`
/// among them for the pools of the flags.
fn crossings(
    known: &mut Option<HashSet<Option<Uid>>>,
    now: &[Servable],
    at_start: &HashSet<Option<Uid>>,
) -> Vec<Crossing> {
    let uid = |it: &Servable| it.object.as_ref().map(|(_, uid)| Arc::clone(uid));
    let serving = now.iter().filter(|it| it.is_serving);
    let full = serving.clone().filter(|it| it.nodes == 0).map(uid).collect();
    let before = known.replace(full);
    let before = before.as_ref().unwrap_or(at_start);
    let is_crossed = |it: &&Servable| before.contains(&uid(it)) != (it.nodes == 0);
    serving.filter(is_crossed).map(crossing).collect()
}

fn crossing(Servable { object, nodes, scarcest, .. }: &Servable) -> Crossing {
    let pools = object
        .as_ref()
        .map_or("the cluster CIDRs".to_owned(), |(name, _)| format!("ClusterCIDR {name}"));
    let (reason, message) = match nodes {
        0 => (
            FULL,
            format!(
                "No further Node can get a pod CIDR of {pools}: all blocks of {scarcest} are in use; \
                 delete Nodes, or add a range"
            ),
        ),
        1 => {
            (HAS_ROOM, format!("There is room again: one more Node can get a pod CIDR of {pools}"))
        }
        nodes => (
            HAS_ROOM,
            format!("There is room again: {nodes} more Nodes can get a pod CIDR of {pools}"),
        ),
    };
    (object.clone(), reason, message)
}

#[cfg(test)]
mod tests;
