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
mod tests {
    use std::collections::BTreeSet;

    use aws_network::{Identity, Removal, ServiceResources, Timestamp};

    use super::*;

    fn goal(cluster: &str) -> Goal {
        Goal::Absent(Removal {
            identity: Identity {
                cluster: cluster.to_owned(),
                owner_id: "o".to_owned(),
                owner_tag: "t".to_owned(),
                adopt: false,
            },
            vpc_id: None,
            load_balancer_names: Vec::new(),
            named_groups: BTreeSet::new(),
            service_resources: ServiceResources::Stay,
            deletes_free_interfaces: false,
        })
    }

    fn memory(since: u64) -> Memory {
        Memory { deleting_since: Some(Timestamp(since)), ..Memory::default() }
    }

    struct Bench {
        reconciliations: Reconciliations,
        key: Arc<str>,
        uid: Arc<str>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                reconciliations: Reconciliations::default(),
                key: Arc::from("ns/a"),
                uid: Arc::from("u"),
            }
        }

        fn turn(&self, goal: &Goal, now_anyway: bool) -> Turn {
            self.reconciliations.turn(&self.key, &self.uid, goal, now_anyway, || memory(1))
        }

        fn keep(&self, goal: &Goal, reconciliation: Reconciliation, seconds: u64) {
            let rest = Pause { length: Duration::from_secs(seconds), publish: None };
            self.reconciliations.keep(&self.key, &self.uid, goal.clone(), reconciliation, rest);
        }
    }

    fn gone(turn: Turn) -> Reconciliation {
        match turn {
            Turn::Go(reconciliation) => *reconciliation,
            turn => panic!("it does not go on: {turn:?}"),
        }
    }

    fn rests(turn: &Turn) -> Duration {
        match turn {
            Turn::Rest(left) => *left,
            turn => panic!("it does not rest: {turn:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_rests_until_its_time_has_come_and_remembers_what_it_knew() {
        let (bench, wanted) = (Bench::new(), goal("c"));
        assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(1), "as it was stored");
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        assert_eq!(rests(&bench.turn(&wanted, false)), Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(rests(&bench.turn(&wanted, false)), Duration::from_secs(6));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(2), "as it was left");
    }

    #[tokio::test(start_paused = true)]
    async fn another_goal_and_news_end_a_rest_and_a_new_object_of_the_name_starts_again() {
        let (bench, wanted) = (Bench::new(), goal("c"));
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        assert_eq!(gone(bench.turn(&goal("d"), false)).memory(), &memory(2));
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        assert_eq!(gone(bench.turn(&wanted, true)).memory(), &memory(2));
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        let turn =
            bench.reconciliations.turn(&bench.key, &Arc::from("v"), &wanted, false, || memory(3));
        assert_eq!(gone(turn).memory(), &memory(3));
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        bench.reconciliations.forget(&bench.key);
        assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_published_is_published_again_while_the_rest_goes_on() {
        let (bench, wanted) = (Bench::new(), goal("c"));
        let seconds = Duration::from_secs;
        let reconciliation = Reconciliation::new(wanted.clone(), memory(2));
        let rest = Pause { length: seconds(600), publish: Some(seconds(15)) };
        let next = bench.reconciliations.keep(
            &bench.key,
            &bench.uid,
            wanted.clone(),
            reconciliation,
            rest,
        );
        assert_eq!(next, seconds(15));
        assert_eq!(rests(&bench.turn(&wanted, false)), seconds(15));
        tokio::time::advance(seconds(15)).await;
        let Turn::Publish(reconciliation, left) = bench.turn(&wanted, false) else {
            panic!("it is published again")
        };
        assert_eq!((reconciliation.memory(), left), (&memory(2), seconds(585)));
        bench.keep(&wanted, *reconciliation, 585);
        assert_eq!(rests(&bench.turn(&wanted, false)), seconds(585), "it was published");
    }
}
