//! The pipeline with a flavour of its own: whatever is true here is true of every flavour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use health::{Policy, Standing};
use informer::Informer;
use jiff::Timestamp;
use kube_api::Resource;
use objects::{Object, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use workqueue::{Next, Reconcile as _, Retry};

use super::S;
use super::scene::{Answer, KIND, Members, Scene, target};
use crate::api::WithSpec;
use crate::engine::{
    Cluster, EndsTold, Flavour, HeldBack, ObjectModel, Pipeline, Registry, Resolve, Resolved, Seed,
    Statement, StatusWrite, Supervision, subscribe,
};
use crate::testing::informer;

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
    standing: String,
}

/// The smallest flavour: the address never changes, and the credential is a number in the spec.
struct Toy {
    members: Arc<Members>,
}

fn said(statement: &Statement<'_>) -> String {
    let standing = statement.published.map(|it| format!("{:?}", it.standing));
    if statement.paused { "paused".to_owned() } else { standing.unwrap_or_default() }
}

impl Flavour for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn resource(&self) -> &'static Resource {
        &KIND
    }

    fn fingerprint(&self, _: &Cluster, statement: &Statement<'_>) -> u64 {
        health::hash(&said(statement))
    }

    fn write(&self, _: &Cluster, statement: &Statement<'_>) -> Option<StatusWrite> {
        Some(StatusWrite::Apply(json!({"status": {"standing": said(statement)}})))
    }

    fn stored(&self, _: &Cluster) -> Option<Standing> {
        None
    }
}

impl ObjectModel for Toy {
    type Schema = ToyKind;

    fn supervision(&self, object: &Object<ToyKind>) -> Supervision {
        match &*object.body.spec.supervision {
            "locked" => Supervision::Locked,
            "left alone" => Supervision::LeftAlone,
            _ => Supervision::Probed,
        }
    }

    fn policy(&self, _: &Object<ToyKind>) -> Policy {
        target(&self.members, "", 0).policy
    }

    fn seed(&self, _: &Object<ToyKind>, _: Timestamp) -> Seed {
        Seed { published: None, ends_told: EndsTold::Nothing }
    }

    fn shown(&self, object: &Object<ToyKind>) -> Option<u64> {
        Some(health::hash(&object.status.standing))
    }
}

struct ToyResolver {
    members: Arc<Members>,
    refused: AtomicBool,
}

impl Resolve for ToyResolver {
    type Model = Toy;

    async fn resolve(
        &self,
        cluster: &Cluster,
        object: &Arc<Object<ToyKind>>,
        _: Supervision,
    ) -> Result<Resolved, Retry> {
        let credential = object.body.spec.credential;
        let told = target(&self.members, &cluster.key, credential);
        let missing = || HeldBack {
            code: health::Code::SecretMissing,
            why: "it has no credential".to_owned(),
            left: S(60),
        };
        let refused = self.refused.load(Ordering::Relaxed);
        Ok(Resolved {
            addresses: told.addresses,
            inputs: credential,
            prober: told.prober,
            held_back: (credential == 0).then(missing),
            was_held_back: false,
            retry: refused.then(|| Retry::new("refused")),
        })
    }
}

struct Bench {
    scene: Scene,
    pipeline: Pipeline<ToyResolver>,
    changes: UnboundedSender<Value>,
    _subscription: informer::Subscription<Object<ToyKind>>,
}

/// The object `ns/a`, with a credential of this number.
fn object(uid: &str, version: u64, credential: u64, supervision: &str) -> Value {
    json!({
        "apiVersion": "fake.example.org/v1", "kind": "Fake",
        "metadata": {"namespace": "ns", "name": "a", "uid": uid,
            "resourceVersion": version.to_string()},
        "spec": {"credential": credential, "supervision": supervision},
    })
}

impl Bench {
    async fn start(listed: Value) -> Self {
        let scene = Scene::new(0);
        let (changes, told) = unbounded_channel();
        let objects: Informer<Object<ToyKind>> = informer(&KIND, vec![listed], told).await;
        let members = Arc::clone(&scene.members);
        let flavour = Arc::new(Toy { members: Arc::clone(&members) });
        let registry =
            Registry::new(Arc::clone(&flavour) as Arc<dyn Flavour>, Arc::clone(&scene.fleet));
        let subscription = subscribe(&objects, &registry, &flavour, |_| {});
        let resolver = ToyResolver { members, refused: AtomicBool::new(false) };
        let pipeline = Pipeline::new(flavour, resolver, registry, objects);
        Self { scene, pipeline, changes, _subscription: subscription }
    }

