//! Each field of the objects of a member, set, changed, reverted and refused: what is probed, with which credential, how
//! often, and what is published in the end is what a member has that always had these objects.
//!
//! The objects are one document: `object` is that of the member, `credential` its ClusterCredential, `config` the
//! KubeFedConfig.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api_server_double::fields::{Crd, End, Field, World, play, set};
use api_server_double::{ApiServer, Asked, Reply, merge};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{StreamExt as _, unfold};
use informer::{Informer, Subscription};
use kube_api::{Cached, Metadata, Resource};
use objects::Object;
use parking_lot::Mutex;
use probe::Client;
use prometheus::{IntCounter, Registry as Metrics};
use serde_json::{Value, json};
use tokio::sync::watch;
use workqueue::{
    Backoff, Jitter, PanicLimit, QueueMetrics, ReconcileMetrics, WorkQueue, WorkerOptions,
    run_workers,
};

use super::S;
use super::pipeline::{Conforming, prober};
use super::scene::{Scene, policy, target};
use super::*;
use crate::api::kubefed::{KUBEFED_CONFIGS, KubeFedConfig};
use crate::api::tke::CLUSTER_CREDENTIALS;
use crate::cluster_api::ClusterApi;
use crate::cluster_api::testing::kubeconfig;
use crate::cluster_profile::ClusterProfiles;
use crate::credential_policy::SEND_LABEL;
use crate::engine::connections::SecretCache;
use crate::engine::follow::subscribe;
use crate::engine::pipeline::{CredentialReader, Credentials, FirstList, Pipeline};
use crate::engine::probes::{ReadInputs, Rereads};
use crate::engine::{ClusterProber, FlavourRegistry, MemberId, Resolve, Work};
use crate::kubefed::KubeFed;
use crate::options::{KubeFedOptions, TkeOptions};
use crate::secret_data::{CLUSTER_API_SECRET, SECRETS};
use crate::testing::informer_of;
use crate::tke::credentials::Fetch;
use crate::tke::{SummaryMetrics, Tke};

mod flavours;
mod table;

use flavours::Tested;

thread_local! {
    /// By UID: what the client of the prober is made of that is in use.
    static PROBED: RefCell<HashMap<Arc<str>, String>> = RefCell::default();
}

fn recording_prober<R>(
    _: Arc<R>,
    cluster: MemberId,
    client: Arc<Client>,
    _: Option<Box<ReadInputs>>,
) -> Arc<dyn ClusterProber> {
    let made_of = client.fingerprint().to_string();
    PROBED.with_borrow_mut(|all| all.insert(Arc::clone(&cluster.uid), made_of));
    (target(&Arc::default(), &cluster.key, 1).prober)()
}

/// A member of one flavour, from the watches of its objects to what is published.
struct Member<R: Tested> {
    scene: Scene,
    pipeline: Arc<Pipeline<R>>,
    /// The objects as the API server has them, by the name of the part of the document.
    stored: Arc<Mutex<HashMap<&'static str, Value>>>,
    /// The status of the member that was applied.
    applied: Value,
    uid: Arc<str>,
    version: u64,
    watches: HashMap<&'static str, Log>,
    _of_objects: Subscription<Object<R::Schema>>,
    _of_credentials: Subscription<Metadata>,
    _of_configs: Option<Subscription<Object<KubeFedConfig>>>,
}

/// The events of the watch of one kind, oldest first; each is about the only object.
pub(crate) type Log = watch::Sender<Vec<Value>>;

/// A cache of the objects that a log tells of, however often it is listed and watched.
pub(crate) async fn cache<T: Cached>(kind: &Resource, log: &Log) -> Informer<T> {
    let log = log.subscribe();
    let server = ApiServer::new(move |asked| {
        let version = |event: &Value| {
            let version = event["object"]["metadata"]["resourceVersion"].as_str();
            version.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
        };
        if asked.query().contains("sendInitialEvents") {
            return Reply::failure(400, "BadRequest");
        }
        if !asked.query().contains("watch=true") {
            let last = log.borrow().last().cloned();
            let at = last.as_ref().map_or(8, version).to_string();
            let items: Vec<_> = last
                .filter(|it| it["type"] != "DELETED")
                .map(|it| it["object"].clone())
                .into_iter()
                .collect();
            return Reply::Json(200, json!({"metadata": {"resourceVersion": at}, "items": items}));
        }
        let query: HashMap<_, _> = form_urlencoded::parse(asked.query().as_bytes()).collect();
        let from = query["resourceVersion"].parse().unwrap_or(0);
        let known = log.borrow().iter().filter(|event| version(event) <= from).count();
        let events = unfold((log.clone(), known), |(mut log, known)| async move {
            let event = log.wait_for(|log| log.len() > known).await.ok()?[known].clone();
            Some((event, (log, known + 1)))
        });
        Reply::Watch(events.boxed())
    });
    let cache = informer_of(kind, &server);
    cache.synced().await;
    cache
}

