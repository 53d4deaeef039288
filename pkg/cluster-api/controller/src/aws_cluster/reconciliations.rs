//! [`Reconciliations`]: reconciliations between their passes, each with its goal and the time of
//! its next pass. A reconciliation goes on when its time has come or its goal has changed, not
//! because the object was written: our own status writes, and annotations of others, cost no call
//! to AWS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{Goal, Memory, Reconciliation};
use objects::{Object, ObjectMeta};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::idle_budget::IdleBudget;
use crate::api::ACCOUNT_ANNOTATION;
use crate::api::aws_cluster::AwsCluster;

/// By AWSCluster.
#[derive(Debug)]
pub(super) struct Reconciliations(Mutex<All>);

#[derive(Debug)]
struct All {
    resting: HashMap<Arc<str>, Resting>,
    idle: IdleBudget,
}

#[derive(Debug)]
struct Resting {
    uid: Arc<str>,
    goal: Goal,
    reconciliation: Reconciliation,
    due: Instant,
    /// When its result is published again before the next pass.
    publish: Option<Instant>,
    /// Its next pass has to wait for its turn, as long as nothing happens.
    is_idle: bool,
    /// Its next pass may be judged by a sweep.
    by_sweep: bool,
    /// Reads of the last pass.
    reads: u32,
}

/// The next step for an AWSCluster.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nothing for so long.
    Rest(Duration),
    /// This reconciliation, which rests for so long, has to publish its result again.
    Publish(Box<Reconciliation>, Duration),
    /// A pass of this reconciliation.
    Go(Box<Reconciliation>),
    /// A pass at rest of this reconciliation, which a sweep may judge.
    Judge(Box<Reconciliation>),
}

/// How long a reconciliation rests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// Until its next pass.
    pub(super) length: Duration,
    /// Until its result is published again, when what it lacks has nothing to do with AWS.
    pub(super) publish: Option<Duration>,
    /// All is as it shall be and nothing is awaited: the next pass draws on the [`IdleBudget`].
    pub(super) is_idle: bool,
    /// A sweep may judge the next pass, if the cluster is still idle.
    pub(super) by_sweep: bool,
    /// Reads of the pass that has ended.
    pub(super) reads: u32,
}

/// What a pass of its own is expected to read at least, after one that a sweep has judged.
const OWN_READS: u32 = 10;

impl Pause {
    /// A pause until the next pass, of a reconciliation that waits for something.
    pub(super) fn of(length: Duration) -> Self {
        Self { length, publish: None, is_idle: false, by_sweep: false, reads: 0 }
    }
}

/// The account and region whose reads at rest are limited together.
pub(super) fn place(object: &Object<AwsCluster>) -> String {
    let account = object.metadata.annotations.get(ACCOUNT_ANNOTATION);
    format!("{}/{}", account.map_or("", String::as_str), object.body.spec.region)
}

impl Reconciliations {
    /// None yet; with the reads in a second for those at rest.
    pub(super) fn new(idle_read_qps: f64) -> Self {
        let idle = IdleBudget::new(idle_read_qps);
        Self(Mutex::new(All { resting: HashMap::new(), idle }))
    }

    /// Whether a pass for this goal is due: the goal is another one than before, the rest is
    /// over, or `now_anyway`. A pass at rest also waits for its turn in its [`place`].
    ///
    /// `stored` is the memory of an AWSCluster that this process has not seen.
    pub(super) fn turn(
        &self,
        key: &Arc<str>,
        uid: &Arc<str>,
        goal: &Goal,
        place: &str,
        now_anyway: bool,
        stored: impl FnOnce() -> Memory,
    ) -> Turn {
        let mut all = self.0.lock();
        let All { resting: all, idle } = &mut *all;
        let resting = all.remove(key).filter(|resting| resting.uid == *uid);
        let Some(mut resting) = resting else {
            return Turn::Go(Box::new(Reconciliation::new(goal.clone(), stored())));
        };
        let is_same = resting.goal == *goal;
        let is_content = is_same || differs_in_publication(&resting.goal, goal);
        if !is_same {
            let mut memory = resting.reconciliation.memory().clone();
            if !is_content {
                // The spec may ask for attributes that only a deep look shows.
                memory.deep_checked = None;
            }
            resting.reconciliation = Reconciliation::new(goal.clone(), memory);
        }
        let mut left = resting.due.saturating_duration_since(Instant::now());
        if !is_content || now_anyway {
            // Not at rest: what was reserved is free again.
            idle.settle(key, 0);
        } else if left.is_zero() && std::mem::take(&mut resting.is_idle) {
            let least = if resting.by_sweep { 0 } else { OWN_READS };
            resting.due = idle.reserve(key, place, resting.reads.max(least));
            left = resting.due.saturating_duration_since(Instant::now());
        }
        if is_content && !now_anyway && !left.is_zero() {
            let silent = resting.publish.map(|at| at.saturating_duration_since(Instant::now()));
            if silent.is_some_and(|left| left.is_zero()) {
                return Turn::Publish(Box::new(resting.reconciliation), left);
            }
            resting.goal = goal.clone();
            all.insert(Arc::clone(key), resting);
            return Turn::Rest(silent.unwrap_or(left).min(left));
        }
        if is_same {
            resting.reconciliation.resume();
        }
        let by_sweep = resting.by_sweep && is_same && !now_anyway;
        let turn = if by_sweep { Turn::Judge } else { Turn::Go };
        turn(Box::new(resting.reconciliation))
    }

    /// Keeps a reconciliation that rests. Its next turn comes after the time that is returned.
    pub(super) fn keep(
        &self,
        key: &Arc<str>,
        uid: &Arc<str>,
        goal: Goal,
        reconciliation: Reconciliation,
        rest: Pause,
    ) -> Duration {
        let now = Instant::now();
        let (due, publish) = (now + rest.length, rest.publish.map(|after| now + after));
        let Pause { is_idle, by_sweep, reads, .. } = rest;
        let uid = Arc::clone(uid);
        let resting = Resting { uid, goal, reconciliation, due, publish, is_idle, by_sweep, reads };
        let mut all = self.0.lock();
        all.idle.settle(key, reads);
        all.resting.insert(Arc::clone(key), resting);
        rest.publish.unwrap_or(rest.length).min(rest.length)
    }

    /// The memory of a reconciliation that rests.
    pub(super) fn memory(&self, object: &ObjectMeta) -> Option<Memory> {
        let all = self.0.lock();
        let resting = all.resting.get(&object.key).filter(|resting| resting.uid == object.uid)?;
        Some(resting.reconciliation.memory().clone())
    }

    /// Forgets an AWSCluster: its next reconciliation reads everything.
    pub(super) fn forget(&self, key: &str) {
        let mut all = self.0.lock();
        all.resting.remove(key);
        all.idle.settle(key, 0);
    }
}

/// Whether nothing has happened but that the endpoint was published, after which no other load
/// balancer may be created.
fn differs_in_publication(before: &Goal, after: &Goal) -> bool {
    let (Goal::Present(before), Goal::Present(after)) = (before, after) else { return false };
    let mut published = before.clone();
    if let Some(balancer) = &mut published.load_balancer {
        balancer.may_be_created = false;
    }
    published == *after
}

#[cfg(test)]
mod tests;
