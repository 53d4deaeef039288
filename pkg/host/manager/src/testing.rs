//! Shared by the tests of this crate: a runner that is a function, a context for it, an API server
//! of one object.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply};
use client::{ClientOptions, Clients, RequestMetrics, ThrottleMetrics};
use election::Won;
use events::{EventMetrics, ObjectRef};
use futures::future::BoxFuture;
use informer::{Format, InformerMetrics, Server};
use objects::OpenWrites;
use prometheus::{IntCounter, IntGauge, Registry};
use resilience::Fence;
use serde_json::{Value, json};
use serving::{Health, Pages, ServingMetrics};
use tokio_util::sync::CancellationToken;
use workqueue::{PanicLimit, QueueMetrics, ReconcileMetrics};

use crate::context::{ClientSource, Context, Failure, Settings};
use crate::controller::{Placement, Runner, Stopped};
use crate::informers::{Informers, InformersOptions};
use crate::permissions::{Permission, PermissionCheck, Subject};
use crate::work::{MadeOnce, Tasks, WatchedQueues, Work};

/// A server that pages its lists of this one object, and whose watches are silent.
pub(crate) fn server_of(object: Value) -> ApiServer {
    ApiServer::new(script_of(object))
}

/// The script of that server.
pub(crate) fn script_of(object: Value) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") => Reply::Silence,
        _ => Reply::Json(200, json!({"metadata": {"resourceVersion": "2"}, "items": [object]})),
    }
}

/// How many lists it was asked for, but for streamed ones, which it refuses.
pub(crate) fn lists(server: &ApiServer) -> usize {
    let is_list = |asked: &&Asked| !asked.query().contains("watch=true");
    server.asked().iter().filter(is_list).count()
}

/// Clients of a server that is never contacted.
pub(crate) async fn clients(registry: &Registry) -> Clients {
    let address = ClientOptions {
        kubeconfig: None,
        master: Some("http://127.0.0.1:1".into()),
        product: "test".into(),
        version: "v0".into(),
        commit: "0".into(),
    };
    Clients::load(&address, &RequestMetrics::new(registry).unwrap()).await.unwrap()
}

/// A context whose API server is this client.
pub(crate) async fn context(client: kube::Client) -> Context {
    let registry = Registry::new();
    let metrics = EventMetrics::new(&registry).unwrap();
    let (recorder, _nobody_listens) = events::start(client.clone(), "test", "test", metrics);
    let metrics = InformerMetrics::new(&registry, "test").unwrap();
    let fence = Fence::always_open();
    let throttles = ThrottleMetrics::new(&registry).unwrap();
    let clients = clients(&registry).await;
    let reconciles = ReconcileMetrics::new(&registry).unwrap();
    let panics = IntCounter::new("panics", "Contained panics.").unwrap();
    let limit = PanicLimit::new(panics.clone());
    let work = Work {
        queues: QueueMetrics::new(&registry).unwrap(),
        metrics: reconciles.of_controller("fake-controller"),
        controller: "fake-controller",
        registered: MadeOnce::default(),
        open_writes: OpenWrites::default(),
        watched: WatchedQueues::default(),
        tasks: Tasks::new(limit.clone()),
        panics: limit,
        rights: PermissionCheck {
            client: client.clone(),
            subject: Subject { account: "fake", by_account: false, manifest: None },
            missing: IntGauge::new("missing", "Missing rights.").unwrap(),
        },
    };
    registry.register(Box::new(panics)).unwrap();
    Context {
        clients: ClientSource::new(clients, "fake", false, fence.clone(), throttles),
        fence,
        identity: "test".into(),
        health: Health::new(),
        pages: Pages::new(),
        listeners: ServingMetrics::new(&Registry::new()).unwrap(),
        settings: Settings {
            work_rate: (5.0, 10),
            write_timeout: Duration::ZERO,
            dry_run: false,
            lease: ObjectRef::lease("kube-system", "test", ""),
        },
        won: Won::default(),
        work,
        informers: informers(client.clone(), metrics),
        caller: client.clone().into(),
        client,
        recorder,
        registry,
        stop: CancellationToken::new(),
    }
}

pub(crate) fn informers(client: kube::Client, metrics: InformerMetrics) -> Informers {
    informers_with(client, metrics, None)
}

pub(crate) fn informers_with(
    client: kube::Client,
    metrics: InformerMetrics,
    resync: Option<Duration>,
) -> Informers {
    let (server, stop) = (Server::own(client), CancellationToken::new());
    let (format, product) = (Format::Protobuf, "test");
    Informers::new(InformersOptions { server, format, product, resync, stop }, metrics)
}

pub(crate) type Run = BoxFuture<'static, Result<Stopped, Failure>>;

/// A runner whose `n`th run (from 0) is `run(n, …)`.
pub(crate) struct Fake<F> {
    placement: Placement,
    run: F,
    runs: AtomicUsize,
}

impl<F: Fn(usize, Context) -> Run + Send + Sync + 'static> Fake<F> {
    pub(crate) fn runner(run: F) -> Arc<dyn Runner> {
        Self::placed(Placement::Leader, run)
    }

    pub(crate) fn placed(placement: Placement, run: F) -> Arc<dyn Runner> {
        Arc::new(Self { placement, run, runs: AtomicUsize::new(0) })
    }
}

impl<F: Fn(usize, Context) -> Run + Send + Sync> Runner for Fake<F> {
    fn placement(&self) -> Placement {
        self.placement
    }

    fn service_account(&self) -> &'static str {
        "fake"
    }

    fn permissions(&self) -> &'static [Permission] {
        &[]
    }

    fn pages(&self) -> &'static [&'static str] {
        &["/debug/controllers/first"]
    }

    fn event_component(&self) -> &'static str {
        "fake"
    }

    fn run(self: Arc<Self>, context: Context) -> Run {
        (self.run)(self.runs.fetch_add(1, Ordering::Relaxed), context)
    }
}

/// A context that can still be given another limit for writes.
pub(crate) fn with_write_timeout(mut context: Context, write_timeout: Duration) -> Context {
    context.settings.write_timeout = write_timeout;
    context
}
