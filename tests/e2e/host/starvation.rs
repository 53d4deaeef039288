//! Nothing starves the lease, in the worst case that can be made.
//!
//! The crates are put together as the process does it, inside the test, because no command line
//! makes a handler block or a worker spin. The work has a runtime of its own, so that it starves
//! nobody but those it is meant to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{ClientOptions, Clients, Profile, RequestMetrics, Throttle, ThrottleMetrics};
use election::{Election, ElectionConfig, ElectionMetrics, Elector, Leadership, Released};
use fence::Fence;
use http::Request;
use informer::{Informer, InformerMetrics};
use kube::client::Body;
use model::Node;
use prometheus::{IntCounter, Registry};
use tests::{Fault, Match, PATIENCE, mk_node};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use workqueue::{
    Backoff, Jitter, Next, PanicLimit, QueueMetrics, Reconcile, ReconcileMetrics, Retry, WorkQueue,
    WorkerOptions, run_workers,
};

use crate::scene::{Scene, lease_writes};

const ITEMS: usize = 10_000;
/// Threads of the work's runtime.
const THREADS: usize = 2;
/// More than the work's runtime has threads, and as many as node-ipam has.
const WORKERS: usize = 30;
/// Renewals come every 2 s with the default timings.
const GAP: Duration = Duration::from_secs(3);
const RENEWALS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_renewed_while_10_000_items_wait_a_handler_blocks_and_all_workers_spin() {
    let scene = Scene::set().await;
    mk_node("a").create(&scene.client).await;
    let registry = Registry::new();
    let clients =
        Clients::load(&options(&scene), &RequestMetrics::new(&registry).unwrap()).await.unwrap();
    let load = Load::start(&clients, &registry, &scene).await;
    let fence = Fence::closed();
    let elector = lead(&load, &clients, &registry, &fence).await;

    let renewed = scene.proxy.on(lease_writes()).then(Fault::None);
    load.take_all_threads().await;
    renewed.hit(RENEWALS).await;
    assert!(matches!(*elector.leadership().borrow(), Leadership::Leading));
    assert!(fence.check().is_ok(), "a leader may write");
    load.assert_still_on();
    assert_eq!(elector.release().await, Released::Freed);

    let renewals = scene.proxy.requests_like(&lease_writes());
    for pair in renewals.windows(2) {
        let gap = pair[1].arrived - pair[0].arrived;
        assert!(gap < GAP, "{gap:?} between two renewals");
    }
}

fn options(scene: &Scene) -> ClientOptions {
    ClientOptions {
        kubeconfig: Some(scene.proxy.kubeconfig().to_owned()),
        master: None,
        product: "infra-controller-manager".into(),
        version: "v0.0.0".into(),
        commit: "unknown".into(),
    }
}