    async fn change(&self, kind: &str, object: Value) {
        self.changes.send(json!({"type": kind, "object": object})).unwrap();
        sleep(S(1)).await;
    }

    async fn look(&self) -> Result<Next, Retry> {
        let looked = self.pipeline.reconcile(&"ns/a".into()).await;
        sleep(S(12)).await;
        looked
    }

    fn written(&self) -> Option<String> {
        self.scene.api.written("ns/a")
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_probed_and_written_from_its_creation_to_its_deletion() {
    let bench = Bench::start(object("u1", 1, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    bench.change("DELETED", object("u1", 9, 1, "")).await;
    let probes = bench.scene.members.probes("ns/a");
    bench.look().await.unwrap();
    assert_eq!(bench.scene.members.probes("ns/a"), probes);
}

/// rule:changed-inputs-are-probed-within-a-second
#[tokio::test(start_paused = true)]
async fn a_new_credential_takes_the_place_of_the_old_one_and_nothing_else_does() {
    let bench = Bench::start(object("u1", 1, 1, "")).await;
    for (version, credential, made) in [(9, 1, 1), (10, 2, 2)] {
        bench.change("MODIFIED", object("u1", version, credential, "")).await;
        bench.look().await.unwrap();
        assert_eq!(bench.scene.members.made(), made);
    }
    assert!(!bench.scene.members.is_held("ns/a", 1), "the old client is gone");
}

/// rule:a-pause-knows-nothing, rule:only-live-clusters
#[tokio::test(start_paused = true)]
async fn a_locked_cluster_says_so_and_one_that_is_left_alone_says_nothing() {
    let bench = Bench::start(object("u1", 1, 1, "locked")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("paused"));
    bench.change("MODIFIED", object("u1", 9, 1, "")).await;
    bench.look().await.unwrap();
    assert_eq!(bench.written().as_deref(), Some("Ready"));
    bench.change("MODIFIED", object("u1", 10, 1, "left alone")).await;
    let writes = bench.scene.api.writes();
    bench.scene.members.set("ns/a", Answer::Failing);
    bench.look().await.unwrap();
    assert_eq!(bench.scene.api.writes(), writes);
}

/// rule:one-prober-per-uid
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_another_cluster() {
    for is_deletion_seen in [true, false] {
        let bench = Bench::start(object("u1", 1, 1, "")).await;
        bench.look().await.unwrap();
        if is_deletion_seen {
            bench.change("DELETED", object("u1", 9, 1, "")).await;
        }
        bench.scene.members.set("ns/a", Answer::Failing);
        bench.change("ADDED", object("u2", 10, 1, "")).await;
        bench.look().await.unwrap();
        assert_eq!(bench.written().as_deref(), Some("NotReady"), "the first result is published");
    }
}

/// rule:foreign-status-is-written-over
#[tokio::test(start_paused = true)]
async fn a_foreign_status_is_written_over() {
    let bench = Bench::start(object("u1", 1, 1, "")).await;
    bench.look().await.unwrap();
    let writes = bench.scene.api.writes();
    let mut foreign = object("u1", 9, 1, "");
    foreign["status"] = json!({"standing": "SomethingElse"});
    bench.change("MODIFIED", foreign).await;
    assert_eq!(bench.scene.api.writes(), writes + 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_credential_is_held_back_and_one_whose_read_failed_is_tried_again() {
    let bench = Bench::start(object("u1", 1, 0, "")).await;
    assert_eq!(bench.look().await.unwrap(), Next::After(S(60)));
    assert_eq!((bench.scene.members.made(), bench.scene.fleet.held_back().len()), (0, 1));
    bench.change("MODIFIED", object("u1", 9, 1, "")).await;
    bench.pipeline.resolver.refused.store(true, Ordering::Relaxed);
    assert!(bench.look().await.is_err());
    assert_eq!(bench.written().as_deref(), Some("Ready"), "the engine was told of it all the same");
    assert!(bench.scene.fleet.held_back().is_empty());
}
