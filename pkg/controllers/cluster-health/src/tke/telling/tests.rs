//! What is told of one Cluster, with caches and an API server that are scripted.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use api_server_double::{ApiServer, Reply};
use futures::stream::{BoxStream, StreamExt as _, pending, poll_fn};
use informer::{Format, Informer, InformerMetrics, Server, Source};
use model::{Cached, Kind, Metadata, Resource};
use parking_lot::Mutex;
use probe::{Client, ConnectionLimits, Meters, Names};
use prometheus::Registry as Metrics;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use workqueue::{Backoff, Jitter, QueueMetrics, WorkQueue};

use super::super::fetch::Fetch;
use super::super::watching::{Secrets, heed};
use super::*;
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::engine::tests::scene::{Scene, target};
use crate::engine::{Flavour, Registry};
use crate::options::judge;
use crate::tke::testing::cluster;
use crate::tke::{Clusters, SummaryMetrics};

const S: fn(u64) -> Duration = Duration::from_secs;
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30), Jitter::Around(0.5));

struct Bench {
    engine: Scene,
    watching: Watching,
    /// What the watch of Clusters tells.
    changes: UnboundedSender<Value>,
    credentials: Arc<Credentials>,
}

/// The ClusterCredentials of the management API.
#[derive(Default)]
struct Credentials {
    refused: AtomicBool,
    absent: AtomicBool,
    /// Part of the token.
    rotations: AtomicUsize,
}

impl Credentials {
    fn answer(&self) -> Reply {
        if self.refused.load(Ordering::Relaxed) {
            return Reply::failure(500, "InternalError");
        }
        let token = format!("token-{}", self.rotations.load(Ordering::Relaxed));
        let one = json!({"metadata": {"name": "cc-1"}, "clusterName": "cls-1", "token": token});
        let items = if self.absent.load(Ordering::Relaxed) { vec![] } else { vec![one] };
        Reply::Json(200, json!({"items": items}))
    }
}

impl Bench {
    /// `listed` are the Clusters of the first list.
    async fn start(listed: &[&Value]) -> Self {
        let engine = Scene::new(0);
        let (changes, told) = unbounded_channel();
        let listed = listed.iter().copied().cloned().collect();
        let clusters: Informer<Object<Cluster>> = informer(&CLUSTERS, listed, told).await;
        let (_, nothing) = unbounded_channel();
        let metadata = informer::<Metadata>(&CLUSTER_CREDENTIALS, vec![], nothing).await;
        let credentials = Arc::<Credentials>::default();
        let asked = Arc::clone(&credentials);
        let management = ApiServer::new(move |_| asked.answer()).client();
        let flavour = flavour();
        let registry =
            Registry::new(Arc::clone(&flavour) as Arc<dyn Flavour>, Arc::clone(&engine.shared));
        let metrics = QueueMetrics::new(&Metrics::new()).unwrap();
        let queue = WorkQueue::new("clusters", BACKOFF, &metrics);
        let (sides, machines) = (
            WorkQueue::new("sides", BACKOFF, &metrics),
            WorkQueue::new("machines", BACKOFF, &metrics),
        );
        flavour.follow(clusters.clone(), registry.clone(), sides, machines);
        let secrets = metadata.clone();
        let watching = Watching {
            secrets: Secrets::by(move || secrets.clone(), None, &queue),
            flavour,
            registry,
            fetch: Fetch::new(management),
            recorder: engine.shared.recorder.clone(),
            clusters,
            credentials: metadata,
            queue,
            since: Timestamp::now(),
        };
        Self { engine, watching, changes, credentials }
    }

    /// Whether anything is known of it.
    fn knows(&self, object: &Object<Cluster>) -> (bool, bool) {
        let id = identity(object);
        let booked = self.watching.flavour.book.known(&id, |_| ()).is_some();
        (self.watching.registry.knows(&id), booked)
    }

    /// The client in use after its credential was looked up again.
    async fn client(&self, object: &Object<Cluster>) -> Arc<Client> {
        self.watching.flavour.book.doubt_way(&object.metadata.key);
        let way = self.watching.way(object, &identity(object)).await;
        way.ok().unwrap().client.ok().unwrap()
    }
}

fn flavour() -> Arc<Clusters> {
    let values = pflag::Values::from_given(crate::flags::FLAGS, [("", ""); 0]).unwrap();
    let mut options = judge(&values).unwrap().0.tke.unwrap();
    options.insecure_without_ca = true;
    let meters = Meters::new(&Metrics::new()).unwrap();
    let prober = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
    let metrics = SummaryMetrics::new(&Metrics::new(), true).unwrap();
    Arc::new(Clusters::new(options, Arc::new(prober), metrics))
}

