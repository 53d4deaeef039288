//! [`ClusterCidrReconciler`]: adds the finalizer to a ClusterCIDR, writes its status, and removes the
//! finalizer when no Node has addresses of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use informer::Informer;
use jiff::Timestamp;
use kube_api::{Condition, set_status_condition};
use objects::{Error, Object, ObjectClient, Why};
use parking_lot::Mutex;
use resilience::wall_now;
use tokio::time::Instant;
use workqueue::{Next, Reconcile, Retry};

use super::plan::{Plan, Rules, SpecError};
use super::spec::{self, ClusterCidr, ClusterCidrStatus, FINALIZER, RangeStatus};
use crate::allocator::{Allocator, Holding, RangeUse};

/// The least time between two statuses of one object.
pub(super) const STATUS_EVERY: Duration = Duration::from_secs(5);

/// Pause while a list of Nodes is being taken in: until its end it is unknown which Node has what.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// How soon one that cannot be used is looked at again while Nodes have addresses of it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Reason of the condition Draining without Nodes.
const DRAINED: &str = "Drained";

/// Works on ClusterCIDRs by name. The allocator hears of them from the watch, not from here.
pub(super) struct ClusterCidrReconciler {
    pub(super) cache: Informer<Object<ClusterCidr>>,
    pub(super) client: ObjectClient<ClusterCidr>,
    pub(super) allocator: Arc<Mutex<Allocator>>,
    pub(super) recorder: Recorder,
    pub(super) rules: Rules,
    /// By name: when its status was last written, and of what error users were told.
    pub(super) said: Mutex<HashMap<Arc<str>, Said>>,
}

/// The last status and error that were written about one object.
#[derive(Debug, Default)]
pub(super) struct Said {
    status_at: Option<Instant>,
    /// With the UID of the object that had it.
    error: Option<(Arc<str>, SpecError)>,
    /// UID of the object whose drain was reported as finished.
    drained: Option<Arc<str>>,
}

impl Reconcile for ClusterCidrReconciler {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let Some(object) = self.cache.get(name) else {
            self.said.lock().remove(name);
            return Ok(Next::Done);
        };
        let error = Plan::of(&object.body.spec, self.rules).err();
        if object.metadata.deleting() {
            return self.end(&object, error).await;
        }
        match &error {
            Some(error) => self.tell(&object, error),
            None if !object.metadata.has_finalizer(FINALIZER) => {
                let held = self.client.add_finalizer(&object, FINALIZER).await;
                // The watch brings it back (`rule:finalizer-before-use`).
                return held.map(|_| Next::Done).map_err(manager::retry);
            }
            None => {}
        }
        self.show(&object, error, None).await
    }
}

impl ClusterCidrReconciler {
    /// Whether the status of an object says anything else than would be said now.
    pub(super) fn is_outdated(&self, object: &Object<ClusterCidr>) -> bool {
        if !object.metadata.has_finalizer(FINALIZER) {
            return false;
        }
        let ranges = object.body.spec.ranges();
        let deleting = object.metadata.deleting();
        let holding = deleting.then(|| self.allocator.lock().holding(&ranges));
        if holding == Some(Holding::Unknown) {
            return false;
        }
        let error = Plan::of(&object.body.spec, self.rules).err();
        let facts = self.facts(object, error, holding);
        let mut status = object.status.clone();
        facts.publish(&mut status, wall_now());
        facts.draining != Some(Holding::Unknown) && status != object.status
    }

