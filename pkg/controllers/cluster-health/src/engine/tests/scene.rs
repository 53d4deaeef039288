//! What the tests of the engine share: members that are scripted, a management API that is a
//! function, and a flavour that says little.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use events::EventMetrics;
use futures::future::{BoxFuture, pending};
use health::{
    Cadence, Code, Damping, Endpoints, Finding, Pace, Policy, ProbePath, Report, Standing,
    Thresholds,
};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use model::Resource;
use objects::{Dynamic, ObjectClient};
use parking_lot::Mutex;
use prometheus::{Registry as Metrics, TextEncoder};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::tke::MACHINES;
use crate::engine::contact::Contact;
use crate::engine::flavour::{Cluster, Flavour, Statement};
use crate::engine::gauges::Exposed;
use crate::engine::metrics::Metrics as EngineMetrics;
use crate::engine::ownership::Ownership;
use crate::engine::permits::Permits;
use crate::engine::prober::{Prober, now};
use crate::engine::registry::Registry;
use crate::engine::shared::Shared;
use crate::engine::target::Target;
use crate::engine::watched::Watched;
use crate::engine::writer::Writer;
use crate::engine::{page, patrol};

pub(crate) static KIND: Resource = Resource::namespaced("fake.example.org", "v1", "Fake", "fakes");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Failing,
    /// Never ends by itself.
    Silent,
    Panic,
}

/// The members, and what was done to them.
#[derive(Default)]
pub(crate) struct Members {
    answers: Mutex<HashMap<String, Answer>>,
    /// Starts of probes.
    starts: Mutex<HashMap<String, Vec<Instant>>>,
    /// Probes under way.
    under_way: Mutex<HashMap<String, usize>>,
    overlaps: AtomicUsize,
    /// How long a probe takes that is answered.
    takes: Mutex<Duration>,
    longest_probe: Mutex<Duration>,
    made: AtomicUsize,
    clients: Mutex<HashMap<(String, u64), Weak<Client>>>,
    /// Of all.
    contact: Mutex<Contact>,
}

struct Client {
    key: String,
    members: Arc<Members>,
}

/// Measures a probe, however it ends.
struct Stopwatch<'a>(&'a Members, &'a str, Instant);

impl<'a> Stopwatch<'a> {
    fn start(members: &'a Members, key: &'a str) -> Self {
        let mut under_way = members.under_way.lock();
        let count = under_way.entry(key.to_owned()).or_default();
        *count += 1;
        members.overlaps.fetch_add(usize::from(*count > 1), Ordering::Relaxed);
        Self(members, key, Instant::now())
    }
}

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        let mut longest = self.0.longest_probe.lock();
        *longest = longest.max(self.2.elapsed());
        *self.0.under_way.lock().entry(self.1.to_owned()).or_default() -= 1;
    }
}

impl Prober for Client {
    fn probe(&self, _: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let started = Instant::now();
            self.members.starts.lock().entry(self.key.clone()).or_default().push(started);
            let _measured = Stopwatch::start(&self.members, &self.key);
            let takes = *self.members.takes.lock();
            tokio::time::sleep(takes).await;
            let finding = match self.members.answer(&self.key) {
                Answer::Ok => Finding::ok(ProbePath::Readyz),
                Answer::Failing => Finding::failed(Code::Http(500), ProbePath::Readyz),
                Answer::Silent => pending().await,
                Answer::Panic => panic!("a prober that panics"),
            };
            let (endpoints, detail) = (Endpoints { down: 0, total: 1 }, None);
            Report { finding, started: now(), took: S0, attempts: 1, endpoints, detail }
        })
    }

    fn contact(&self) -> Contact {
        *self.members.contact.lock()
    }
}

const S0: Duration = Duration::ZERO;

impl Members {
    pub(crate) fn set(&self, key: &str, answer: Answer) {
        self.answers.lock().insert(key.to_owned(), answer);
    }

    pub(crate) fn set_contact(&self, contact: Contact) {
        *self.contact.lock() = contact;
    }

    /// How often a probe began while another one of the same member was under way.
    pub(crate) fn overlaps(&self) -> usize {
        self.overlaps.load(Ordering::Relaxed)
    }

    /// Probes that are answered take so long from now on.
    pub(crate) fn take(&self, time: Duration) {
        *self.takes.lock() = time;
    }

