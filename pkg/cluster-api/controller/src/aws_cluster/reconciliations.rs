//! [`Reconciliations`]: reconciliations between their passes, each with its goal and the time of
//! its next pass. A reconciliation goes on when its time has come or its goal has changed, not
//! because the object was written: our own status writes, and annotations of others, cost no call
//! to AWS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{Goal, Memory, Reconciliation};
use objects::Object;
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
    /// Reads of the pass that has ended.
    pub(super) reads: u32,
}

impl Pause {
    /// A pause until the next pass, of a reconciliation that waits for something.
    pub(super) fn of(length: Duration) -> Self {
        Self { length, publish: None, is_idle: false, reads: 0 }
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
            resting.due = idle.reserve(key, place, resting.reads);
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
        let Pause { is_idle, reads, .. } = rest;
        let uid = Arc::clone(uid);
        let resting = Resting { uid, goal, reconciliation, due, publish, is_idle, reads };
        let mut all = self.0.lock();
        all.idle.settle(key, reads);
        all.resting.insert(Arc::clone(key), resting);
        rest.publish.unwrap_or(rest.length).min(rest.length)
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
mod tests {
    use std::collections::BTreeSet;

    use aws_network::{Identity, Removal, ServiceResources, Timestamp};
    use workqueue::{
        Backoff, Jitter, Next, PanicLimit, QueueMetrics, Reconcile, ReconcileMetrics, Retry,
        WorkQueue, WorkerOptions, run_workers,
    };

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
                reconciliations: Reconciliations::new(2.0),
                key: Arc::from("ns/a"),
                uid: Arc::from("u"),
            }
        }

        fn turn(&self, goal: &Goal, now_anyway: bool) -> Turn {
            self.reconciliations.turn(&self.key, &self.uid, goal, "1/r", now_anyway, || memory(1))
        }

        fn keep(&self, goal: &Goal, reconciliation: Reconciliation, seconds: u64) {
            let rest = Pause::of(Duration::from_secs(seconds));
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
            bench
                .reconciliations
                .turn(&bench.key, &Arc::from("v"), &wanted, "1/r", false, || memory(3));
        assert_eq!(gone(turn).memory(), &memory(3));
        bench.keep(&wanted, Reconciliation::new(wanted.clone(), memory(2)), 10);
        bench.reconciliations.forget(&bench.key);
        assert_eq!(gone(bench.turn(&wanted, false)).memory(), &memory(1));
    }

    #[tokio::test(start_paused = true)]
    async fn another_goal_gets_a_deep_check_and_the_same_goal_keeps_its_time() {
        let (bench, wanted) = (Bench::new(), goal("c"));
        let checked = Memory { deep_checked: Some(Timestamp(5)), ..memory(2) };
        let keep = || bench.keep(&wanted, Reconciliation::new(wanted.clone(), checked.clone()), 10);
        keep();
        assert_eq!(gone(bench.turn(&wanted, true)).memory(), &checked);
        keep();
        assert_eq!(gone(bench.turn(&goal("d"), false)).memory(), &memory(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_published_is_published_again_while_the_rest_goes_on() {
        let (bench, wanted) = (Bench::new(), goal("c"));
        let seconds = Duration::from_secs;
        let reconciliation = Reconciliation::new(wanted.clone(), memory(2));
        let rest = Pause { publish: Some(seconds(15)), ..Pause::of(seconds(600)) };
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

    /// Passes of many clusters at rest. Each takes a second and nine reads.
    struct Crowd {
        reconciliations: Reconciliations,
        goals: Mutex<HashMap<Arc<str>, &'static str>>,
        /// When each pass began, and for which cluster.
        passes: Mutex<Vec<(Instant, Arc<str>)>>,
    }

    const READS: u32 = 9;

    impl Reconcile for Crowd {
        type Key = Arc<str>;

        async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
            let wanted = goal(self.goals.lock().get(key).copied().unwrap_or("as ever"));
            let turn = self.reconciliations.turn(key, key, &wanted, "1/r", false, Memory::default);
            let reconciliation = match turn {
                Turn::Rest(left) => return Ok(Next::After(left)),
                turn => gone(turn),
            };
            self.passes.lock().push((Instant::now(), Arc::clone(key)));
            tokio::time::sleep(Duration::from_secs(1)).await;
            let pause = Pause {
                is_idle: true,
                reads: READS,
                ..Pause::of(Duration::from_secs(600).mul_f64(rand::random_range(0.9..1.1)))
            };
            Ok(Next::After(self.reconciliations.keep(key, key, wanted, reconciliation, pause)))
        }
    }

    /// cluster-api-provider-aws#1275, #4192
    #[tokio::test(start_paused = true)]
    async fn of_500_clusters_at_rest_each_is_read_in_turn_and_a_change_is_acted_on_at_once() {
        const HOUR: Duration = Duration::from_secs(3600);
        let crowd = Arc::new(Crowd {
            reconciliations: Reconciliations::new(2.0),
            goals: Mutex::default(),
            passes: Mutex::default(),
        });
        let registry = prometheus::Registry::new();
        let backoff =
            Backoff::doubling(Duration::from_secs(1), Duration::from_secs(300), Jitter::None);
        let queue = WorkQueue::new("test", backoff, &QueueMetrics::new(&registry).unwrap());
        let metrics = ReconcileMetrics::new(&registry).unwrap().of_controller("test");
        let panics = PanicLimit::new(prometheus::IntCounter::new("panics", "panics").unwrap());
        let options = WorkerOptions { workers: 5, limit: HOUR, ready: None, metrics, panics };
        for number in 0..500 {
            queue.add(Arc::from(format!("ns/{number}")));
        }
        let workers = tokio::spawn(run_workers(queue.clone(), Arc::clone(&crowd), options));
        // All were looked at, and became due once more.
        tokio::time::sleep(HOUR / 2).await;
        let start = Instant::now();
        crowd.passes.lock().clear();
        tokio::time::sleep(HOUR).await;
        let passes = std::mem::take(&mut *crowd.passes.lock());
        let reads = READS * u32::try_from(passes.len()).unwrap();
        assert!((7000..=7200).contains(&reads), "{reads} reads in an hour");
        let within = |minutes: u64| {
            let until = start + Duration::from_secs(60 * minutes);
            let keys = passes.iter().take_while(|(at, _)| *at < until).map(|(_, key)| key);
            keys.collect::<BTreeSet<_>>().len()
        };
        assert!(within(41) == 500 && within(36) < 500, "each once in {} of 500", within(38));

        let changed: Arc<str> = Arc::from("ns/7");
        let began = Instant::now();
        crowd.goals.lock().insert(Arc::clone(&changed), "another");
        queue.add(Arc::clone(&changed));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let passes = std::mem::take(&mut *crowd.passes.lock());
        let of_it = passes.iter().find(|(_, key)| *key == changed).expect("a pass");
        assert!(of_it.0 - began <= Duration::from_secs(5), "{:?}", of_it.0 - began);
        queue.shut_down();
        workers.await.unwrap().unwrap();
    }
}
