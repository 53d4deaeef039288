//! The pipeline with any flavour: [`conformance`] has the tests that each flavour has to pass, [`Toy`] is the smallest.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_server_double::{ApiServer, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use health::{Code, Health, Policy, Renewal};
use informer::Informer;
use jiff::Timestamp;
use kube_api::{Metadata, Resource};
use objects::{Object, Schema};
use probe::{Address, ConnectionLimits, Inputs, Meters, Names, Problem, WaivedChecks};
use prometheus::Registry as Metrics;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use workqueue::{Backoff, Jitter, Next, QueueMetrics, Reconcile as _, Retry, WorkQueue};

use super::S;
use super::scene::{Answer, KIND, Members, Scene, target};
use crate::api::WithSpec;
use crate::cluster_api::testing::kubeconfig;
use crate::engine::cluster_registry::Known;
use crate::engine::connections::SecretCache;
use crate::engine::follow::subscribe;
use crate::engine::pipeline::{FirstList, Pipeline};
use crate::engine::probes::{ReadInputs, Rereads};
use crate::engine::{
    self, AnnouncedEnds, ClusterProber, CredentialSource, Flavour, FlavourRegistry, MemberId,
    ObjectModel, Resolve, Seed, Statement, StatusWrite, Supervision, Work,
};
use crate::secret_data::{CLUSTER_API_SECRET, SECRETS, SecretData};
use crate::testing::informer;

const BACKOFF: Backoff = Backoff::doubling(S1, S1, Jitter::Above(0.5));
const S1: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum ToyKind {}

impl Schema for ToyKind {
    type Body = WithSpec<ToySpec>;
    type Status = ToyStatus;
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ToySpec {
    credential: u64,
    supervision: String,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ToyStatus {
    health: String,
    record: String,
}

/// A flavour that the conformance suite can run.
pub(crate) trait Conforming: Resolve<Credential = ()> {
    /// Whether it has objects that are locked.
    const LOCKS: bool;

    fn make(scene: &Scene) -> Self;

    /// The object `ns/a`, with a credential of this number; [`IN_SECRET`] means a Secret, and 0 no credential.
    fn object(uid: &str, version: u64, credential: u64, supervision: &str) -> Value;

    /// The object after another program wrote its status.
    fn foreign(object: Value) -> Value;

    /// The health that was written to `ns/a` last.
    fn written(scene: &Scene) -> Option<String>;
}

/// The smallest flavour: the address never changes, and the credential is a number in the spec.
struct Toy {
    members: Arc<Members>,
    objects: engine::Objects<ToyKind>,
    connections: engine::Connections,
    prober: probe::Prober,
}

fn said(statement: &Statement<'_>) -> String {
    let health = statement.published.map(|it| format!("{:?}", it.health));
    if statement.paused { "paused".to_owned() } else { health.unwrap_or_default() }
}

impl Flavour for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn resource(&self) -> &'static Resource {
        &KIND
    }

    fn fingerprint(&self, _: &MemberId, statement: &Statement<'_>) -> u64 {
        health::hash(&said(statement))
    }

    fn write(&self, _: &MemberId, statement: &Statement<'_>) -> Option<StatusWrite> {
        let record = statement.record;
        Some(StatusWrite::Apply(json!({"status": {"health": said(statement), "record": record}})))
    }

    fn stored(&self, _: &MemberId) -> Option<Health> {
        None
    }
}

impl ObjectModel for Toy {
    type Schema = ToyKind;

    fn members(&self) -> engine::Members<'_, ToyKind> {
        let Self { objects, connections, prober, .. } = self;
        engine::Members { objects, connections, prober, plugins: None }
    }

    fn supervision(&self, object: &Object<ToyKind>) -> Supervision {
        match &*object.body.spec.supervision {
            "locked" => Supervision::Locked,
            "left alone" => Supervision::LeftAlone,
            _ => Supervision::Probed,
        }
    }

    fn access(&self, object: &Object<ToyKind>) -> u64 {
        object.body.spec.credential
    }

    fn policy(&self, _: &Object<ToyKind>) -> Policy {
        target(&self.members, "", 0).policy
    }

    fn record<'a>(&self, object: &'a Object<ToyKind>) -> Option<&'a str> {
        Some(&object.status.record)
    }

    fn seed(&self, _: &Object<ToyKind>, _: Timestamp) -> Seed {
        Seed { published: None, announced_ends: AnnouncedEnds::Nothing }
    }

    fn shown(&self, object: &Object<ToyKind>) -> Option<u64> {
        Some(health::hash(&object.status.health))
    }
}

impl Resolve for Toy {
    type Credential = ();

    fn addresses(&self, _: &Object<ToyKind>) -> Vec<Box<str>> {
        vec!["one".into()]
    }

