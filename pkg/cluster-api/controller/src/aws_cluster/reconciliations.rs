//! [`Reconciliations`]: reconciliations between their passes, each with its goal and the time of
//! its next pass. A reconciliation goes on when its time has come or its goal has changed, not
//! because the object was written: our own status writes, and annotations of others, cost no call
//! to AWS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{Goal, Memory, Reconciliation};
use parking_lot::Mutex;
use tokio::time::Instant;

/// By AWSCluster.
#[derive(Debug, Default)]
pub(super) struct Reconciliations(Mutex<HashMap<Arc<str>, Resting>>);

#[derive(Debug)]
struct Resting {
    uid: Arc<str>,
    goal: Goal,
    reconciliation: Reconciliation,
    due: Instant,
    /// When its result is published again before the next pass.
    publish: Option<Instant>,
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
}

/// How long a reconciliation rests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// Until its next pass.
    pub(super) length: Duration,
    /// Until its result is published again, when what it lacks has nothing to do with AWS.
    pub(super) publish: Option<Duration>,
}

impl Reconciliations {
    /// Whether a pass for this goal is due: the goal is another one than before, the rest is
    /// over, or `now_anyway`.
    ///
    /// `stored` is the memory of an AWSCluster that this process has not seen.
    pub(super) fn turn(
        &self,
        key: &Arc<str>,
        uid: &Arc<str>,
        goal: &Goal,
        now_anyway: bool,
        stored: impl FnOnce() -> Memory,
    ) -> Turn {
        let mut all = self.0.lock();
        let resting = all.remove(key).filter(|resting| resting.uid == *uid);
        let Some(mut resting) = resting else {
            return Turn::Go(Box::new(Reconciliation::new(goal.clone(), stored())));
        };
        let is_same = resting.goal == *goal;
        if !is_same {
            let memory = resting.reconciliation.memory().clone();
            resting.reconciliation = Reconciliation::new(goal.clone(), memory);
        }
        let left = resting.due.saturating_duration_since(Instant::now());
        let is_content = is_same || differs_in_publication(&resting.goal, goal);
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
        Turn::Go(Box::new(resting.reconciliation))
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
        let resting = Resting { uid: Arc::clone(uid), goal, reconciliation, due, publish };
        self.0.lock().insert(Arc::clone(key), resting);
        rest.publish.unwrap_or(rest.length).min(rest.length)
    }

    /// Forgets an AWSCluster: its next reconciliation reads everything.
    pub(super) fn forget(&self, key: &str) {
        self.0.lock().remove(key);
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
