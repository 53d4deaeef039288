//! What is told of one Cluster, with caches and an API server that are scripted.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use api_server_double::{ApiServer, Asked, Reply};
use health::Status;
use informer::Informer;
use model::Metadata;
use parking_lot::Mutex;
use probe::{Client, ConnectionLimits, Fingerprint, Meters, Names};
use prometheus::Registry as Metrics;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use workqueue::{Backoff, Jitter, QueueMetrics, Reconcile as _, WorkQueue};

use super::super::book::Entry;
use super::super::fetch::Fetch;
use super::super::watching::{Secrets, heed};
use super::*;
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::engine::tests::scene::{Scene, target};
use crate::engine::{Flavour, Registry};
use crate::options::judge;
use crate::scripted_cache::informer;
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
    /// What the watch of ClusterCredentials tells, and that of Secrets.
    touched: UnboundedSender<Value>,
    credentials: Arc<Credentials>,
    management: ApiServer,
}

/// The ClusterCredentials of the management API.
#[derive(Default)]
struct Credentials {
    refused: AtomicBool,
    /// They may not be read.
    forbidden: AtomicBool,
    /// The same of Secrets.
    secrets_forbidden: AtomicBool,
    absent: AtomicBool,
    /// The token is in a Secret.
    in_secret: AtomicBool,
    /// Part of the token; the version.
    rotations: AtomicUsize,
    /// Name of the Cluster it is for; empty for `cls-1`.
    of: Mutex<String>,
    /// What is asked now is answered by what there is now, and not before this.
    held: Mutex<Option<Arc<Notify>>>,
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
            return Reply::Json(200, json!({"data": {"token": "aHVudGVyMg=="}}));
        }
        let rotations = self.rotations.load(Ordering::Relaxed);
        let of = self.of.lock().clone();
        let of = if of.is_empty() { "cls-1" } else { &*of };
        let mut one = json!({
            "metadata": {"name": "cc-1", "resourceVersion": rotations.to_string()},
            "clusterName": of, "token": format!("token-{rotations}"),
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
    async fn start(listed: &[&Value]) -> Self {
        let engine = Scene::new(0);
        let (changes, told) = unbounded_channel();
        let listed = listed.iter().copied().cloned().collect();
        let clusters: Informer<Object<Cluster>> = informer(&CLUSTERS, listed, told).await;
        let (touched, told) = unbounded_channel();
        let metadata = informer::<Metadata>(&CLUSTER_CREDENTIALS, vec![], told).await;
        let credentials = Arc::<Credentials>::default();
        let asked = Arc::clone(&credentials);
        let management = ApiServer::new(move |request| asked.answer(request));
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
            fetch: Fetch::new(management.client()),
            recorder: engine.shared.recorder.clone(),
            clusters,
            credentials: metadata,
            queue,
            since: Timestamp::now(),
        };
        Self { engine, watching, changes, touched, credentials, management }
    }

    /// Whether anything is known of it.
    fn knows(&self, object: &Object<Cluster>) -> (bool, bool) {
        let id = identity(object);
        let booked = self.watching.flavour.book.known(&id, |_| ()).is_some();
        (self.watching.registry.knows(&id), booked)
    }

    /// The work for `cls-1` and its credential is done.
    async fn look(&self, work: &Work) {
        assert!(self.watching.reconcile(work).await.is_ok());
    }

    /// Whether there is a client for `cls-1`, and of which token it is.
    fn way(&self, object: &Object<Cluster>) -> Option<Fingerprint> {
        Some(self.watching.flavour.book.client(&identity(object))?.fingerprint())
    }

    /// The watch of credentials tells that `cc-1` has this version, or is deleted at it.
    async fn touch(&self, version: u64, is_there: bool) {
        let cached = || self.watching.credentials.get("cc-1").map(|it| it.resource_version);
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
        while cached() != is_there.then_some(version) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// `cls-1` is this by now, and was looked at.
    async fn change(&self, object: &Value) -> Object<Cluster> {
        self.changes.send(json!({"type": "MODIFIED", "object": object})).unwrap();
        let object = read(object);
        let version = object.metadata.resource_version;
        while self.watching.clusters.get("cls-1").unwrap().metadata.resource_version != version {
            sleep(Duration::from_millis(1)).await;
        }
        self.look(&Work::Cluster("cls-1".into())).await;
        object
    }

    /// Looks at `cls-1`; `meanwhile` happens between the moment at which its credential is read and
    /// that at which the answer comes.
    async fn look_while(&self, meanwhile: impl AsyncFnOnce()) {
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
    async fn client(&self, object: &Object<Cluster>) -> Arc<Client> {
        self.watching.flavour.book.doubt_way(&object.metadata.key);
        let way = self.watching.way(object, &identity(object)).await;
        way.ok().unwrap().0.client.ok().unwrap()
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

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_a_cluster_names_is_used_when_it_comes_and_when_it_comes_back() {
    let object = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "cc-1"});
    });
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    // It is for nobody by its own word.
    "nobody".clone_into(&mut bench.credentials.of.lock());
    let (cluster, credential) = (Work::Cluster("cls-1".into()), Work::Credential("cc-1".into()));
    for version in [9, 11] {
        bench.credentials.absent.store(true, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert_eq!(bench.way(&object), None);
        bench.credentials.absent.store(false, Ordering::Relaxed);
        bench.credentials.rotations.store(version, Ordering::Relaxed);
        bench.touch(version as u64, true).await;
        bench.look(&credential).await;
        bench.look(&cluster).await;
        assert!(bench.way(&object).is_some());
        let asked = bench.management.asked().len();
        bench.look(&cluster).await;
        assert_eq!(bench.management.asked().len(), asked, "nothing changed");
        bench.touch(version as u64 + 1, false).await;
    }
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_comes_while_it_is_looked_for_is_used() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.absent.store(true, Ordering::Relaxed);
    bench
        .look_while(async || {
            bench.credentials.absent.store(false, Ordering::Relaxed);
            bench.look(&Work::Credential("cc-1".into())).await;
        })
        .await;
    assert_eq!(bench.way(&object), None, "what was read is older");
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert!(bench.way(&object).is_some());
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_rotated_while_it_is_read_is_read_again() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.rotations.store(5, Ordering::Relaxed);
    bench
        .look_while(async || {
            bench.credentials.rotations.store(6, Ordering::Relaxed);
            bench.touch(6, true).await;
        })
        .await;
    let first = bench.way(&object);
    bench.look(&Work::Cluster("cls-1".into())).await;
    let second = bench.way(&object);
    assert!(first.is_some() && second.is_some() && first != second);
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_used_by_name_is_looked_at_for_the_cluster_that_it_is_for() {
    let named = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "cc-1"});
    });
    let meant = sent(&[("10.0.0.2", 6443)], |it| {
        it["metadata"] = json!({"name": "cls-2", "uid": "u2", "resourceVersion": "7"});
    });
    let (bench, meant) = (Bench::start(&[&named, &meant]).await, read(&meant));
    "cls-2".clone_into(&mut bench.credentials.of.lock());
    bench.credentials.absent.store(true, Ordering::Relaxed);
    let clusters = [Work::Cluster("cls-1".into()), Work::Cluster("cls-2".into())];
    for cluster in &clusters {
        bench.look(cluster).await;
    }
    bench.credentials.absent.store(false, Ordering::Relaxed);
    bench.look(&Work::Credential("cc-1".into())).await;
    bench.look(&clusters[1]).await;
    assert!(bench.way(&meant).is_some());
}