    fn source(
        &self,
        object: &Object<ToyKind>,
        _: Option<&()>,
    ) -> Result<CredentialSource, Problem> {
        let is_in_secret = object.body.spec.credential == IN_SECRET;
        Ok(CredentialSource::secret(is_in_secret.then(|| "ns/s".to_owned())))
    }

    fn inputs(
        &self,
        object: &Object<ToyKind>,
        _: Option<()>,
        _: Option<SecretData>,
    ) -> Result<Inputs, Problem> {
        if object.body.spec.credential == 0 {
            return Err(Problem::new(Code::SecretMissing, "it has no credential"));
        }
        Ok(Inputs {
            addresses: vec![Address::parse("https://10.0.0.1").unwrap()],
            token: Some(object.body.spec.credential.to_string().into()),
            tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
            ..Inputs::default()
        })
    }

    fn grace(&self, _: &Object<ToyKind>, problem: &Problem) -> Option<Duration> {
        (problem.code() == Code::SecretMissing).then_some(S(60))
    }
}

/// The number of a credential that is in a Secret.
pub(crate) const IN_SECRET: u64 = 7;

impl Conforming for Toy {
    const LOCKS: bool = true;

    fn make(scene: &Scene) -> Self {
        Self {
            members: Arc::clone(&scene.members),
            objects: engine::Objects::default(),
            connections: engine::Connections::default(),
            prober: prober(),
        }
    }

    fn object(uid: &str, version: u64, credential: u64, supervision: &str) -> Value {
        json!({
            "apiVersion": "fake.example.org/v1", "kind": "Fake",
            "metadata": {"namespace": "ns", "name": "a", "uid": uid,
                "resourceVersion": version.to_string()},
            "spec": {"credential": credential, "supervision": supervision},
        })
    }

    fn foreign(mut object: Value) -> Value {
        object["status"] = json!({"health": "SomethingElse"});
        object
    }

    fn written(scene: &Scene) -> Option<String> {
        scene.api.written("ns/a")
    }
}

/// The prober of a flavour in a test.
pub(crate) fn prober() -> probe::Prober {
    let meters = Meters::new(&Metrics::new()).unwrap();
    probe::Prober::new(meters, ConnectionLimits::default(), Names::default())
}

pub(crate) struct Bench<R: Conforming> {
    pub(crate) scene: Scene,
    pub(crate) pipeline: Pipeline<R>,
    refused: Arc<AtomicBool>,
    changes: UnboundedSender<Value>,
    _subscription: informer::Subscription<Object<R::Schema>>,
}

thread_local! {
    /// The members of the test of this thread.
    static MEMBERS: RefCell<Arc<Members>> = RefCell::default();
}

/// Makes the prober of a member that only exists in the test.
fn fake_prober<R>(
    _: Arc<R>,
    cluster: MemberId,
    _: Arc<probe::Client>,
    _: Option<Box<ReadInputs>>,
) -> Arc<dyn ClusterProber> {
    let members = MEMBERS.with_borrow(Arc::clone);
    let number = u64::try_from(members.made()).unwrap() + 1;
    (target(&members, &cluster.key, number).prober)()
}

impl<R: Conforming> Bench<R> {
    pub(crate) async fn start(listed: Value) -> Self {
        let scene = Scene::new(0);
        let (changes, told) = unbounded_channel();
        let flavour = Arc::new(R::make(&scene));
        let kind = flavour.resource();
        let objects: Informer<Object<R::Schema>> = informer(kind, vec![listed], told).await;
        flavour.members().objects.set(&objects, Arc::new(|| true));
        MEMBERS.set(Arc::clone(&scene.members));
        let registry = FlavourRegistry::new(
            Arc::clone(&flavour) as Arc<dyn Flavour>,
            Arc::clone(&scene.clusters),
        );
        let subscription = subscribe(&objects, &registry, &flavour, |_| {});
        let refused = Arc::new(AtomicBool::new(false));
        let refuses = Arc::clone(&refused);
        let server = ApiServer::new(move |asked| {
            if refuses.load(Ordering::Relaxed) {
                return Reply::failure(500, "InternalError");
            }
            // Each Secret has a token of its own.
            let user = format!("{{token: \"{}\"}}", asked.path());
            let value = STANDARD.encode(kubeconfig(&user, ""));
            let data = json!({"token": STANDARD.encode(asked.path()), "value": value});
            Reply::Json(200, json!({"type": CLUSTER_API_SECRET, "data": data}))
        });
        let (_, told) = unbounded_channel();
        let secrets = informer::<Metadata>(&SECRETS, vec![], told).await;
        let metrics = QueueMetrics::new(&Metrics::new()).unwrap();
        let pipeline = Pipeline {
            flavour,
            registry,
            objects,
            queue: WorkQueue::new("toys", BACKOFF, &metrics),
            secrets: SecretCache::new(move || secrets.clone(), |_| {}),
            credentials: None,
            client: server.client(),
            recorder: scene.clusters.recorder.clone(),
            probers: fake_prober,
            of_first_list: FirstList::default(),
            rereads: Rereads::default(),
        };
        Self { scene, pipeline, refused, changes, _subscription: subscription }
    }