/// A Secret of each name that begins with `s`, with a token of its own.
fn secret(asked: &Asked) -> Reply {
    let name = asked.path().rsplit('/').next().unwrap_or_default();
    if !name.starts_with('s') {
        return Reply::failure(404, "NotFound");
    }
    let user = format!("{{token: \"{}\"}}", asked.path());
    let data = json!({
        "token": STANDARD.encode(asked.path()), "ca.crt": table::authority(name),
        "value": STANDARD.encode(kubeconfig(&user, "")),
    });
    let metadata = json!({"labels": {SEND_LABEL: "true"}});
    Reply::Json(200, json!({"type": CLUSTER_API_SECRET, "metadata": metadata, "data": data}))
}

/// ClusterCredentials, selected by field as the API server does.
fn credentials(asked: &Asked, stored: &Value) -> Reply {
    let all = [stored.clone(), table::credential("cc-2"), table::credential("cc-3")];
    if let Some(name) = asked.path().split("/clustercredentials/").nth(1) {
        let found = all.into_iter().find(|it| it["metadata"]["name"] == *name);
        return found.map_or(Reply::failure(404, "NotFound"), |it| Reply::Json(200, it));
    }
    let query: HashMap<_, _> = form_urlencoded::parse(asked.query().as_bytes()).collect();
    let wanted = |it: &&Value| {
        query["fieldSelector"].split(',').all(|part| {
            let (field, value) = part.split_once('=').unwrap();
            it[field].as_str().unwrap_or_default() == value
        })
    };
    let items: Vec<_> = all[..1].iter().filter(wanted).collect();
    Reply::Json(200, json!({"items": items}))
}