/// rule:a-cluster-is-known-before-its-credential, rule:unwatched-clusters-become-unknown
#[tokio::test(start_paused = true)]
async fn a_cluster_whose_credential_cannot_be_read_after_a_restart_becomes_unknown() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    let (id, cluster) = (identity(&object), Work::Cluster("cls-1".into()));
    bench.credentials.refused.store(true, Ordering::Relaxed);
    assert!(bench.watching.reconcile(&cluster).await.is_err(), "it is tried again");
    assert_eq!(bench.watching.registry.readiness(&id), Some(Status::True), "as it was published");
    sleep(bench.watching.flavour.options.policy.stale_after() + S(5)).await;
    assert!(bench.watching.reconcile(&cluster).await.is_err());
    assert_eq!(bench.watching.registry.readiness(&id), Some(Status::Unknown));
    bench.credentials.refused.store(false, Ordering::Relaxed);
    bench.look(&cluster).await;
    assert!(bench.way(&object).is_some());
    bench.credentials.refused.store(true, Ordering::Relaxed);
    bench.watching.flavour.book.doubt_way("cls-1");
    assert!(bench.watching.reconcile(&cluster).await.is_err());
    assert!(bench.way(&object).is_some(), "it is probed as before");
}

/// rule:a-lost-credential-ends-its-client
#[tokio::test(start_paused = true)]
async fn a_credential_that_may_not_be_read_ends_its_client_and_is_read_when_it_may_be() {
    for in_secret in [false, true] {
        let object = sent(&[("10.0.0.1", 6443)], |_| {});
        let (bench, object) = (Bench::start(&[&object]).await, read(&object));
        let (cluster, credentials) = (Work::Cluster("cls-1".into()), &bench.credentials);
        credentials.in_secret.store(in_secret, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert!(bench.way(&object).is_some());
        let forbidden =
            if in_secret { &credentials.secrets_forbidden } else { &credentials.forbidden };
        forbidden.store(true, Ordering::Relaxed);
        credentials.rotations.store(1, Ordering::Relaxed);
        bench.touch(1, true).await;
        assert!(bench.watching.reconcile(&cluster).await.is_err(), "it is tried again");
        assert_eq!(bench.way(&object), None);
        // No object changes when a right is granted.
        forbidden.store(false, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert!(bench.way(&object).is_some());
    }
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_before_anybody_knows_who_uses_it_is_looked_at_again() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    for changes in [false, true] {
        let bench = Bench::start(&[&object]).await;
        bench.credentials.in_secret.store(true, Ordering::Relaxed);
        // The bench has one cache for both kinds of credentials.
        let secret = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "ns", "name": "s", "uid": "s", "resourceVersion": "20"},
        });
        let held = async || {
            let (held, asked) = (Arc::new(Notify::new()), bench.management.asked().len());
            bench.management.until_asked(asked + 1).await;
            *bench.credentials.held.lock() = Some(Arc::clone(&held));
            bench.management.until_asked(asked + 2).await;
            *bench.credentials.held.lock() = None;
            if changes {
                bench.touched.send(json!({"type": "ADDED", "object": secret})).unwrap();
                while bench.watching.credentials.get("ns/s").is_none() {
                    sleep(Duration::from_millis(1)).await;
                }
            }
            held.notify_one();
        };
        let cluster = Work::Cluster("cls-1".into());
        tokio::join!(bench.look(&cluster), held());
        assert_eq!(bench.watching.queue.is_empty(), !changes);
    }
}