    pub(crate) async fn change(&self, kind: &str, object: Value) {
        self.changes.send(json!({"type": kind, "object": object})).unwrap();
        sleep(S(1)).await;
    }

    pub(crate) async fn look(&self) -> Result<Next, Retry> {
        let looked = self.pipeline.reconcile(&Work::Cluster("ns/a".into())).await;
        sleep(S(12)).await;
        looked
    }

    /// The record that was written last.
    fn record(&self) -> Value {
        self.scene.api.fake("ns/a").unwrap()["record"].take()
    }

    pub(crate) fn written(&self) -> Option<String> {
        R::written(&self.scene)
    }
}

/// Runs the conformance suite with a flavour.
macro_rules! conforms {
    ($flavour:ty) => {
        $crate::engine::tests::pipeline::conforms! { $flavour:
            a_cluster_is_probed_and_written_from_its_creation_to_its_deletion,
            a_new_credential_takes_the_place_of_the_old_one_and_nothing_else_does,
            a_locked_cluster_says_so_and_one_that_is_left_alone_says_nothing,
            another_object_of_the_same_name_is_another_cluster,
            a_foreign_status_is_written_over,
            a_cluster_without_a_credential_is_held_back_and_one_whose_read_failed_is_tried_again,
            a_cluster_with_evidence_beat_is_judged_by_its_lease_without_probes_and_credential,
        }
    };
    ($flavour:ty: $($test:ident,)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $test() {
            $crate::engine::tests::pipeline::conformance::$test::<$flavour>().await;
        })*
    };
}
pub(crate) use conforms;

conforms!(Toy);

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_created_after_the_first_list_is_not_counted_with_it() {
    let bench = Bench::<Toy>::start(Toy::object("u1", 1, 1, "")).await;
    bench.pipeline.note_first_list();
    let mut other = Toy::object("u2", 9, 1, "");
    other["metadata"]["name"] = "b".into();
    bench.change("ADDED", other).await;
    let together = ["ns/a", "ns/b"].map(|key| {
        let object = bench.pipeline.objects.get(key).unwrap();
        bench.pipeline.together(&object)
    });
    assert_eq!(together, [1, 0]);
}

pub(crate) mod conformance;

/// rule:a-record-costs-no-write
#[tokio::test(start_paused = true)]
async fn the_record_of_the_object_is_continued_and_an_annotation_sets_the_objective() {
    let record =
        |observed: &str| format!("v1.{}.{observed}", Timestamp::now().as_second() / 86_400);
    let with = |version: u64, objective: Option<&str>| {
        let mut object = Toy::object("u1", version, 1, "");
        object["status"] = json!({"health": "Ready", "record": record("sQKsAg")});
        if let Some(text) = objective {
            object["metadata"]["annotations"] = json!({"infra-controller-manager/objective": text});
        }
        object
    };
    let bench = Bench::<Toy>::start(with(1, Some("99.5"))).await;
    bench.look().await.unwrap();
    let objective = || {
        let labels = "{cluster=\"a\",flavour=\"toy\",namespace=\"ns\"} ";
        bench.scene.number::<f64>(&format!("clusterhealth_cluster_objective_ratio{labels}"))
    };
    assert_eq!(objective(), Some(0.995));
    for (version, text) in [(10, "1000"), (11, "1000"), (12, "many")] {
        bench.change("MODIFIED", with(version, Some(text))).await;
        bench.look().await.unwrap();
        assert_eq!(objective(), None, "that of the policy");
    }
    assert_eq!(bench.scene.api.events(), ["ObjectiveInvalid"; 2], "each annotation once");
    bench.change("MODIFIED", with(13, Some("90"))).await;
    bench.look().await.unwrap();
    assert_eq!(objective(), Some(0.9));
    let sums =
        |text: &str| health::Record::decode(text, Timestamp::now()).unwrap().sums(Timestamp::now());
    let before = sums(&record("sQKsAg"));
    sleep(S(400)).await;
    let after = sums(bench.record().as_str().unwrap());
    assert!(after.observed > before.observed + S(60), "{before:?} {after:?}");
    assert_eq!(after.bad, before.bad);

    let bench = Bench::<Toy>::start(with(1, Some("0"))).await;
    bench.look().await.unwrap();
    sleep(S(400)).await;
    assert_eq!(bench.record(), Value::Null, "without an objective, without a record");
}