    /// Lets go of it when no Node has addresses of it (`rule:cluster-cidr-outlives-its-claims`).
    async fn end(
        &self,
        object: &Arc<Object<ClusterCidr>>,
        error: Option<SpecError>,
    ) -> Result<Next, Retry> {
        if !object.metadata.has_finalizer(FINALIZER) {
            return Ok(Next::Done);
        }
        let holding = {
            let mut allocator = self.allocator.lock();
            // The cache may be ahead of the watch's handlers.
            allocator.terminate(&object.metadata.uid);
            allocator.holding(&object.body.spec.ranges())
        };
        match holding {
            Holding::Unknown => Ok(Next::After(LIST_PAUSE)),
            Holding::Unused => {
                let released = self.client.remove_finalizer(object, FINALIZER).await;
                released.map(|_| Next::Done).map_err(manager::retry)
            }
            Holding::By(_) => {
                let is_in_use = error.is_none();
                let next = self.show(object, error, Some(holding)).await?;
                // The allocator tells when the ranges that it knows are free.
                Ok(if is_in_use { next } else { Next::After(LOOK_AGAIN) })
            }
        }
    }

    /// An event, once for each error.
    fn tell(&self, object: &Object<ClusterCidr>, error: &SpecError) {
        let metadata = &object.metadata;
        let told = Some((Arc::clone(&metadata.uid), error.clone()));
        let mut said = self.said.lock();
        let said = said.entry(Arc::clone(&metadata.key)).or_default();
        if said.error == told {
            return;
        }
        said.error = told;
        let message = format!("cannot use ClusterCIDR {}: {error}", metadata.name());
        self.recorder.event(about(object), EventType::Warning, "InvalidClusterCIDR", message);
    }

    /// An event when no Node has blocks of a draining ClusterCIDR any more, once for each drain. The
    /// status remembers it for the next leader.
    fn tell_drained(&self, object: &Object<ClusterCidr>, draining: Option<Holding>) {
        let metadata = &object.metadata;
        let mut said = self.said.lock();
        let told = &mut said.entry(Arc::clone(&metadata.key)).or_default().drained;
        let is_drained = draining == Some(Holding::Unused);
        let mut conditions = object.status.conditions.iter();
        let is_known = told.as_ref() == Some(&metadata.uid)
            || conditions.any(|it| it.kind == "Draining" && it.reason == DRAINED);
        *told = is_drained.then(|| Arc::clone(&metadata.uid));
        if is_drained && !is_known {
            let name = metadata.name();
            let message = format!(
                "ClusterCIDR {name} is drained: no Node has blocks of it; it can be deleted"
            );
            self.recorder.event(about(object), EventType::Normal, "PoolDrained", message);
        }
    }

    async fn show(
        &self,
        object: &Arc<Object<ClusterCidr>>,
        error: Option<SpecError>,
        terminating: Option<Holding>,
    ) -> Result<Next, Retry> {
        let facts = self.facts(object, error, terminating);
        if facts.draining == Some(Holding::Unknown) {
            return Ok(Next::After(LIST_PAUSE));
        }
        self.tell_drained(object, facts.draining);
        let mut status = object.status.clone();
        facts.publish(&mut status, wall_now());
        if status == object.status {
            return Ok(Next::Done);
        }
        if let Some(pause) = self.pause(&object.metadata.key) {
            return Ok(Next::After(pause));
        }
        let now = wall_now();
        let written = self.client.change_status(object, |_, status| facts.publish(status, now));
        match written.await {
            Ok(_) | Err(Error { why: Why::Gone, .. }) => Ok(Next::Done),
            Err(error) => Err(manager::retry(error)),
        }
    }

    /// How long the status is not to be written yet; from now on counts when there is no such time.
    fn pause(&self, name: &Arc<str>) -> Option<Duration> {
        let now = Instant::now();
        let mut said = self.said.lock();
        let said = said.entry(Arc::clone(name)).or_default();
        let due = said.status_at.map(|at| at + STATUS_EVERY).filter(|due| *due > now);
        if due.is_none() {
            said.status_at = Some(now);
        }
        due.map(|due| due.saturating_duration_since(now))
    }

    fn facts(
        &self,
        object: &Object<ClusterCidr>,
        error: Option<SpecError>,
        terminating: Option<Holding>,
    ) -> Facts {
        let (allocator, uid) = (self.allocator.lock(), &object.metadata.uid);
        let ranges = allocator.use_of(uid).unwrap_or_default();
        let draining = allocator.draining_nodes(uid).filter(|_| terminating.is_none());
        Facts { error, terminating, draining, ranges, generation: object.metadata.generation }
    }
}

