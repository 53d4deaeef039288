//! Starvation on a paused clock, and what a stop means for a PATCH that waits or is on its way.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use cidr::Pool;
use client::{ClientOptions, Clients, Profile, RequestMetrics, Throttle, ThrottleMetrics};
use events::{Broadcaster, EventMetrics};
use futures::stream::{self, StreamExt as _};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use informer::{InformerMetrics, Subscription};
use kube::client::Body;
use prometheus::{IntCounter, Registry};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use workqueue::{
    Backoff, Jitter, PanicLimit, QueueMetrics, ReconcileMetrics, WorkerOptions, run_workers,
};

use super::*;

const POOL: &str = "10.0.0.0/24";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A reconciler whose cache is filled with `nodes`, and what has to live as long.
struct Bench {
    reconciler: Arc<Reconciler>,
    registry: Registry,
    _broadcaster: Broadcaster,
    _watching: Subscription<Node>,
}

impl Bench {
    /// `mask` decides how many blocks [`POOL`] has.
    async fn new(api: NodeApi, events: kube::Client, mask: u8, nodes: Vec<Value>) -> Self {
        let registry = Registry::new();
        let pool = Pool::new(cidr::parse(POOL).unwrap(), mask, 16).unwrap();
        let cache =
            Informer::of_all(lists(nodes), &InformerMetrics::new(&registry, "test").unwrap());
        let queue = QueueMetrics::new(&registry).unwrap();
        let backoff = Backoff::doubling(ms(50), REMIND, Jitter::Around(0.5));
        let metrics = EventMetrics::new(&Registry::new()).unwrap();
        let (recorder, broadcaster) = events::start(events, "cidrAllocator", "test", metrics);
        let reconciler = Arc::new(Reconciler {
            allocator: Arc::new(Mutex::new(Allocator::new(vec![pool], &[]))),
            nodes: cache.clone(),
            queue: WorkQueue::new("nodes", backoff, &queue),
            api,
            recorder,
            metrics: IpamMetrics::new(&registry).unwrap(),
            stop: CancellationToken::new(),
        });
        let watching = crate::controller::watch(&cache, &reconciler);
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
        self.reconciler.allocator.lock().snapshot().unresolved
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

/// A server that has these Nodes and never another.
fn lists(nodes: Vec<Value>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut lines = Vec::new();
        if request.uri().query().unwrap_or_default().contains("sendInitialEvents=true") {
            lines.extend(nodes.iter().map(|node| json!({"type": "ADDED", "object": node})));
            let end = json!({"k8s.io/initial-events-end": "true"});
            let mark = json!({"metadata": {"resourceVersion": "2", "annotations": end}});
            lines.push(json!({"type": "BOOKMARK", "object": mark}));
        }
        let lines = lines.into_iter().map(|line| Ok::<_, io::Error>(format!("{line}\n").into()));
        let frames = stream::iter(lines).chain(stream::pending()).map(|line| line.map(Frame::data));
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(frames))) }
    });
    kube::Client::new(service, "default")
}

/// A client for what must not happen.
fn nobody() -> kube::Client {
    let service = tower::service_fn(|request: Request<Body>| async move {
        let what = format!("{} {}", request.method(), request.uri());
        Err::<Response<Body>, _>(io::Error::other(format!("nobody expects {what}")))
    });
    kube::Client::new(service, "default")
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
    let service = tower::service_fn(move |request: Request<Body>| {
        let sink = sink.clone();
        async move {
            let (head, body) = request.into_parts();
            let body: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap();
            let event = head.uri.path().rsplit('/').next().unwrap_or_default();
            let name = body["involvedObject"]["name"].as_str().or_else(|| event.split('.').next());
            let node = name.unwrap_or_default().to_owned();
            let count = body["count"].as_u64().unwrap_or_default();
            let minute = began.elapsed().as_secs() / 60;
            sink.lock().push(Told { node, method: head.method.clone(), count, minute });
            let stored = match head.method {
                Method::POST => body,
                _ => json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                            "metadata": {"name": "some"}}),
            };
            let stored = Body::from(stored.to_string().into_bytes());
            Ok::<_, kube::Error>(Response::new(stored))
        }
    });
    (kube::Client::new(service, "default"), heard)
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_starvation_make_one_event_per_node_per_5_minutes() {
    const STARVED: [&str; 3] = ["b", "c", "d"];
    let (events, heard) = audience();
    let mut nodes = vec![node("a", &[POOL])];
    nodes.extend(STARVED.map(|name| node(name, &[])));
    let bench = Bench::new(NodeApi::new(nobody(), ms(5000)), events, 24, nodes).await;
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
        assert_eq!(told(name).len(), 3, "the third is due after ten minutes: {:?}", told(name));
    }
}

/// An API server on a loopback port that answers PATCHes when it is told to.
struct Server {
    clients: Clients,
    metrics: ThrottleMetrics,
    patches: Arc<Mutex<Vec<String>>>,
    seen: watch::Receiver<usize>,
    answers: watch::Sender<bool>,
}