async fn informer<T: Cached>(
    kind: &Resource,
    listed: Vec<Value>,
    told: UnboundedReceiver<Value>,
) -> Informer<T> {
    let told = Mutex::new(Some(told));
    let server = ApiServer::new(move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") => Reply::Watch(events(told.lock().take())),
        _ => Reply::Json(200, json!({"metadata": {"resourceVersion": "8"}, "items": listed})),
    });
    let metrics = InformerMetrics::new(&Metrics::new(), "test").unwrap();
    let source = Source::new(Server::own(server.client()), Kind::BuiltIn(kind.clone()));
    let cache = Informer::new(source, &metrics, Format::Json);
    let running = cache.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    cache.synced().await;
    cache
}

/// What is told, and then nothing more on an open connection.
fn events(told: Option<UnboundedReceiver<Value>>) -> BoxStream<'static, Value> {
    let Some(mut told) = told else { return pending().boxed() };
    poll_fn(move |cx| told.poll_recv(cx)).chain(pending()).boxed()
}

/// An imported Cluster with these addresses, as it is sent.
fn sent(addresses: &[(&str, u16)], status: impl FnOnce(&mut Value)) -> Value {
    let at = |(host, port): &(&str, u16)| json!({"type": "Internal", "host": host, "port": port});
    let mut object = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
        "metadata": {"name": "cls-1", "uid": "u1", "resourceVersion": "7"},
        "spec": {"tenantID": "t", "type": "Imported"},
        "status": {"phase": "Running", "addresses": addresses.iter().map(at).collect::<Vec<_>>()},
    });
    status(&mut object);
    object
}

fn read(object: &Value) -> Object<Cluster> {
    cluster(|it| *it = object.clone())
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deleted_while_its_credential_is_read_leaves_nothing() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let there = Bench::start(&[&object]).await;
    let object = read(&object);
    assert!(there.watching.tell(&object, 0).await.is_ok());
    assert_eq!(there.knows(&object), (true, true));
    let gone = Bench::start(&[]).await;
    assert!(gone.watching.tell(&object, 0).await.is_ok());
    assert_eq!(gone.knows(&object), (false, false));
    gone.credentials.refused.store(true, Ordering::Relaxed);
    assert!(gone.watching.tell(&object, 0).await.is_err());
    assert_eq!(gone.knows(&object), (false, false), "it could not be read");
    gone.credentials.refused.store(false, Ordering::Relaxed);
    gone.credentials.absent.store(true, Ordering::Relaxed);
    let new = read(&sent(&[], |it| it["status"]["phase"] = "Initializing".into()));
    assert!(matches!(gone.watching.tell(&new, 0).await, Ok(Next::After(_))));
    assert_eq!(gone.knows(&new), (false, false), "it waited for its credential");
}

/// rule:addresses-are-known-by-their-last-answer
#[tokio::test]
async fn a_credential_that_was_touched_keeps_the_client_and_another_one_what_was_learnt() {
    let bench = Bench::start(&[]).await;
    // Whoever listens there by now is no API server.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let both = [("127.0.0.1", port), ("127.0.0.2", port)];
    let object = read(&sent(&both, |_| {}));
    let first = bench.client(&object).await;
    bench.watching.flavour.prober.look_around(&first, S(5)).await;
    assert_eq!(first.endpoints().down, 1);
    let touched = bench.client(&object).await;
    assert!(Arc::ptr_eq(&first, &touched), "the engine keeps it as well");
    bench.credentials.rotations.store(1, Ordering::Relaxed);
    let rotated = bench.client(&object).await;
    assert_ne!(first.fingerprint(), rotated.fingerprint());
    assert_eq!(rotated.endpoints(), first.endpoints());
    let others = read(&sent(&[both[1], both[0]], |_| {}));
    assert_eq!(bench.client(&others).await.endpoints().down, 0, "nobody knows of these");
}

/// rule:foreign-status-is-written-over
#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_else_changed_is_written_over_and_our_own_is_not() {
    let listed = sent(&[], |_| {});
    let bench = Bench::start(&[&listed]).await;
    let Watching { clusters, registry, flavour, .. } = &bench.watching;
    let _heard = heed(clusters, registry, flavour);
    let mut told = target(&bench.engine.members, "cls-1", 1);
    told.cluster = identity(&read(&listed));
    registry.upsert(told);
    sleep(S(15)).await;
    let api = &bench.engine.api;
    let ours = api.cluster("cls-1").unwrap();
    assert_eq!(ours["phase"], "Running");
    let writes = api.writes();
    let change = |version: &str, status: Value| {
        let object = sent(&[], |it| {
            it["metadata"]["resourceVersion"] = version.into();
            it["status"] = status;
        });
        bench.changes.send(json!({"type": "MODIFIED", "object": object})).unwrap();
    };
    change("9", ours.clone());
    sleep(S(1)).await;
    assert_eq!(api.writes(), writes, "our own write came back");
    let mut foreign = ours.clone();
    foreign["phase"] = "Failed".into();
    change("10", foreign);
    sleep(S(1)).await;
    assert_eq!(api.writes(), writes + 1);
    assert_eq!(api.cluster("cls-1").unwrap()["phase"], "Running");
}
