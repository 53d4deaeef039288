//! [`Bench`]: looks at Clusters, with caches and an API server that are scripted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use api_server_double::{ApiServer, Asked, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer::Informer;
use kube_api::{Cached, Metadata};
use parking_lot::Mutex;
use probe::{Client, ConnectionLimits, Fingerprint, Meters, Names};
use prometheus::Registry as Metrics;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use workqueue::{Backoff, Jitter, Next, QueueMetrics, Reconcile as _, WorkQueue};

use super::*;
use crate::api::tke::{CLUSTER_CREDENTIALS, CLUSTERS};
use crate::credential_policy::SEND_LABEL;
use crate::engine::connections::SecretCache;
use crate::engine::pipeline::{Credentials as CredentialObjects, FirstList};
use crate::engine::probes::{Rereads, client_prober};
use crate::engine::tests::scene::Scene;
use crate::engine::{Flavour, FlavourRegistry, identity};
use crate::options::judge;
use crate::testing::informer;
use crate::tke::SummaryMetrics;
use crate::tke::credentials::Fetch;
use crate::tke::testing::cluster;
use crate::webhook_registration::Authority;

pub(super) const S: fn(u64) -> Duration = Duration::from_secs;
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30), Jitter::Around(0.5));

/// The pipeline with `cls-1`.
pub(super) struct Bench {
    pub(super) engine: Scene,
    pub(super) pipeline: Pipeline<Tke>,
    /// The events of the watch of Clusters.
    pub(super) changes: UnboundedSender<Value>,
    /// The events of the watches of ClusterCredentials and Secrets.
    pub(super) touched: UnboundedSender<Value>,
    pub(super) credentials: Arc<Credentials>,
    pub(super) management: ApiServer,
}

/// Waits until it is so, as a cache shows it.
pub(super) async fn until<T: Cached>(cache: &Informer<T>, is_so: impl Fn() -> bool) {
    let news = Arc::new(Notify::new());
    let told = Arc::clone(&news);
    let _watching = cache.subscribe(move |_| told.notify_one());
    while !is_so() {
        timeout(S(60), news.notified()).await.unwrap();
    }
}

/// The ClusterCredentials of the management API.
pub(super) struct Credentials {
    pub(super) refused: AtomicBool,
    /// Reads of ClusterCredentials are forbidden.
    pub(super) forbidden: AtomicBool,
    /// Reads of Secrets are forbidden.
    pub(super) secrets_forbidden: AtomicBool,
    pub(super) absent: AtomicBool,
    /// The token is in a Secret.
    pub(super) in_secret: AtomicBool,
    /// Part of the token; the version.
    pub(super) rotations: AtomicUsize,
    /// Name of the Cluster it is for; empty for `cls-1`.
    pub(super) of: Mutex<String>,
    pub(super) tenant: Mutex<String>,
    /// A request is answered when this is notified, with the state at the time of the request.
    pub(super) held: Mutex<Option<Arc<Notify>>>,
}

/// A Secret that its owner lets be sent.
fn secret() -> Value {
    let authority = Authority::make(SystemTime::now(), S(3600)).unwrap();
    json!({
        "metadata": {"labels": {SEND_LABEL: "true"}},
        "data": {"token": "aHVudGVyMg==", "ca.crt": STANDARD.encode(authority.certificate())},
    })
}

impl Credentials {
    fn answer(&self, asked: &Asked) -> Reply {
        let answer = self.now(asked);
        match self.held.lock().clone() {
            None => answer,
            Some(held) => Reply::Later(Box::pin(async move {
                held.notified().await;
                answer
            })),
        }
    }

