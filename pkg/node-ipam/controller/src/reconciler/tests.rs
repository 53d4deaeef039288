//! A reconciler with a cache but without a manager, and starvation on a paused clock.

use api_server_double::{ApiServer, Reply, client, client_of_unchanging};
use cidr::Pool;
use events::{Broadcaster, EventMetrics};
use http::Method;
use informer::{InformerMetrics, Subscription};
use prometheus::{IntCounter, Registry};
use serde_json::{Value, json};
use tokio::time::sleep;
use workqueue::{
    Backoff, Jitter, PanicLimit, QueueMetrics, ReconcileMetrics, WorkerOptions, run_workers,
};

use super::*;
use crate::metrics::PoolsOf;
use crate::second_allocator::Hold;

mod outcomes;
mod second_allocator;
mod stop;

const POOL: &str = "10.0.0.0/24";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A reconciler whose cache is filled with `nodes`, and what has to live as long.
struct Bench {
    reconciler: Arc<Reconciler<Node>>,
    registry: Registry,
    _broadcaster: Broadcaster,
    _watching: Subscription<Node>,
}

impl Bench {
    /// `mask` decides how many blocks [`POOL`] has.
    async fn new(api: NodeApi, events: kube::Client, mask: u8, nodes: Vec<Value>) -> Self {
        Self::held_by(&Hold::default(), api, events, mask, nodes).await
    }

    /// Makes a bench with a hold that an earlier bench may have set.
    async fn held_by(
        hold: &Hold,
        api: NodeApi,
        events: kube::Client,
        mask: u8,
        nodes: Vec<Value>,
    ) -> Self {
        let registry = Registry::new();
        let pool = Pool::new(cidr::parse(POOL).unwrap(), mask, 16).unwrap();
        let cache = Informer::of_all(
            client_of_unchanging(nodes),
            &InformerMetrics::new(&registry, "test").unwrap(),
        );
        let queue = QueueMetrics::new(&registry).unwrap();
        let backoff = Backoff::doubling(ms(50), REMIND, Jitter::Around(0.5));
        let metrics = EventMetrics::new(&Registry::new()).unwrap();
        let (recorder, broadcaster) = events::start(events, "cidrAllocator", "test", metrics);
        let metrics = IpamMetrics::new(&registry, PoolsOf::Flags).unwrap();
        let (found, hold) = (metrics.second_allocators.clone(), hold.clone());
        let detector = Detector::new(api.clone(), recorder.clone(), found, hold.clone());
        let allocator = Allocator::new(vec![pool], &[]).holding_by(hold);
        let allocator = Arc::new(Mutex::new(allocator));
        let reconciler = Arc::new(Reconciler {
            events: NodeEvents::new(recorder, Arc::clone(&allocator)),
            allocator,
            nodes: cache.clone(),
            queue: WorkQueue::new("nodes", backoff, &queue),
            backlog: Backlog::default(),
            cluster_cidrs: None,
            detector: Arc::new(detector),
            api,
            metrics,
            accepted: LastAccepted::default(),
            dry_run: false,
            stop: CancellationToken::new(),
        });
        let watching = crate::node_work::watch(&cache, &reconciler);
        let running = cache.clone();
        tokio::spawn(async move { running.run(CancellationToken::new()).await });
        cache.synced().await;
        Self { reconciler, registry, _broadcaster: broadcaster, _watching: watching }
    }

    fn start_reconciling(&self, name: &str) -> tokio::task::JoinHandle<Result<Next, Retry>> {
        let (reconciler, name) = (self.reconciler.clone(), Arc::from(name));
        tokio::spawn(async move { reconciler.reconcile(&name).await })
    }

    fn unresolved(&self) -> usize {
        self.reconciler.allocator.lock().open_outcomes().len()
    }

    /// PATCHes that ended so.
    fn patched(&self, class: &str) -> f64 {
        let families = self.registry.gather();
        let family = families.iter().find(|f| f.name() == "node_ipam_patch_results_total");
        let of_class = |metric: &&prometheus::proto::Metric| {
            metric.get_label().iter().any(|label| label.value() == class)
        };
        let metric = family.and_then(|family| family.get_metric().iter().find(of_class));
        metric.map_or(0.0, |metric| metric.get_counter().get_value())
    }
}

fn node(name: &str, cidrs: &[&str]) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"podCIDRs": cidrs},
    })
}

