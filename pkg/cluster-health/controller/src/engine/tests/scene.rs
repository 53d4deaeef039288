//! The scene of the tests of the engine: members that are scripted, a management API that is a
//! function, and a flavour that says little.

use std::collections::HashMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use events::EventMetrics;
use health::{Code, Health};
use http::Method;
use http_body_util::BodyExt as _;
use kube_api::Resource;
use objects::{Dynamic, ObjectClient};
use parking_lot::Mutex;
use prometheus::{Registry as Metrics, TextEncoder};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::api::cluster_api;
use crate::api::cluster_profile::CLUSTER_PROFILES;
use crate::api::kubefed::KUBEFED_CLUSTERS;
use crate::api::tke::{CLUSTERS, MACHINES};
use crate::check_document::ConfiguredChecks;
use crate::engine::beats::BeatWatch;
use crate::engine::cluster_registry::ClusterRegistry;
use crate::engine::flavour::{Flavour, MemberId, Statement, StatusWrite, Target};
use crate::engine::flavour_registry::FlavourRegistry;
use crate::engine::gauges::{Exposed, Metrics as EngineMetrics};
use crate::engine::guard_targets::GuardStatus;
use crate::engine::member_cluster::MemberCluster;
use crate::engine::ownership::{Ownership, Share};
use crate::engine::probes::Permits;
use crate::engine::writer::Writer;
use crate::engine::{page, tasks};

mod api;
mod members;

pub(crate) use api::Api;
pub(crate) use members::{Answer, Members, policy, target};

/// The namespace of the Leases of members.
const LEASES: Option<&str> = Some("beats");
/// The kinds of TKEStack that are written.
static TKE: [Resource; 2] = [MACHINES, CLUSTERS];
static KUBEFED: Resource = KUBEFED_CLUSTERS;

pub(crate) static KIND: Resource = Resource::namespaced("fake.example.org", "v1", "Fake", "fakes");

/// Where the flavour is to panic, once.
#[derive(Default)]
pub(crate) struct Panics {
    pub(crate) in_fingerprint: AtomicBool,
    pub(crate) in_fields: AtomicBool,
}

/// Writes its health, and the record of its availability.
struct Fake {
    facts: Arc<AtomicU64>,
    panics: Arc<Panics>,
    stored: Arc<Mutex<Option<Health>>>,
    on_removed: OnRemoved,
}

/// Called once when the flavour hears that a cluster is gone.
type OnRemoved = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Flavour for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn resource(&self) -> &'static Resource {
        &KIND
    }

    fn fingerprint(&self, _: &MemberId, statement: &Statement<'_>) -> u64 {
        assert!(!self.panics.in_fingerprint.swap(false, Ordering::Relaxed), "asked to panic");
        let health = health(statement);
        // The engine gives it no record (rule:a-record-costs-no-write).
        let (facts, record) = (self.facts.load(Ordering::Relaxed), statement.record);
        health::hash(&format!("{health} {facts} {record:?}"))
    }

    fn write(&self, _: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        assert!(!self.panics.in_fields.swap(false, Ordering::Relaxed), "asked to panic");
        let mut status = json!({ "health": health(statement) });
        if let Some(record) = statement.record {
            status["availability"] = record.into();
        }
        Some(StatusWrite::Apply(json!({ "status": status })))
    }

    fn stored(&self, _: &MemberId) -> Option<Health> {
        *self.stored.lock()
    }

    fn removed(&self, _: &MemberId) {
        let happens = self.on_removed.lock().take();
        if let Some(happens) = happens {
            happens();
        }
    }
}

fn health(statement: &Statement<'_>) -> String {
    if statement.paused {
        return "paused".to_owned();
    }
    statement.published.map(|it| format!("{:?}", it.health)).unwrap_or_default()
}

pub(crate) fn cluster(key: &str, uid: u64) -> MemberId {
    MemberId { uid: format!("{key}-{uid}").into(), key: key.into() }
}

pub(crate) struct Scene {
    pub(crate) members: Arc<Members>,
    pub(crate) api: Arc<Api>,
    pub(crate) facts: Arc<AtomicU64>,
    pub(crate) panics: Arc<Panics>,
    /// The health that all objects show, in an audit.
    pub(crate) stored: Arc<Mutex<Option<Health>>>,
    pub(crate) on_removed: OnRemoved,
    pub(crate) registry: FlavourRegistry,
    pub(crate) clusters: Arc<ClusterRegistry>,
    pub(crate) flavour: Arc<dyn Flavour>,
    pub(crate) metrics: Metrics,
    _events: events::Broadcaster,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.clusters.stop.cancel();
    }
}

