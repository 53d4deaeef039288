//! Many AWSClusters at rest in virtual time: how often AWS is read for them, and what they see.

use std::collections::BTreeSet;

use aws_network::Timestamp;
use workqueue::{
    Backoff, Jitter, Next, PanicLimit, QueueMetrics, Reconcile, ReconcileMetrics, Retry, WorkQueue,
    WorkerOptions, run_workers,
};

use super::super::*;
use super::{goal, gone};

/// Passes of many clusters at rest. Each takes a second.
struct Crowd {
    reconciliations: Reconciliations,
    goals: Mutex<HashMap<Arc<str>, &'static str>>,
    passes: Mutex<Vec<Look>>,
    /// When the last sweep began, where there are sweeps.
    swept: Option<Mutex<Instant>>,
    start: Instant,
}

struct Look {
    key: Arc<str>,
    /// When the pass began.
    at: Instant,
    /// When what it saw was read.
    seen: Instant,
    reads: u32,
}

const READS: u32 = 9;
const DEEP_READS: u32 = 4;
/// As `a_sweep_of_500_clusters_is_56_reads_and_61_with_ipv6` of the crate `aws` counts.
const SWEEP_READS: u32 = 61;
const PERIOD: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3600);

impl Crowd {
    fn new(has_sweeps: bool) -> Arc<Self> {
        let start = Instant::now();
        Arc::new(Self {
            reconciliations: Reconciliations::new(2.0),
            goals: Mutex::default(),
            passes: Mutex::default(),
            swept: has_sweeps.then(|| Mutex::new(start.checked_sub(HOUR).unwrap_or(start))),
            start,
        })
    }

    /// The reads of a look, and when what it saw was read.
    fn look(&self, is_judged: bool, now: Instant) -> (u32, Instant) {
        let Some(swept) = self.swept.as_ref().filter(|_| is_judged) else { return (READS, now) };
        let mut swept = swept.lock();
        if now - *swept <= PERIOD / 2 {
            return (0, *swept);
        }
        *swept = now;
        (SWEEP_READS, now)
    }

    /// Works on 500 clusters.
    fn work(self: &Arc<Self>) -> (WorkQueue<Arc<str>>, tokio::task::JoinHandle<()>) {
        let registry = prometheus::Registry::new();
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(300));
        let backoff = Backoff::doubling(first, longest, Jitter::None);
        let queue = WorkQueue::new("test", backoff, &QueueMetrics::new(&registry).unwrap());
        let metrics = ReconcileMetrics::new(&registry).unwrap().of_controller("test");
        let panics = PanicLimit::new(prometheus::IntCounter::new("panics", "panics").unwrap());
        let options = WorkerOptions { workers: 5, limit: HOUR, ready: None, metrics, panics };
        for number in 0..500 {
            queue.add(Arc::from(format!("ns/{number}")));
        }
        let (from, crowd) = (queue.clone(), Arc::clone(self));
        let workers = async move { run_workers(from, crowd, options).await.unwrap() };
        (queue, tokio::spawn(workers))
    }

    /// The passes of the next hour.
    async fn hour(&self) -> Vec<Look> {
        self.passes.lock().clear();
        tokio::time::sleep(HOUR).await;
        std::mem::take(&mut *self.passes.lock())
    }

    /// Fails unless a change of a cluster is acted on within five seconds.
    async fn acts_at_once(&self, queue: &WorkQueue<Arc<str>>) {
        let changed: Arc<str> = Arc::from("ns/7");
        let began = Instant::now();
        self.goals.lock().insert(Arc::clone(&changed), "another");
        queue.add(Arc::clone(&changed));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let passes = std::mem::take(&mut *self.passes.lock());
        let of_it = passes.iter().find(|it| it.key == changed && it.at >= began).expect("a pass");
        assert!(of_it.at - began <= Duration::from_secs(5), "{:?}", of_it.at - began);
        assert_eq!(of_it.seen, of_it.at, "it reads for itself");
    }
}