    fn now(&self, asked: &Asked) -> Reply {
        if self.refused.load(Ordering::Relaxed) {
            return Reply::failure(500, "InternalError");
        }
        let is_secret = asked.path().contains("/secrets/");
        let forbidden = if is_secret { &self.secrets_forbidden } else { &self.forbidden };
        if forbidden.load(Ordering::Relaxed) {
            return Reply::failure(403, "Forbidden");
        }
        if is_secret {
            return Reply::Json(200, secret());
        }
        let rotations = self.rotations.load(Ordering::Relaxed);
        let of = self.of.lock().clone();
        let of = if of.is_empty() { "cls-1" } else { &*of };
        let mut one = json!({
            "metadata": {"name": "cc-1", "resourceVersion": rotations.to_string()},
            "tenantID": &*self.tenant.lock(), "clusterName": of,
            "token": format!("token-{rotations}"),
        });
        if self.in_secret.load(Ordering::Relaxed) {
            one["token"] = "".into();
            one["secretRef"] = json!({"namespace": "ns", "name": "s"});
        }
        let absent = self.absent.load(Ordering::Relaxed);
        match (asked.path().ends_with("/cc-1"), absent) {
            (true, true) => Reply::failure(404, "NotFound"),
            (true, false) => Reply::Json(200, one),
            (false, true) => Reply::Json(200, json!({"items": []})),
            (false, false) => Reply::Json(200, json!({"items": [one]})),
        }
    }
}

impl Bench {
    /// `listed` are the Clusters of the first list.
    pub(super) async fn start(listed: &[&Value]) -> Self {
        let engine = Scene::new(0);
        let (changes, told) = unbounded_channel();
        let listed = listed.iter().copied().cloned().collect();
        let clusters: Informer<Object<Cluster>> = informer(&CLUSTERS, listed, told).await;
        let (touched, told) = unbounded_channel();
        let metadata = informer::<Metadata>(&CLUSTER_CREDENTIALS, vec![], told).await;
        let credentials = Arc::new(Credentials {
            refused: false.into(),
            forbidden: false.into(),
            secrets_forbidden: false.into(),
            absent: false.into(),
            in_secret: false.into(),
            rotations: 0.into(),
            of: Mutex::default(),
            tenant: Mutex::new("t".to_owned()),
            held: Mutex::default(),
        });
        let asked = Arc::clone(&credentials);
        let management = ApiServer::new(move |request| asked.answer(request));
        let flavour = flavour();
        let registry = FlavourRegistry::new(
            Arc::clone(&flavour) as Arc<dyn Flavour>,
            Arc::clone(&engine.clusters),
        );
        let metrics = QueueMetrics::new(&Metrics::new()).unwrap();
        let queue = WorkQueue::new("clusters", BACKOFF, &metrics);
        let (tasks, machines) = (
            WorkQueue::new("sides", BACKOFF, &metrics),
            WorkQueue::new("machines", BACKOFF, &metrics),
        );
        flavour.objects.set(&clusters, Arc::new(|| true));
        flavour.follow(registry.clone(), tasks, machines);
        let (secrets, of, add) = (metadata.clone(), Arc::clone(&flavour), queue.clone());
        let changed = move |secret: &str| {
            for cluster in of.details.connections.users_of_secret(secret) {
                add.add(Work::Cluster(cluster));
            }
        };
        let reader = Box::new(Fetch::new(management.client()));
        let pipeline = Pipeline {
            secrets: SecretCache::new(move || secrets.clone(), changed),
            flavour,
            registry,
            objects: clusters,
            queue,
            credentials: Some(CredentialObjects { cache: metadata, reader }),
            client: management.client(),
            recorder: engine.clusters.recorder.clone(),
            probers: client_prober,
            of_first_list: FirstList::default(),
            rereads: Rereads::default(),
        };
        Self { engine, pipeline, changes, touched, credentials, management }
    }

    /// The cache of ClusterCredentials, and of Secrets.
    pub(super) fn metadata(&self) -> &Informer<Metadata> {
        &self.pipeline.credentials.as_ref().unwrap().cache
    }