/// Input of the status of a ClusterCIDR.
#[derive(Debug)]
pub(super) struct Facts {
    /// Why it cannot be used.
    pub(super) error: Option<SpecError>,
    /// Set while it is being deleted: the Nodes that have addresses of it.
    pub(super) terminating: Option<Holding>,
    /// Set while it is draining: the Nodes that have blocks of it.
    pub(super) draining: Option<Holding>,
    /// How full its ranges are; none when something is wrong with it.
    pub(super) ranges: Vec<RangeUse>,
    /// `metadata.generation`.
    pub(super) generation: i64,
}

impl Facts {
    /// Says all of it, and takes nothing else away.
    pub(super) fn publish(&self, status: &mut ClusterCidrStatus, now: Timestamp) {
        for (kind, (holds, reason, message)) in [
            ("Ready", self.ready()),
            ("Exhausted", self.exhausted()),
            ("Terminating", self.in_deletion()),
            ("Invalid", self.invalid()),
            ("Draining", self.in_drain()),
        ] {
            let condition = Condition {
                observed_generation: Some(self.generation),
                ..Condition::new(kind, holds, reason, message)
            };
            set_status_condition(&mut status.conditions, condition, now);
        }
        let number = |blocks: u128| i64::try_from(blocks).unwrap_or(i64::MAX);
        let ranges = self.ranges.iter().map(|range| RangeStatus {
            cidr: cidr::canonical(&range.cidr),
            total: number(range.blocks),
            used: number(range.used),
        });
        status.families = ranges.collect();
    }

    fn ready(&self) -> Fact {
        if self.terminating.is_some() {
            let message = "the ClusterCIDR is being deleted and assigns no more blocks";
            return (false, "Terminating", message.to_owned());
        }
        match &self.error {
            Some(error) => (false, "Invalid", error.to_string()),
            None if self.draining.is_some() => {
                let message = "the ClusterCIDR is draining and assigns no more blocks";
                (false, "Draining", message.to_owned())
            }
            None => (true, "Ready", String::new()),
        }
    }

    fn exhausted(&self) -> Fact {
        match self.ranges.iter().find(|range| range.used >= range.blocks) {
            Some(RangeUse { cidr, .. }) => {
                (true, "NoFreeBlock", format!("{} has no free block", cidr::canonical(cidr)))
            }
            None => (false, "BlocksLeft", String::new()),
        }
    }

    fn in_deletion(&self) -> Fact {
        let message = match self.terminating {
            None => return (false, "NotDeleted", String::new()),
            Some(Holding::By(1)) => {
                "1 Node has addresses of this ClusterCIDR; the ClusterCIDR is deleted after that \
                 Node"
                    .to_owned()
            }
            Some(Holding::By(nodes)) => {
                format!(
                    "{nodes} Nodes have addresses of this ClusterCIDR; the ClusterCIDR is \
                     deleted after the last of them"
                )
            }
            Some(Holding::Unused | Holding::Unknown) => String::new(),
        };
        (true, "Deleted", message)
    }

    fn in_drain(&self) -> Fact {
        let (reason, nodes) = match self.draining {
            None => return (false, "NotDraining", String::new()),
            Some(Holding::By(1)) => return (true, "NodesLeft", "1 Node left".into()),
            Some(Holding::By(nodes)) => ("NodesLeft", nodes),
            Some(Holding::Unused | Holding::Unknown) => (DRAINED, 0),
        };
        (true, reason, format!("{nodes} Nodes left"))
    }

    fn invalid(&self) -> Fact {
        match &self.error {
            Some(error) => (true, "InvalidClusterCIDR", error.to_string()),
            None => (false, "Valid", String::new()),
        }
    }
}

fn about(object: &Object<ClusterCidr>) -> ObjectRef {
    spec::object_ref(object.metadata.name(), &object.metadata.uid)
}

/// Whether it holds, reason, message.
type Fact = (bool, &'static str, String);

#[cfg(test)]
mod tests;