/// A client for what must not happen.
fn no_server() -> kube::Client {
    client(|asked| {
        let what = format!("{} {}", asked.method(), asked.path());
        Reply::Fails(format!("unexpected request: {what}").into())
    })
}

/// An Event as the server got it.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    node: String,
    method: Method,
    count: u64,
    minute: u64,
}

/// A server for Events.
fn audience() -> (kube::Client, Arc<Mutex<Vec<Told>>>) {
    let (heard, began) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
    let sink = heard.clone();
    let client = client(move |asked| {
        let body = asked.json();
        let event = asked.path().rsplit('/').next().unwrap_or_default();
        let name = body["involvedObject"]["name"].as_str().or_else(|| event.split('.').next());
        let node = name.unwrap_or_default().to_owned();
        let count = body["count"].as_u64().unwrap_or_default();
        let minute = began.elapsed().as_secs() / 60;
        sink.lock().push(Told { node, method: asked.method().clone(), count, minute });
        Reply::stored(asked)
    });
    (client, heard)
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_starvation_make_one_event_per_node_per_5_minutes() {
    const STARVED: [&str; 3] = ["b", "c", "d"];
    let (events, heard) = audience();
    let mut nodes = vec![node("a", &[POOL])];
    nodes.extend(STARVED.map(|name| node(name, &[])));
    let bench = Bench::new(NodeApi::new(no_server(), ms(5000)), events, 24, nodes).await;
    let queue = bench.reconciler.queue.clone();
    let options = WorkerOptions {
        workers: 4,
        limit: ms(60_000),
        ready: None,
        metrics: ReconcileMetrics::new(&bench.registry).unwrap().of_controller("test"),
        panics: PanicLimit::new(IntCounter::new("panics", "Contained panics.").unwrap()),
    };
    tokio::spawn(run_workers(queue.clone(), bench.reconciler.clone(), options));

    // However often a Node is looked at meanwhile.
    for _ in 0..599 {
        sleep(ms(1000)).await;
        for name in STARVED {
            queue.add(name.into());
        }
    }
    let told = |name: &str| -> Vec<_> {
        heard.lock().iter().filter(|told| told.node == name).cloned().collect()
    };
    for name in STARVED {
        let event = |method, count, minute| Told { node: name.into(), method, count, minute };
        assert_eq!(told(name), [event(Method::POST, 1, 0), event(Method::PATCH, 2, 5)]);
    }
    sleep(ms(2000)).await;
    for name in STARVED {
        queue.add(name.into());
    }
    sleep(ms(1000)).await;
    for name in STARVED {
        assert_eq!(told(name).len(), 3, "the third is due after ten minutes: {:?}", told(name));
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_of_a_long_list_come_into_the_queue_as_it_empties() {
    let nodes = (0..IN_QUEUE + 2).map(|number| node(&format!("n{number:04}"), &[])).collect();
    let bench = Bench::new(NodeApi::new(no_server(), ms(5000)), no_server(), 24, nodes).await;
    let Reconciler { queue, .. } = &*bench.reconciler;
    assert_eq!(queue.len(), IN_QUEUE);
    for number in 0..4 {
        let item = queue.next().await.unwrap();
        assert_eq!(&**item, format!("n{number:04}"));
        // Whatever is handled, also one that is gone.
        let handled = bench.start_reconciling("gone").await.unwrap();
        assert!(matches!(handled, Ok(Next::Done)), "{handled:?}");
        assert_eq!(queue.len(), (IN_QUEUE + 1 - number).min(IN_QUEUE));
    }
}

fn two_nodes() -> Vec<Value> {
    vec![node("a", &[]), node("b", &[])]
}

#[tokio::test]
async fn nodes_of_a_later_list_come_behind_those_of_the_one_before() {
    let metrics = QueueMetrics::new(&Registry::new()).unwrap();
    let backoff = Backoff::doubling(ms(1), ms(1), Jitter::None);
    let (queue, backlog) = (WorkQueue::new("test", backoff, &metrics), Backlog::default());
    backlog.add(vec!["b".into(), "a".into()]);
    backlog.add(vec!["c".into()]);
    assert!(queue.is_empty());
    backlog.feed(&queue);
    for name in ["b", "a", "c"] {
        assert_eq!(&**queue.next().await.unwrap(), name);
    }
}