/// rule:nothing-outlives-its-object
#[tokio::test(start_paused = true)]
async fn a_cluster_that_waits_for_its_credential_and_is_deleted_leaves_nothing() {
    let object = sent(&[], |it| it["status"]["phase"] = "Initializing".into());
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.absent.store(true, Ordering::Relaxed);
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert_eq!(bench.knows(&object), (false, true), "it waits");
    bench.watching.registry.remove(&identity(&object));
    assert_eq!(bench.knows(&object), (false, false));
}

/// rule:a-restart-changes-nothing
#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_published_without_ready_nodes_has_too_few_until_they_are_listed() {
    for (reason, enough) in [("NodesNotReady", Some(false)), ("HealthCheckFail", None)] {
        let object = sent(&[("10.0.0.1", 6443)], |it| {
            it["status"]["phase"] = "Failed".into();
            it["status"]["conditions"] =
                json!([{"type": "HealthCheck", "status": "False", "reason": reason}]);
        });
        let (bench, object) = (Bench::start(&[&object]).await, read(&object));
        bench.look(&Work::Cluster("cls-1".into())).await;
        let book = &bench.watching.flavour.book;
        let known = book.known(&identity(&object), |entry| entry.facts.enough_nodes);
        assert_eq!(known, Some(enough), "{reason}");
        book.known(&identity(&object), |entry| entry.facts.enough_nodes = Some(true));
        bench.look(&Work::Cluster("cls-1".into())).await;
        let known = book.known(&identity(&object), |entry| entry.facts.enough_nodes);
        assert_eq!(known, Some(Some(true)), "a list knows better than the object");
    }
}

/// rule:another-target-has-no-address-in-common
#[tokio::test(start_paused = true)]
async fn nothing_that_was_learnt_of_a_cluster_is_told_of_another_one_at_another_address() {
    let (a, b, c) = (("10.0.0.1", 6443), ("10.0.0.2", 6443), ("10.0.0.3", 6443));
    let listed = sent(&[a], |_| {});
    let (bench, object) = (Bench::start(&[&listed]).await, read(&listed));
    bench.look(&Work::Cluster("cls-1".into())).await;
    let (book, id) = (&bench.watching.flavour.book, identity(&object));
    let learn = || {
        book.known(&id, |entry| {
            entry.facts.versioned(Some("1.36.3".into()), Timestamp::now());
            (entry.facts.enough_nodes, entry.version_asked) = (Some(false), Some(Instant::now()));
        })
    };
    let known = || {
        let known = |entry: &mut Entry| {
            let facts = &entry.facts;
            (facts.version.is_some(), facts.enough_nodes.is_some(), entry.version_asked.is_some())
        };
        book.known(&id, known).unwrap()
    };
    let at = |version: &str, addresses: &[(&str, u16)]| {
        sent(addresses, |it| it["metadata"]["resourceVersion"] = version.into())
    };
    learn();
    bench.change(&at("8", &[b, a])).await;
    assert_eq!(known(), (true, true, true), "one address more is the same cluster");
    let (_, before) = book.target(&id).unwrap();
    bench.change(&at("9", &[("no host", 1)])).await;
    bench.change(&at("10", &[c])).await;
    assert_eq!(known(), (false, false, false));
    assert!(book.still(&id, &before, |_| ()).is_none(), "what is under way is of the other one");
    let (_, now) = book.target(&id).unwrap();
    assert!(book.still(&id, &now, |_| ()).is_some());
}