impl<R: Tested> Member<R> {
    async fn new(schema_is_ours: bool) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let scene = Scene::new(0);
        let flavour = Arc::new(<R as Tested>::make(&scene));
        let (stored, mut watches) = (Arc::new(Mutex::new(HashMap::new())), HashMap::new());
        let mut watch = |part: &'static str| {
            let log = Log::new(Vec::new());
            watches.insert(part, log.clone());
            log
        };
        let objects: Informer<Object<R::Schema>> =
            cache(flavour.resource(), &watch("object")).await;
        let metadata: Informer<Metadata> = cache(&CLUSTER_CREDENTIALS, &watch("credential")).await;
        let configs = cache(&KUBEFED_CONFIGS, &watch("config")).await;
        let secrets: Informer<Metadata> = cache(&SECRETS, &watch("secret")).await;
        flavour.members().objects.set(&objects, Arc::new(move || schema_is_ours));
        let registry = FlavourRegistry::new(
            Arc::clone(&flavour) as Arc<dyn crate::engine::Flavour>,
            Arc::clone(&scene.clusters),
        );
        let shown: Arc<Mutex<HashMap<&'static str, Value>>> = Arc::clone(&stored);
        let server = ApiServer::new(move |asked| match asked.path() {
            path if path.contains("/secrets/") => secret(asked),
            _ => credentials(asked, shown.lock().get("credential").unwrap_or(&Value::Null)),
        });
        let backoff = Backoff::doubling(S(1), S(30), Jitter::Above(0.5));
        let queue =
            WorkQueue::new("members", backoff, &QueueMetrics::new(&Metrics::new()).unwrap());
        let add = queue.clone();
        let of_objects = subscribe(&objects, &registry, &flavour, move |key| {
            add.add(Work::Cluster(Arc::clone(key)));
        });
        let of_credentials = manager::feed(&metadata, &queue, |it: &Metadata| {
            Some(Work::Credential(Arc::clone(&it.key)))
        });
        let reader = R::reader(server.client());
        let pipeline = Arc::new(Pipeline {
            flavour: Arc::clone(&flavour),
            registry,
            objects,
            queue: queue.clone(),
            secrets: SecretCache::new(move || secrets.clone(), |_| {}),
            credentials: reader.map(|reader| Credentials { cache: metadata, reader }),
            client: server.client(),
            recorder: scene.clusters.recorder.clone(),
            probers: recording_prober,
            of_first_list: FirstList::default(),
            rereads: Rereads::default(),
        });
        let of_configs = R::follow(&flavour, &configs, &pipeline);
        tokio::spawn(run_workers(queue, Arc::clone(&pipeline), one_worker()));
        let uid = format!("u{}", NUMBER.fetch_add(1, Ordering::Relaxed)).into();
        Self {
            scene,
            pipeline,
            stored,
            applied: json!({}),
            uid,
            version: 10,
            watches,
            _of_objects: of_objects,
            _of_credentials: of_credentials,
            _of_configs: of_configs,
        }
    }

    /// The watch of this part of the document tells the object, or its deletion.
    fn tell(&mut self, part: &'static str, object: &Value, kind: &str) {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let uid = if part == "object" { &*self.uid } else { part };
        object["metadata"]["uid"] = uid.into();
        if part == "object" {
            add_fields_of_others(&mut object);
        }
        self.stored.lock().insert(part, object.clone());
        let event = json!({"type": kind, "object": object});
        self.watches[part].send_modify(|log| log.push(event));
    }

    fn key(object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap();
        let namespace = object["metadata"]["namespace"].as_str();
        namespace.map_or(name.to_owned(), |namespace| format!("{namespace}/{name}"))
    }

    /// The API server has the status that was applied, and the watch tells it.
    fn take_in(&mut self, object: &Value) {
        let kind = self.pipeline.flavour.resource();
        let Some(sent) = self.scene.api.sent(kind, &Self::key(object)) else { return };
        if sent["metadata"]["uid"].as_str().is_some_and(|uid| *uid != *self.uid) {
            return;
        }
        // Unlike a merge patch it names the kind.
        let is_applied = sent.get("kind").is_some();
        leaves_others(&sent, &self.stored.lock()["object"], is_applied);
        // A write by server-side apply has all fields of ours, any other the fields that it changes.
        let mut now = if is_applied { json!({}) } else { self.applied.clone() };
        for (name, value) in sent["status"].as_object().into_iter().flatten() {
            now[name] = value.clone();
        }
        if std::mem::replace(&mut self.applied, now.clone()) == now {
            return;
        }
        self.tell("object", &self.with_status(object), "MODIFIED");
    }

    fn with_status(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (name, value) in self.applied.as_object().into_iter().flatten() {
            object["status"][name] = value.clone();
        }
        object
    }

    fn end(&self, object: &Value, told: usize) -> End {
        let key = Self::key(object);
        let id = MemberId { uid: Arc::clone(&self.uid), key: key.as_str().into() };
        let flavour = &self.pipeline.flavour;
        let mut effects = Vec::new();
        let member = self.scene.clusters.find(&**flavour, &key);
        if let Some(member) = &member
            && !member.view(|it| it.paused)
            && flavour.members().connections.client(&id).is_some()
        {
            let made_of = PROBED.with_borrow(|all| all.get(&self.uid).cloned());
            effects.push(format!("a client of {made_of:?}"));
            effects.push(member.view(|it| format!("{:?} {:?}", it.addresses, it.policy)));
        }
        let mut status = self.applied.clone();
        without_details(&mut status);
        let mut reports = vec![status.to_string()];
        reports.push(format!("paused: {:?}", member.map(|it| it.view(|it| it.paused))));
        let news = self.scene.api.events().split_off(told);
        reports.extend(news.into_iter().filter(|reason| reason == "InvalidHealthCheck"));
        End { effects, reports }
    }
}