impl Reconcile for Crowd {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let mut wanted = goal(self.goals.lock().get(key).copied().unwrap_or("as ever"));
        if let Goal::Absent(removal) = &mut wanted {
            removal.identity.owner_id = key.to_string();
        }
        let turn = self.reconciliations.turn(key, key, &wanted, "1/r", false, Memory::default);
        let is_judged = matches!(turn, Turn::Judge(_));
        let reconciliation = match turn {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Judge(reconciliation) => *reconciliation,
            turn => gone(turn),
        };
        let at = Instant::now();
        let (mut reads, seen) = self.look(is_judged, at);
        let now = Timestamp(at.duration_since(self.start).as_secs());
        let mut memory = reconciliation.memory().clone();
        if reconciliation.with_deep_check_period(HOUR.as_secs()).is_deep_check_due(now) {
            reads += if is_judged { DEEP_READS } else { 0 };
            memory.deep_checked = Some(now);
        }
        self.passes.lock().push(Look { key: Arc::clone(key), at, seen, reads });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let length = match self.swept {
            Some(_) if is_judged => PERIOD.saturating_sub(at - seen),
            _ => PERIOD.mul_f64(0.9 + 0.2 * resilience::draw()),
        };
        let by_sweep = self.swept.is_some();
        let pause = Pause { is_idle: true, by_sweep, reads, ..Pause::of(length) };
        let reconciliation = Reconciliation::new(wanted.clone(), memory);
        Ok(Next::After(self.reconciliations.keep(key, key, wanted, reconciliation, pause)))
    }
}

fn reads_of(passes: &[Look]) -> u32 {
    passes.iter().map(|it| it.reads).sum()
}

/// cluster-api-provider-aws#1275, #4192
#[tokio::test(start_paused = true)]
async fn of_500_clusters_at_rest_each_is_read_in_turn_and_a_change_is_acted_on_at_once() {
    let crowd = Crowd::new(false);
    let (queue, workers) = crowd.work();
    // All were looked at, and became due once more.
    tokio::time::sleep(HOUR / 2).await;
    let start = Instant::now();
    let passes = crowd.hour().await;
    let reads = reads_of(&passes);
    assert!((7000..=7200).contains(&reads), "{reads} reads in an hour");
    let within = |minutes: u64| {
        let until = start + Duration::from_secs(60 * minutes);
        let keys = passes.iter().take_while(|it| it.at < until).map(|it| &it.key);
        keys.collect::<BTreeSet<_>>().len()
    };
    assert!(within(41) == 500 && within(36) < 500, "each once in {} of 500", within(38));
    crowd.acts_at_once(&queue).await;
    queue.shut_down();
    workers.await.unwrap();
}

/// cluster-api-provider-aws#1275, #4192
#[tokio::test(start_paused = true)]
async fn of_500_clusters_that_share_sweeps_a_change_on_aws_is_seen_within_12_minutes() {
    let crowd = Crowd::new(true);
    let (queue, workers) = crowd.work();
    tokio::time::sleep(HOUR).await;
    for _ in 0..2 {
        let passes = crowd.hour().await;
        let (reads, sweeps) =
            (reads_of(&passes), passes.iter().filter(|it| it.reads >= SWEEP_READS));
        println!("{reads} reads in an hour, with {} sweeps", sweeps.count());
        assert!(reads <= 7200, "{reads} reads in an hour");
        let mut seen = HashMap::<&Arc<str>, &Look>::new();
        for look in &passes {
            // What changed right after the last look was read is seen now.
            let before = seen.insert(&look.key, look).map(|it| it.seen);
            let late = before.map_or(Duration::ZERO, |before| look.at - before);
            assert!(late <= Duration::from_secs(720), "{}: {late:?}", look.key);
        }
        assert_eq!(seen.len(), 500);
    }
    crowd.acts_at_once(&queue).await;
    queue.shut_down();
    workers.await.unwrap();
}