impl Server {
    async fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (count, seen) = watch::channel(0);
        let (answers, gate) = watch::channel(answers);
        let patches = Arc::new(Mutex::new(Vec::new()));
        let sink = patches.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sink, count, gate) = (sink.clone(), count.clone(), gate.clone());
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    assert_eq!(request.method(), Method::PATCH);
                    sink.lock().push(request.uri().path().to_owned());
                    count.send_modify(|count| *count += 1);
                    let mut gate = gate.clone();
                    async move {
                        let _open = gate.wait_for(|open| *open).await.is_ok();
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
                    }
                });
                let io = TokioIo::new(stream);
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(io, service),
                );
            }
        });
        let registry = Registry::new();
        let options = ClientOptions {
            kubeconfig: None,
            master: Some(format!("http://{address}")),
            product: "test".into(),
            version: "v0".into(),
            commit: "0".into(),
        };
        let clients =
            Clients::load(&options, &RequestMetrics::new(&registry).unwrap()).await.unwrap();
        let metrics = ThrottleMetrics::new(&registry).unwrap();
        Self { clients, metrics, patches, seen, answers }
    }

    /// Calls at most this often, after a first one at once.
    fn api(&self, qps: f64, patch_timeout: Duration) -> NodeApi {
        let throttle = Throttle::new("test", qps, 1, &self.metrics).unwrap();
        let client = self.clients.build(Profile { throttle, ..Profile::root("test") });
        NodeApi::new(client.unwrap(), patch_timeout)
    }

    async fn saw(&mut self, patches: usize) {
        let wait = self.seen.wait_for(|seen| *seen >= patches);
        timeout(ms(10_000), wait).await.expect("a PATCH arrives").unwrap();
    }

    fn answer(&self) {
        self.answers.send_replace(true);
    }
}

fn two_nodes() -> Vec<Value> {
    vec![node("a", &[]), node("b", &[])]
}

#[tokio::test]
async fn a_patch_that_waits_for_the_throttle_when_the_stop_comes_is_never_sent() {
    let server = Server::start(true).await;
    // The next token comes after 400 ms.
    let bench = Bench::new(server.api(2.5, ms(5000)), nobody(), 26, two_nodes()).await;
    assert_eq!(bench.start_reconciling("a").await.unwrap().unwrap(), Next::Done);
    let mut waiting = bench.start_reconciling("b");
    assert!(timeout(ms(100), &mut waiting).await.is_err(), "there was no token to wait for");
    bench.reconciler.stop.cancel();
    let ended = timeout(ms(200), waiting).await.expect("the wait ends with the stop");
    assert_eq!(ended.unwrap().unwrap(), Next::Done);
    sleep(ms(600)).await; // past the token
    assert_eq!(*server.patches.lock(), ["/api/v1/nodes/a"]);
    assert_eq!(bench.unresolved(), 0, "what was not sent needs no looking after");
}

#[tokio::test]
async fn a_patch_that_gets_its_token_in_the_moment_of_the_stop_is_withdrawn() {
    let server = Server::start(true).await;
    let bench = Bench::new(server.api(-1.0, ms(5000)), nobody(), 26, two_nodes()).await;
    let node = bench.reconciler.nodes.get("a").unwrap();
    let (assignment, _) = bench.reconciler.allocator.lock().assign(&node.uid);
    let Assignment::Send { cidrs, .. } = assignment else { panic!("{assignment:?}") };
    bench.reconciler.stop.cancel();
    let sent = Arc::new(AtomicBool::new(false));
    let work = Work { node: &node, cidrs: &cidrs, since: Instant::now() };
    let answer = bench.reconciler.send(&work, sent.clone()).await;
    assert!(matches!(answer, Err(CallError::Withdrawn)), "{answer:?}");
    assert!(!sent.load(Ordering::Relaxed));
    assert!(server.patches.lock().is_empty());
    assert_eq!(bench.unresolved(), 0);
}

#[tokio::test]
async fn a_patch_that_is_on_its_way_when_the_stop_comes_is_awaited() {
    let mut server = Server::start(false).await;
    let bench = Bench::new(server.api(-1.0, ms(5000)), nobody(), 26, two_nodes()).await;
    let mut under_way = bench.start_reconciling("a");
    server.saw(1).await;
    bench.reconciler.stop.cancel();
    assert!(timeout(ms(300), &mut under_way).await.is_err(), "its outcome is not known yet");
    assert_eq!(bench.unresolved(), 1);
    server.answer();
    assert_eq!(under_way.await.unwrap().unwrap(), Next::Done);
    assert_eq!(bench.unresolved(), 0);
    assert!((bench.patched("done") - 1.0).abs() < 0.1);
}

#[tokio::test]
async fn a_patch_that_is_never_answered_ends_after_its_time_and_stays_unresolved() {
    let mut server = Server::start(false).await;
    let bench = Bench::new(server.api(-1.0, ms(300)), nobody(), 26, two_nodes()).await;
    let under_way = bench.start_reconciling("a");
    server.saw(1).await;
    bench.reconciler.stop.cancel();
    let ended = timeout(ms(3000), under_way).await.expect("the PATCH has a time limit");
    assert_eq!(ended.unwrap().unwrap_err().pause(), Duration::ZERO);
    assert_eq!(bench.unresolved(), 1, "the lease must not be given back");
    assert!((bench.patched("ambiguous") - 1.0).abs() < 0.1);
}