    /// When a member was last probed.
    pub(crate) fn last_probe(&self, key: &str) -> Option<Instant> {
        self.starts.lock().get(key).and_then(|starts| starts.last().copied())
    }

    fn answer(&self, key: &str) -> Answer {
        self.answers.lock().get(key).copied().unwrap_or(Answer::Ok)
    }

    pub(crate) fn probes(&self, key: &str) -> usize {
        self.starts.lock().get(key).map_or(0, Vec::len)
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    pub(crate) fn longest_probe(&self) -> Duration {
        *self.longest_probe.lock()
    }

    /// Between the starts of two probes of any member.
    pub(crate) fn longest_gap(&self) -> Duration {
        let starts = self.starts.lock();
        let gaps = starts.values().flat_map(|all| all.windows(2).map(|pair| pair[1] - pair[0]));
        gaps.max().unwrap_or_default()
    }

    pub(crate) fn is_held(&self, key: &str, uid: u64) -> bool {
        let clients = self.clients.lock();
        clients.get(&(key.to_owned(), uid)).is_some_and(|client| client.strong_count() > 0)
    }
}

/// The management API.
#[derive(Default)]
pub(crate) struct Api {
    refusing: AtomicBool,
    hanging: AtomicBool,
    writes_take: Mutex<Duration>,
    writes: AtomicUsize,
    written: Mutex<HashMap<String, String>>,
    /// The newest of each path.
    applied: Mutex<HashMap<String, Value>>,
    events: Mutex<Vec<String>>,
    /// UIDs and versions of objects that can be read.
    versions: Mutex<HashMap<String, (String, u64)>>,
}

impl Api {
    pub(crate) fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::Relaxed);
    }

    /// Writes of status get no answer from now on.
    pub(crate) fn hang(&self) {
        self.hanging.store(true, Ordering::Relaxed);
    }

    /// Writes of status take so long from now on.
    pub(crate) fn delay_writes(&self, time: Duration) {
        *self.writes_take.lock() = time;
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// The standing that the object tells.
    pub(crate) fn written(&self, key: &str) -> Option<String> {
        self.written.lock().get(key).cloned()
    }

    /// The status of the Machine of this name as it was applied last.
    pub(crate) fn machine(&self, name: &str) -> Option<Value> {
        let path = format!("{}/status", MACHINES.object_path(name));
        self.applied.lock().get(&path).map(|object| object["status"].clone())
    }

    /// Reasons of the events, oldest first.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    /// The version of an object, for whoever reads it.
    pub(crate) fn set_version(&self, key: &str, uid: &str, version: u64) {
        self.versions.lock().insert(key.to_owned(), (uid.to_owned(), version));
    }

    fn read(&self, key: &str) -> (u16, Value) {
        match self.versions.lock().get(key) {
            Some((uid, version)) => {
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                let version = version.to_string();
                (
                    200,
                    json!({"metadata": {
                        "namespace": namespace, "name": name, "uid": uid, "resourceVersion": version,
                    }}),
                )
            }
            None => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
        }
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body =
            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if self.hanging.load(Ordering::Relaxed) && head.method != Method::POST {
            return pending().await;
        }
        let (code, answer) = if self.refusing.load(Ordering::Relaxed) {
            (503, json!({"kind": "Status", "code": 503, "reason": "ServiceUnavailable"}))
        } else if head.uri.path().contains("/events") {
            let reason = if head.method == Method::POST { &body["reason"] } else { &Value::Null };
            self.events.lock().push(reason.as_str().unwrap_or("another one").to_owned());
            (201, body)
        } else if head.method == Method::GET {
            let place: Vec<_> = head.uri.path().split('/').collect();
            self.read(&format!("{}/{}", place[5], place[7]))
        } else {
            let takes = *self.writes_take.lock();
            tokio::time::sleep(takes).await;
            self.writes.fetch_add(1, Ordering::Relaxed);
            let path = head.uri.path();
            self.applied.lock().insert(path.to_owned(), body.clone());
            let place: Vec<_> = path.trim_end_matches("/status").rsplit('/').collect();
            let key = format!("{}/{}", place[2], place[0]);
            let standing = body["status"]["standing"].as_str().unwrap_or_default().to_owned();
            self.written.lock().insert(key, standing);
            let mut object = body;
            object["metadata"]["resourceVersion"] = "1".into();
            (200, object)
        };
        let body = Body::from(answer.to_string().into_bytes());
        Response::builder().status(code).body(body).expect("a valid answer")
    }
}