/// A scene of so many replicas.
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
        Self::made(
            Arc::default(),
            Arc::default(),
            concurrent_probes,
            Ownership::default(),
            (exposed, false),
            LEASES,
        )
    }

    /// Leases of members are not watched.
    pub(crate) fn without_leases() -> Self {
        let exposed = Exposed { per_cluster: true, audit: false };
        let nobody = (Arc::default(), Arc::default());
        Self::made(nobody.0, nobody.1, 0, Ownership::default(), (exposed, false), None)
    }

    /// Its members wait for a guard.
    pub(crate) fn guarded() -> Self {
        let exposed = Exposed { per_cluster: true, audit: false };
        Self::made(Arc::default(), Arc::default(), 0, Ownership::default(), (exposed, true), LEASES)
    }

    /// One replica of several, which have members and management API in common.
    pub(crate) fn of(members: Arc<Members>, api: Arc<Api>, ownership: Ownership) -> Self {
        let exposed = Exposed { per_cluster: true, audit: false };
        Self::made(members, api, 0, ownership, (exposed, false), LEASES)
    }

    /// One replica of several, to which nothing belongs.
    pub(crate) fn of_others() -> Self {
        let share = Arc::new(Share::new("one", (2, "shares"), 1, resilience::Fence::closed()));
        Self::of(Arc::default(), Arc::default(), Ownership::of(&share))
    }

    fn made(
        members: Arc<Members>,
        api: Arc<Api>,
        concurrent_probes: usize,
        ownership: Ownership,
        (exposed, guarded): (Exposed, bool),
        leases: Option<&str>,
    ) -> Self {
        let audit = exposed.audit;
        let answering = Arc::clone(&api);
        let client = api_server_double::client(move |asked| answering.answer(asked));
        let metrics = Metrics::new();
        let event_metrics = EventMetrics::new(&metrics).expect("the names are new");
        let (recorder, broadcaster) = events::start(client.clone(), "fake", "fake", event_metrics);
        let recorder = if audit { events::Recorder::mute() } else { recorder };
        let [profiles, _] = &CLUSTER_PROFILES;
        let [capi] = &cluster_api::CLUSTERS;
        let clients = [&KIND, &TKE[0], &TKE[1], &KUBEFED, profiles, capi].map(|kind| {
            let limit = Duration::from_secs(5);
            let client = ObjectClient::<Dynamic>::new(client.clone(), kind.clone(), "fake", limit);
            (kind.into(), client)
        });
        let writer = Writer::new(HashMap::from(clients), None, ownership.clone(), recorder.clone());
        let exposed = EngineMetrics::new(&metrics, exposed).expect("the names are new");
        let clusters = Arc::new(ClusterRegistry::new(
            Permits::new(concurrent_probes),
            writer,
            exposed.counters.clone(),
            recorder,
            CancellationToken::new(),
            audit,
            ownership,
            GuardStatus::new(guarded),
            BeatWatch::new(leases.map(str::to_owned)),
            ConfiguredChecks::new(false),
        ));
        exposed.attach(&clusters);
        let writing = Arc::clone(&clusters.writer);
        tokio::spawn(writing.run(clusters.counters.clone(), clusters.stop.clone()));
        tokio::spawn(tasks::sweep(Arc::clone(&clusters), clusters.stop.clone()));
        let facts = Arc::<AtomicU64>::default();
        let panics = Arc::<Panics>::default();
        let stored = Arc::<Mutex<Option<Health>>>::default();
        let on_removed = OnRemoved::default();
        let fake = Fake {
            on_removed: Arc::clone(&on_removed),
            facts: Arc::clone(&facts),
            panics: Arc::clone(&panics),
            stored: Arc::clone(&stored),
        };
        let flavour: Arc<dyn Flavour> = Arc::new(fake);
        let registry = FlavourRegistry::new(Arc::clone(&flavour), Arc::clone(&clusters));
        Self {
            members,
            api,
            facts,
            panics,
            stored,
            on_removed,
            registry,
            clusters,
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

    pub(crate) fn watched(&self, key: &str) -> Arc<MemberCluster> {
        self.clusters.find(&*self.flavour, key).expect("it is known")
    }

    pub(crate) fn health(&self, key: &str) -> Option<Health> {
        self.watched(key).health()
    }

    pub(crate) fn last_code(&self, key: &str) -> Option<Code> {
        self.watched(key).view(|it| it.member.last().and_then(|last| last.finding.code()))
    }

    pub(crate) fn metrics(&self) -> String {
        TextEncoder::new().encode_to_string(&self.metrics.gather()).expect("metrics are text")
    }

    /// The value of a series that is a whole number.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        self.number(series).expect("there is such a series")
    }

    /// The value of a series, if there is such a series.
    pub(crate) fn number<T: FromStr<Err: Debug>>(&self, series: &str) -> Option<T> {
        let all = self.metrics();
        let line = all.lines().find_map(|line| line.strip_prefix(series))?;
        Some(line.trim().parse().expect("a number"))
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
        let reply = page::answer(&self.clusters, &request);
        let body = reply.into_body().collect().await.expect("a page is whole").to_bytes();
        String::from_utf8(body.to_vec()).expect("a page is text")
    }
}
