//! [`World`]: moto, the proxy before it, and the process that works on one cluster, which may die
//! and come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use aws::{Account, Credentials, Executor, Metrics, Options, PassHooks, Rate, Rates, run_pass};
use aws_fixtures::identity;
use aws_network::{Goal, Identity, Memory, Reconciliation, Rest, Timestamp};
use parking_lot::Mutex;
use prometheus::Registry;
use resilience::Fence;
use tests::PATIENCE;
use tests::aws_proxy::{AwsProxy, Call, Fate, Pace};
use tests::moto::Moto;
use tests::pool::Lent;

/// Region of the clusters.
pub(crate) const REGION: &str = "us-east-2";

/// No test waits for its turn, but those about turns.
const UNHURRIED: Rate = Rate { per_second: 1e6, burst: 1000 };

/// How long AWS may not show what was just made.
const LATE: Duration = Duration::from_secs(5);

pub(crate) struct World {
    pub(crate) proxy: AwsProxy,
    pub(crate) fence: Fence,
    account: Account,
    pub(crate) registry: Registry,
    /// Identity of the cluster.
    identity: Mutex<Identity>,
    /// The status of the object, by the owner's id.
    memories: Mutex<BTreeMap<String, Memory>>,
    clock: Arc<AtomicU64>,
    /// Number of patches of the status that succeed before the process dies in one.
    stores_left: AtomicUsize,
    _moto: Lent<Moto>,
}

impl World {
    /// Starts a world; `None`, with a message, where the tests on moto are left out.
    pub(crate) async fn new() -> Option<Self> {
        Box::pin(Self::with_rates(Rates { read: UNHURRIED, write: UNHURRIED })).await
    }

    pub(crate) async fn with_rates(rates: Rates) -> Option<Self> {
        if tests::moto::is_left_out() {
            return None;
        }
        let moto = Moto::lend().await;
        let proxy = AwsProxy::start(&moto).await;
        proxy.set_pace(Pace::SLOW);
        proxy.reset().await;
        let registry = Registry::new();
        let options = Options {
            controller: "awscluster",
            endpoint: Some(proxy.url()),
            region_endpoints: BTreeMap::new(),
            credentials: Some(Credentials::new("AKIATEST", "planted-secret", None, None, "test")),
            // A busy machine is no lost answer.
            request_timeout: PATIENCE,
            rates,
            sync_period: Duration::from_secs(600),
        };
        let account = Account::load(options, Metrics::new(&registry).unwrap()).await;
        Some(Self {
            proxy,
            fence: Fence::always_open(),
            account,
            registry,
            identity: Mutex::new(identity()),
            memories: Mutex::default(),
            clock: Arc::new(AtomicU64::new(1_800_000_000)),
            stores_left: AtomicUsize::new(usize::MAX),
            _moto: moto,
        })
    }

    /// An executor for this account, whatever account the credentials belong to.
    pub(crate) fn executor_for(&self, account: &str) -> Executor {
        let region = self.account.region_of(REGION, account);
        Executor::new(region, &self.identity.lock(), self.fence.clone())
    }

    pub(crate) async fn caller(&self) -> String {
        self.account.caller(REGION, None).await.unwrap()
    }

    pub(crate) fn executor(&self) -> Executor {
        self.executor_of(&self.identity.lock())
    }

    pub(crate) fn executor_of(&self, identity: &Identity) -> Executor {
        Executor::new(self.account.region(REGION), identity, self.fence.clone())
    }

    /// An executor of a replica that leads while this process does not.
    pub(crate) fn executor_of_another_replica(&self) -> Executor {
        let region = self.account.region(REGION);
        Executor::new(region, &self.identity.lock(), Fence::always_open())
    }

    /// Works on the cluster of this identity from now on.
    pub(crate) fn turn_to(&self, identity: &Identity) {
        *self.identity.lock() = identity.clone();
    }

    pub(crate) fn memory(&self) -> Memory {
        let owner = self.identity.lock().owner_id.clone();
        self.memories.lock().get(&owner).cloned().unwrap_or_default()
    }

    pub(crate) fn lose_status(&self) {
        self.memories.lock().remove(&self.identity.lock().owner_id);
    }

