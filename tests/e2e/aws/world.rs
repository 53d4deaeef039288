//! [`World`]: moto, the proxy before it, and the process that works on one cluster, which may die and come back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aws::{Account, Credentials, Executor, Metrics, Options, Rate, Rates, Surroundings, run_leg};
use aws_network::{Goal, Memory, Pass, Rest, Timestamp};
use fence::Fence;
use parking_lot::Mutex;
use prometheus::Registry;
use tests::PATIENCE;
use tests::aws_proxy::AwsProxy;
use tests::moto::Moto;

use crate::fixtures::identity;

/// Where the clusters are.
pub(crate) const REGION: &str = "us-east-2";

/// No test waits for its turn, but those about turns.
const UNHURRIED: Rate = Rate { per_second: 1e6, burst: 1000 };

pub(crate) struct World {
    pub(crate) proxy: AwsProxy,
    pub(crate) fence: Fence,
    account: Account,
    pub(crate) registry: Registry,
    /// The status of the object.
    memory: Mutex<Memory>,
    clock: AtomicU64,
    /// How many patches of the status end well before the process dies in one.
    stores_left: AtomicUsize,
    _moto: Moto,
}

impl World {
    /// None, and a word about it, where moto cannot run.
    pub(crate) async fn new() -> Option<Self> {
        Self::with_rates(Rates { read: UNHURRIED, write: UNHURRIED }).await
    }

    pub(crate) async fn with_rates(rates: Rates) -> Option<Self> {
        if let Some(reason) = tests::moto::missing() {
            println!("{reason}");
            return None;
        }
        let moto = Moto::start().await;
        let proxy = AwsProxy::start(&moto).await;
        let registry = Registry::new();
        let options = Options {
            controller: "awscluster",
            endpoint: Some(proxy.url()),
            credentials: Some(Credentials::new("AKIATEST", "planted-secret", None, None, "test")),
            // A busy machine is no lost answer.
            request_timeout: PATIENCE,
            rates,
        };
        let account = Account::load(options, Metrics::new(&registry).unwrap()).await;
        Some(Self {
            proxy,
            fence: Fence::always_open(),
            account,
            registry,
            memory: Mutex::default(),
            clock: AtomicU64::new(1_800_000_000),
            stores_left: AtomicUsize::new(usize::MAX),
            _moto: moto,
        })
    }

    pub(crate) fn executor(&self) -> Executor {
        Executor::new(self.account.region(REGION), &identity(), self.fence.clone())
    }

    pub(crate) fn memory(&self) -> Memory {
        self.memory.lock().clone()
    }

    pub(crate) fn lose_status(&self) {
        *self.memory.lock() = Memory::default();
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// So many patches of the status are stored, and in the next one the process dies.
    pub(crate) fn die_at_store(&self, number: usize) {
        self.stores_left.store(number, Ordering::Relaxed);
    }

    /// Runs to the end of the way; a process that dies comes back.
    pub(crate) async fn run(&self, goal: &Goal) -> (Pass, Rest) {
        for _ in 0..4 {
            if let Some(end) = self.live(goal).await {
                return end;
            }
            self.come_back().await;
        }
        panic!("the process dies again and again");
    }

    /// Runs until the process dies; none when it has.
    pub(crate) async fn live(&self, goal: &Goal) -> Option<(Pass, Rest)> {
        tokio::select! {
            ended = self.work(goal) => Some(ended),
            () = self.proxy.died() => None,
        }
    }

    /// Waits until nothing of a dead process is on its way any more, and lets another one live.
    pub(crate) async fn come_back(&self) {
        self.proxy.revive().await;
        self.stores_left.store(usize::MAX, Ordering::Relaxed);
        self.advance(1);
    }

    async fn work(&self, goal: &Goal) -> (Pass, Rest) {
        let executor = self.executor();
        let mut pass = Pass::new(goal.clone(), self.memory());
        for _ in 0..200 {
            match run_leg(&mut pass, &executor, self).await {
                Rest::For(seconds) => {
                    self.advance(seconds);
                    pass.resume();
                }
                rest => return (pass, rest),
            }
        }
        panic!("no end: {:#?}\n{:#?}", pass.plan(), pass.problems());
    }

    /// Forgets the calls, lets half an hour pass, and runs.
    pub(crate) async fn run_later(&self, goal: &Goal) -> (Pass, Rest) {
        self.proxy.forget();
        self.advance(1800);
        self.run(goal).await
    }

    /// Begins anew with nothing.
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
        calls.filter(|call| call.is_write()).map(|call| call.action).collect()
    }
}

impl Surroundings for World {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Relaxed))
    }

    async fn store(&self, memory: &Memory) -> bool {
        if self.stores_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.proxy.kill();
            std::future::pending::<()>().await;
        }
        *self.memory.lock() = memory.clone();
        true
    }
}