/// Where the flavour is to panic, once.
#[derive(Default)]
pub(crate) struct Panics {
    pub(crate) in_fingerprint: AtomicBool,
    pub(crate) in_fields: AtomicBool,
}

/// Writes its standing and a number.
struct Fake {
    facts: Arc<AtomicU64>,
    panics: Arc<Panics>,
    stored: Arc<Mutex<Option<Standing>>>,
}

impl Flavour for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn resource(&self) -> &'static Resource {
        &KIND
    }

    fn fingerprint(&self, _: &Cluster, statement: &Statement<'_>) -> u64 {
        assert!(!self.panics.in_fingerprint.swap(false, Ordering::Relaxed), "asked to panic");
        let standing = standing(statement);
        health::hash(&format!("{standing} {}", self.facts.load(Ordering::Relaxed)))
    }

    fn fields(&self, _: &Cluster, statement: &Statement<'_>) -> Option<Value> {
        assert!(!self.panics.in_fields.swap(false, Ordering::Relaxed), "asked to panic");
        Some(json!({"status": {"standing": standing(statement)}}))
    }

    fn stored(&self, _: &Cluster) -> Option<Standing> {
        *self.stored.lock()
    }
}

fn standing(statement: &Statement<'_>) -> String {
    if statement.paused {
        return "paused".to_owned();
    }
    statement.published.map(|it| format!("{:?}", it.standing)).unwrap_or_default()
}

pub(crate) fn cluster(key: &str, uid: u64) -> Cluster {
    Cluster { uid: format!("{key}-{uid}").into(), key: key.into() }
}

pub(crate) struct Scene {
    pub(crate) members: Arc<Members>,
    pub(crate) api: Arc<Api>,
    pub(crate) facts: Arc<AtomicU64>,
    pub(crate) panics: Arc<Panics>,
    /// What all objects say, in an audit.
    pub(crate) stored: Arc<Mutex<Option<Standing>>>,
    pub(crate) registry: Registry,
    pub(crate) shared: Arc<Shared>,
    pub(crate) flavour: Arc<dyn Flavour>,
    pub(crate) metrics: Metrics,
    _events: events::Broadcaster,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Scene {
    pub(crate) fn new(concurrent_probes: usize) -> Self {
        Self::with(concurrent_probes, Exposed { per_cluster: true, audit: false })
    }

    /// Nothing is written, and the objects say [`Scene::stored`].
    pub(crate) fn auditing() -> Self {
        Self::with(0, Exposed { per_cluster: true, audit: true })
    }

    pub(crate) fn without_series_of_each_cluster() -> Self {
        Self::with(0, Exposed { per_cluster: false, audit: false })
    }

    fn with(concurrent_probes: usize, exposed: Exposed) -> Self {
        Self::made(Arc::default(), Arc::default(), concurrent_probes, Ownership::default(), exposed)
    }

    /// One replica of several, which have members and management API in common.
    pub(crate) fn of(members: Arc<Members>, api: Arc<Api>, ownership: Ownership) -> Self {
        Self::made(members, api, 0, ownership, Exposed { per_cluster: true, audit: false })
    }

    fn made(
        members: Arc<Members>,
        api: Arc<Api>,
        concurrent_probes: usize,
        ownership: Ownership,
        exposed: Exposed,
    ) -> Self {
        let audit = exposed.audit;
        let answering = Arc::clone(&api);
        let client = kube::Client::new(
            tower::service_fn(move |request| {
                let api = Arc::clone(&answering);
                async move { Ok::<_, Infallible>(api.answer(request).await) }
            }),
            "default",
        );
        let metrics = Metrics::new();
        let event_metrics = EventMetrics::new(&metrics).expect("the names are new");
        let (recorder, broadcaster) = events::start(client.clone(), "fake", "fake", event_metrics);
        let recorder = if audit { events::Recorder::mute() } else { recorder };
        let clients = [KIND.clone(), MACHINES].map(|kind| {
            let limit = Duration::from_secs(5);
            let objects = ObjectClient::<Dynamic>::new(client.clone(), kind.clone(), "fake", limit);
            (if kind == MACHINES { "machines" } else { "fakes" }, objects)
        });
        let writer = Writer::new(HashMap::from(clients), Pace::new(50.0, 100), ownership.clone());
        let exposed = EngineMetrics::new(&metrics, exposed).expect("the names are new");
        let shared = Arc::new(Shared::new(
            Permits::new(concurrent_probes),
            writer,
            exposed.counters.clone(),
            recorder,
            CancellationToken::new(),
            audit,
            ownership,
        ));
        exposed.attach(&shared);
        let writing = Arc::clone(&shared.writer);
        tokio::spawn(writing.run(shared.counters.clone(), shared.stop.clone()));
        tokio::spawn(patrol::run(Arc::clone(&shared), shared.stop.clone()));
        let facts = Arc::<AtomicU64>::default();
        let panics = Arc::<Panics>::default();
        let stored = Arc::<Mutex<Option<Standing>>>::default();
        let fake = Fake {
            facts: Arc::clone(&facts),
            panics: Arc::clone(&panics),
            stored: Arc::clone(&stored),
        };
        let flavour: Arc<dyn Flavour> = Arc::new(fake);
        let registry = Registry::new(Arc::clone(&flavour), Arc::clone(&shared));
        Self {
            members,
            api,
            facts,
            panics,
            stored,
            registry,
            shared,
            flavour,
            metrics,
            _events: broadcaster,
        }
    }

    pub(crate) fn add(&self, key: &str, uid: u64) {
        self.add_with(key, uid, |_| {});
    }

    pub(crate) fn add_with(&self, key: &str, uid: u64, change: impl FnOnce(&mut Target)) {
        let mut target = target(&self.members, key, uid);
        change(&mut target);
        self.registry.upsert(target);
    }

    pub(crate) fn watched(&self, key: &str) -> Arc<Watched> {
        self.shared.find(&*self.flavour, key).expect("it is known")
    }

    pub(crate) fn standing(&self, key: &str) -> Option<Standing> {
        self.watched(key).glance(|it| it.member.published().map(|published| published.standing))
    }

    pub(crate) fn last_code(&self, key: &str) -> Option<Code> {
        self.watched(key).glance(|it| it.member.last().and_then(|last| last.finding.code()))
    }

    pub(crate) fn metrics(&self) -> String {
        TextEncoder::new().encode_to_string(&self.metrics.gather()).expect("metrics are text")
    }

    /// The value of a series, all of which here are whole numbers.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let all = self.metrics();
        let line = all.lines().find_map(|line| line.strip_prefix(series));
        line.expect("there is such a series").trim().parse().expect("a number")
    }