/// Labels, annotations, finalizers and parts of the status that no flavour knows.
pub(crate) fn add_fields_of_others(object: &mut Value) {
    let (kept, time) = (json!({"others.example.org/key": "kept"}), "2026-01-01T00:00:00Z");
    let others = json!({
        "metadata": {"labels": kept, "annotations": kept, "finalizers": ["others.example.org/kept"]},
        "status": {"ofOthers": {"list": [{"kept": 1}]}},
    });
    merge(object, &others);
    let condition = json!({
        "type": OTHERS, "status": "Unknown", "reason": "Kept", "message": "kept",
        "lastTransitionTime": time, "lastProbeTime": time, "ofOthers": "kept",
    });
    match object["status"]["conditions"].as_array_mut() {
        Some(all) if all.iter().any(|it| it["type"] == OTHERS) => {}
        Some(all) => all.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}

/// The type of a condition of others.
const OTHERS: &str = "others.example.org/Kept";

/// Asserts that a write changes nothing but fields of ours. Server-side apply leaves what it does not name, in lists of
/// conditions too; a merge patch replaces a list.
pub(crate) fn leaves_others(sent: &Value, stored: &Value, is_applied: bool) {
    let mut after = stored.clone();
    merge(&mut after, sent);
    let of_others = |object: &Value| {
        let mut object = object.clone();
        let status = object["status"].as_object_mut().unwrap();
        status.retain(|name, _| name == "ofOthers" || name == "accessProviders");
        object["metadata"]["resourceVersion"].take();
        object
    };
    assert_eq!(of_others(&after), of_others(stored), "a write changes fields of others");
    let conditions = |object: &Value| {
        let all = object["status"]["conditions"].as_array().into_iter().flatten();
        all.filter(|it| it["type"] == OTHERS).cloned().collect::<Vec<_>>()
    };
    let kept = if is_applied { Vec::new() } else { conditions(stored) };
    let found = if is_applied { conditions(sent) } else { conditions(&after) };
    assert_eq!(found, kept, "a write changes a condition of others");
}

/// Takes away what alone is no reason for a write: times and messages.
pub(crate) fn without_details(status: &mut Value) {
    match status {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("Time") && name != "message");
            fields.values_mut().for_each(without_details);
        }
        Value::Array(items) => items.iter_mut().for_each(without_details),
        _ => {}
    }
}

impl<R: Tested> World for Member<R> {
    async fn settle(&mut self, objects: &Value, is_replaced: bool) -> End {
        let told = self.scene.api.events().len();
        let object = objects["object"].clone();
        for part in ["config", "credential", "object"] {
            let Some(new) = objects.get(part) else { continue };
            let before = self.stored.lock().get(part).cloned();
            let new = if part == "object" && !is_replaced { &self.with_status(new) } else { new };
            match before {
                None => self.tell(part, new, "ADDED"),
                Some(old) if part == "object" && is_replaced => {
                    self.tell(part, &old, "DELETED");
                    sleep(S(5)).await;
                    self.applied = json!({});
                    self.uid = format!("{}-next", self.uid).into();
                    self.tell(part, new, "ADDED");
                }
                // A part that is not changed says nothing, or it would hide that another one wakes no reconcile.
                Some(mut old) => {
                    old["metadata"].clone_from(&new["metadata"]);
                    if old == *new {
                        continue;
                    }
                    self.tell(part, new, "MODIFIED");
                }
            }
            sleep(S(1)).await;
        }
        for _ in 0..3 {
            sleep(S(60)).await;
            self.take_in(&object);
        }
        sleep(S(1)).await;
        // The heartbeat says the same again; ten probes say nothing.
        let (end, written) = (self.end(&object, told), self.scene.api.writes());
        sleep(S(100)).await;
        self.take_in(&object);
        assert!(self.scene.api.writes() <= written + 1, "written again at rest");
        assert_eq!(self.end(&object, told), end, "not at rest");
        end
    }
}

/// Plays all fields of a flavour; then all other fields at once change nothing and are not changed, whoever's the schema
/// of the status is.
fn follows<R: Tested>(objects: &Value, fields: &[Field], others: Vec<(String, Value)>) {
    let mut deviations = Vec::new();
    for field in fields {
        let played = play(async || Member::<R>::new(true).await, objects, field);
        deviations.extend(runtime().block_on(played));
    }
    assert!(deviations.is_empty(), "{} deviations: {deviations:#?}", deviations.len());
    let mut changed = objects.clone();
    for (path, value) in others {
        set(&mut changed, &path, &value);
    }
    for schema_is_ours in [true, false] {
        runtime().block_on(async {
            let mut member = Member::<R>::new(schema_is_ours).await;
            let start = member.settle(objects, false).await;
            assert_eq!(member.settle(&changed, false).await, start);
            assert!(member.scene.api.writes() > 0);
        });
    }
}

pub(crate) fn one_worker<K>() -> WorkerOptions<K> {
    WorkerOptions {
        workers: 1,
        limit: S(60),
        ready: None,
        metrics: ReconcileMetrics::new(&Metrics::new()).unwrap().of_controller("test"),
        panics: PanicLimit::new(IntCounter::new("panics", "Contained panics.").unwrap()),
    }
}

/// A runtime for one field: the tasks of its members end with it.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}