    /// Whether anything is known of it.
    pub(super) fn knows(&self, object: &Object<Cluster>) -> (bool, bool) {
        let id = identity(object);
        let booked = self.pipeline.flavour.details.connections.knows(&id)
            || self.pipeline.flavour.details.known(&id, |_| ()).is_some();
        (self.pipeline.registry.knows(&id), booked)
    }

    /// Tells the engine of this Cluster, which came with so many others.
    pub(super) async fn register(
        &self,
        object: &Object<Cluster>,
        together: usize,
    ) -> Result<Next, Retry> {
        self.pipeline.register(&Arc::new(object.clone()), together).await
    }

    /// The work for `cls-1` and its credential is done.
    pub(super) async fn look(&self, work: &Work) {
        assert!(self.pipeline.reconcile(work).await.is_ok());
    }

    /// The fingerprint of the client of `cls-1`, if there is one.
    pub(super) fn connection(&self, object: &Object<Cluster>) -> Option<Fingerprint> {
        Some(self.pipeline.flavour.details.connections.client(&identity(object))?.fingerprint())
    }

    /// The watch of credentials tells that `cc-1` has this version, or is deleted at it.
    pub(super) async fn touch(&self, version: u64, is_there: bool) {
        let cached = || self.metadata().get("cc-1").map(|it| it.resource_version);
        let kind = match (is_there, cached()) {
            (false, _) => "DELETED",
            (true, None) => "ADDED",
            (true, Some(_)) => "MODIFIED",
        };
        let object = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "cc-1", "uid": "c1", "resourceVersion": version.to_string()},
        });
        self.touched.send(json!({"type": kind, "object": object})).unwrap();
        until(self.metadata(), || cached() == is_there.then_some(version)).await;
    }

    /// `cls-1` is this by now, and was looked at.
    pub(super) async fn change(&self, object: &Value) -> Object<Cluster> {
        self.changes.send(json!({"type": "MODIFIED", "object": object})).unwrap();
        let object = read(object);
        let version = object.metadata.resource_version;
        let cached = || self.pipeline.objects.get("cls-1").unwrap().metadata.resource_version;
        until(&self.pipeline.objects, || cached() == version).await;
        self.look(&Work::Cluster("cls-1".into())).await;
        object
    }

    /// Looks at `cls-1`; `meanwhile` happens between the moment at which its credential is read and
    /// that at which the answer comes.
    pub(super) async fn look_while(&self, meanwhile: impl AsyncFnOnce()) {
        let (held, asked) = (Arc::new(Notify::new()), self.management.asked().len());
        *self.credentials.held.lock() = Some(Arc::clone(&held));
        let read = async {
            self.management.until_asked(asked + 1).await;
            *self.credentials.held.lock() = None;
            meanwhile().await;
            held.notify_one();
        };
        let cluster = Work::Cluster("cls-1".into());
        tokio::join!(self.look(&cluster), read);
    }

    /// The client in use after its credential was looked up again.
    pub(super) async fn client(&self, object: &Object<Cluster>) -> Arc<Client> {
        self.pipeline.flavour.details.connections.invalidate(&object.metadata.key);
        let connection = self.pipeline.connection(object, &identity(object)).await;
        connection.ok().unwrap().0.client.ok().unwrap()
    }
}

pub(super) fn flavour() -> Arc<Tke> {
    let values = flags::Values::from_given(crate::flags::FLAGS, [("", ""); 0]).unwrap();
    let mut options = judge(&values).unwrap().0.tke.unwrap();
    (options.insecure_without_ca, options.secret_namespace) = (true, None);
    let meters = Meters::new(&Metrics::new()).unwrap();
    let prober = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
    let metrics = SummaryMetrics::new(&Metrics::new(), true).unwrap();
    Arc::new(Tke::new(options, Arc::new(prober), metrics))
}

/// An imported Cluster with these addresses, as it is sent.
pub(super) fn sent(addresses: &[(&str, u16)], status: impl FnOnce(&mut Value)) -> Value {
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

pub(super) fn read(object: &Value) -> Object<Cluster> {
    cluster(|it| *it = object.clone())
}