    pub(crate) async fn page(&self, uri: &str, accept: Option<&'static str>) -> String {
        let mut headers = http::HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(http::header::ACCEPT, http::HeaderValue::from_static(accept));
        }
        let request = serving::PageRequest {
            method: Method::GET,
            uri: uri.parse().expect("a URI"),
            headers,
            body: Bytes::new(),
            peer: serving::Peer {
                address: std::net::IpAddr::from([127, 0, 0, 1]),
                certificate: serving::PeerCertificate::Absent,
            },
        };
        let reply = page::answer(&self.shared, &request);
        let body = reply.into_body().collect().await.expect("a page is whole").to_bytes();
        String::from_utf8(body.to_vec()).expect("a page is text")
    }
}

/// Of a cluster that nobody has said anything about.
pub(crate) fn target(members: &Arc<Members>, key: &str, uid: u64) -> Target {
    let (members, owned) = (Arc::clone(members), key.to_owned());
    Target {
        cluster: cluster(key, uid),
        addresses: vec!["one".into()],
        inputs: 1,
        prober: Box::new(move || {
            members.made.fetch_add(1, Ordering::Relaxed);
            let client = Client { key: owned.clone(), members: Arc::clone(&members) };
            let client = Arc::new(client);
            members.clients.lock().insert((owned, uid), Arc::downgrade(&client));
            client
        }),
        policy: policy(),
        paused: false,
        published: None,
        written: None,
        together: 0,
    }
}

fn policy() -> Policy {
    let seconds = Duration::from_secs;
    Policy {
        cadence: Cadence {
            period: seconds(10),
            timeout: seconds(3),
            confirm: seconds(10),
            jitter: 0.1,
        },
        thresholds: Thresholds { failure: 3, success: 1 },
        damping: Damping { transitions: 6, window: seconds(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: seconds(300),
    }
}