    /// Shows what is made only after five seconds of the world's clock, or at once.
    pub(crate) fn shows_late(&self, is_late: bool) {
        let clock = Arc::clone(&self.clock);
        let now = move || Duration::from_secs(clock.load(Ordering::Relaxed));
        self.proxy.shows_late(if is_late { LATE } else { Duration::ZERO }, now);
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Stores `number` patches of the status; the process dies during the next patch.
    pub(crate) fn die_at_store(&self, number: usize) {
        self.stores_left.store(number, Ordering::Relaxed);
    }

    /// Runs to the end of the way; a process that dies comes back, and another one follows who has
    /// lost the lease.
    pub(crate) async fn run(&self, goal: &Goal) -> (Reconciliation, Rest) {
        for _ in 0..4 {
            if let Some(end) = self.live(goal).await {
                return end;
            }
            self.come_back().await;
        }
        panic!("the process dies again and again");
    }

    /// Runs until the process dies or has lost the lease; none when it has.
    pub(crate) async fn live(&self, goal: &Goal) -> Option<(Reconciliation, Rest)> {
        tokio::select! {
            ended = self.work(goal) => ended,
            () = self.proxy.died() => None,
        }
    }

    /// Waits until nothing of a dead process is on its way any more, and lets another one live.
    pub(crate) async fn come_back(&self) {
        self.proxy.revive().await;
        self.fence.open_for(self.fence.read_clocks(), Duration::from_secs(3600));
        self.stores_left.store(usize::MAX, Ordering::Relaxed);
        self.advance(1);
    }

    async fn work(&self, goal: &Goal) -> Option<(Reconciliation, Rest)> {
        let executor = self.executor();
        let mut reconciliation = Reconciliation::new(goal.clone(), self.memory());
        for _ in 0..200 {
            let rest = run_pass(&mut reconciliation, &executor, self).await;
            self.fence.check().ok()?;
            match rest {
                Rest::For(seconds) => {
                    self.advance(seconds);
                    reconciliation.resume();
                }
                rest => return Some((reconciliation, rest)),
            }
        }
        panic!("no end: {:#?}\n{:#?}", reconciliation.plan(), reconciliation.problems());
    }

    /// Runs until the first rest.
    pub(crate) async fn attempt(&self, goal: &Goal) -> (Reconciliation, Rest) {
        self.attempts(goal, 1).await
    }

    /// Makes so many attempts, each after its rest.
    pub(crate) async fn attempts(&self, goal: &Goal, number: usize) -> (Reconciliation, Rest) {
        let executor = self.executor();
        let mut reconciliation = Reconciliation::new(goal.clone(), self.memory());
        let mut rest = run_pass(&mut reconciliation, &executor, self).await;
        for _ in 1..number {
            let Rest::For(seconds) = rest else { break };
            self.advance(seconds);
            reconciliation.resume();
            rest = run_pass(&mut reconciliation, &executor, self).await;
        }
        (reconciliation, rest)
    }

    /// The first call of each of these names meets its fate, all others pass. What is left of the
    /// names has not come.
    pub(crate) fn hit_first(
        &self,
        fates: &[(&'static str, Fate)],
    ) -> Arc<Mutex<BTreeMap<String, Fate>>> {
        let fates = fates.iter().map(|(action, fate)| ((*action).to_owned(), fate.clone()));
        let left = Arc::new(Mutex::new(fates.collect::<BTreeMap<_, _>>()));
        let deciding = Arc::clone(&left);
        self.proxy
            .decide(move |_, call| deciding.lock().remove(&call.action).unwrap_or(Fate::Pass));
        left
    }

    /// Calls of these names meet this fate, all others pass.
    pub(crate) fn hit_all(&self, fates: &[(&'static str, Fate)]) {
        let fates = fates.to_vec();
        self.proxy.decide(move |_, call| {
            let fate = fates.iter().find(|(action, _)| *action == call.action);
            fate.map_or(Fate::Pass, |(_, fate)| fate.clone())
        });
    }

    /// Forgets the calls, lets half an hour pass, and runs.
    pub(crate) async fn run_later(&self, goal: &Goal) -> (Reconciliation, Rest) {
        self.proxy.forget();
        self.advance(1800);
        self.run(goal).await
    }

    /// Resets the world to its empty start.
    pub(crate) async fn reset(&self) {
        self.proxy.reset().await;
        self.lose_status();
        self.advance(3600);
    }

    /// The names of the calls since they were last forgotten.
    pub(crate) fn actions(&self) -> Vec<String> {
        self.proxy.calls().into_iter().map(|call| call.action).collect()
    }

    /// The names of the writes among them.
    pub(crate) fn writes(&self) -> Vec<String> {
        let calls = self.proxy.calls().into_iter();
        calls.filter(Call::is_write).map(|call| call.action).collect()
    }
}

impl PassHooks for World {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Relaxed))
    }

    async fn store(&self, memory: &Memory) -> bool {
        if self.stores_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.proxy.kill();
            std::future::pending::<()>().await;
        }
        let owner = self.identity.lock().owner_id.clone();
        self.memories.lock().insert(owner, memory.clone());
        true
    }
}