/// Leads from inside the work's runtime, as the process does, after the work has its connection:
/// whatever of the elector is not its own, starves with them.
async fn lead(load: &Load, clients: &Clients, registry: &Registry, fence: &Fence) -> Elector {
    let config = ElectionConfig {
        namespace: "kube-system".into(),
        name: "infra-controller-manager".into(),
        identity: "test".into(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };
    let metrics = ElectionMetrics::new(registry).unwrap();
    let elector = {
        let _inside = load.runtime().enter();
        election::spawn(Election {
            config,
            clients: clients.clone(),
            metrics,
            fence: fence.clone(),
            on_event: Box::new(|_| ()),
            may_have_predecessor: Box::new(|| Box::pin(async { Ok(false) })),
        })
        .unwrap()
    };
    let leads = |state: &Leadership| matches!(state, Leadership::Leading);
    let mut leadership = elector.leadership();
    tokio::time::timeout(PATIENCE, leadership.wait_for(leads)).await.unwrap().unwrap();
    elector
}

/// A runtime that does everything wrong at once.
struct Load {
    /// Present until dropped.
    runtime: Option<Runtime>,
    on: Arc<AtomicBool>,
    blocked: Arc<AtomicBool>,
    spinning: Arc<AtomicUsize>,
    queue: WorkQueue<Arc<str>>,
    nodes: Informer<Node>,
}

impl Load {
    /// Every worker holds an item and waits for the throttle.
    async fn start(clients: &Clients, registry: &Registry, scene: &Scene) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .enable_all()
            .build()
            .unwrap();
        let (queue, nodes) = {
            let _inside = runtime.enter();
            let metrics = InformerMetrics::new(registry, "test").unwrap();
            let nodes = Informer::of_all(clients.build(profile(None)).unwrap(), &metrics);
            (queue_of_items(clients, registry), nodes)
        };
        let load = Self {
            runtime: Some(runtime),
            on: Arc::new(AtomicBool::new(true)),
            blocked: Arc::default(),
            spinning: Arc::default(),
            queue,
            nodes,
        };
        let first = Match::any().path("/version");
        until(|| !scene.proxy.requests_like(&first).is_empty()).await;
        until(|| load.queue.len() <= ITEMS - WORKERS).await;
        load
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("present until dropped")
    }

    async fn take_all_threads(&self) {
        self.block_a_handler().await;
        self.spin().await;
    }

    async fn block_a_handler(&self) {
        let (on, blocked) = (Arc::clone(&self.on), Arc::clone(&self.blocked));
        let told = self.nodes.subscribe(move |_| {
            blocked.store(true, Ordering::SeqCst);
            while on.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let nodes = self.nodes.clone();
        self.runtime().spawn(async move {
            let _told = told;
            nodes.run(CancellationToken::new()).await;
        });
        until(|| self.blocked.load(Ordering::SeqCst)).await;
    }

    /// Takes every thread that is left. The blocked handler has one of them already.
    async fn spin(&self) {
        for _ in 1..THREADS {
            let (on, spinning) = (Arc::clone(&self.on), Arc::clone(&self.spinning));
            self.runtime().spawn(async move {
                spinning.fetch_add(1, Ordering::SeqCst);
                while on.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
        until(|| self.spinning.load(Ordering::SeqCst) == THREADS - 1).await;
    }

    /// The load was what it claims to be until now.
    fn assert_still_on(&self) {
        assert!(self.queue.len() > ITEMS - 2 * WORKERS, "only {} items wait", self.queue.len());
        let ran = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&ran);
        self.runtime().spawn(async move { mark.store(true, Ordering::SeqCst) });
        std::thread::sleep(Duration::from_millis(200));
        assert!(!ran.load(Ordering::SeqCst), "the work's runtime had a thread to spare");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.on.store(false, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Items that all have to pass a throttle, and their workers.
fn queue_of_items(clients: &Clients, registry: &Registry) -> WorkQueue<Arc<str>> {
    let backoff = Backoff::doubling(Duration::from_millis(50), PATIENCE, Jitter::Around(0.5));
    let queue = WorkQueue::new("items", backoff, &QueueMetrics::new(registry).unwrap());
    for item in 0..ITEMS {
        queue.add(item.to_string().into());
    }
    let options = WorkerOptions {
        workers: WORKERS,
        limit: Duration::from_secs(3600),
        ready: None,
        metrics: ReconcileMetrics::new(registry).unwrap().of_controller("load"),
        panics: PanicLimit::new(IntCounter::new("panics", "Contained panics.").unwrap()),
    };
    let work = Arc::new(Send(writer(clients, registry)));
    tokio::spawn(run_workers(queue.clone(), work, options));
    queue
}

async fn until(wanted: impl Fn() -> bool) {
    let began = Instant::now();
    while !wanted() {
        assert!(began.elapsed() < PATIENCE, "the load does not come about");
        tokio::time::sleep(Duration::from_millis(10)).await; // a flag can only be polled
    }
}

fn profile(throttle: Option<Throttle>) -> Profile {
    Profile { throttle, ..Profile::root("work") }
}

fn writer(clients: &Clients, registry: &Registry) -> kube::Client {
    let metrics = ThrottleMetrics::new(registry).unwrap();
    clients.build(profile(Throttle::new("work", 1.0, 1, &metrics).unwrap())).unwrap()
}

/// Sends something through the throttle for every item.
struct Send(kube::Client);

impl Reconcile for Send {
    type Key = Arc<str>;

    async fn reconcile(&self, _: &Arc<str>) -> Result<Next, Retry> {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        let _answered = client::answer(&self.0, request, PATIENCE).await.is_ok();
        Ok(Next::Done)
    }
}
