//! Each field of the spec of a Cluster, set, changed, reverted and refused in the running controller: the kubeconfig that
//! is made in the end, and what is published, are those of a Cluster that always had this spec.
//!
//! Three things outlive their reason on purpose, so no row compares them: what was adopted stays adopted, a milestone
//! stays reached, and the endpoint of the infrastructure counts once. All objects here are adopted and ready, and the
//! Clusters have an endpoint of their own.

use api_server_double::fields::{Crd, End, Field, World, play, set};
use api_server_double::{ApiServer, Reply, Store, merge};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{self, StreamExt as _};
use kube::config::Kubeconfig;
use kube_api::Resource;
use manager::Host;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::DropGuard;

use super::*;
use crate::api::{
    AWS_CLUSTERS, CLUSTER_FINALIZER, CLUSTERS, DIALECT_ANNOTATION, INFRASTRUCTURE_GROUP, SECRETS,
};
use crate::tests::{OTHERS, context, server, server_but_for};

const KEY: &str = "ns/c";
/// More than any pause of the controller.
const PAUSE: Duration = Duration::from_secs(90);

/// One Cluster, from its watch to its status and kubeconfig.
struct OneCluster {
    store: Arc<Store>,
    server: ApiServer,
    told: Value,
    number: u64,
    _host: Host,
    _stop: DropGuard,
}

fn options() -> Options {
    let values = flags::Values::from_given(crate::flags::FLAGS, [] as [(&str, &str); 0]).unwrap();
    let options = crate::options::judge(&values).unwrap();
    Options { mode: Mode::Standalone, ..options }
}

/// The objects that a Cluster may name: `a` and `b` of each kind, which are ready and say where they are.
fn infrastructure(store: &Store) {
    let other =
        Resource { kind: "OtherCluster".into(), plural: "otherclusters".into(), ..AWS_CLUSTERS };
    for kind in [AWS_CLUSTERS, other, OTHERS] {
        for name in ["a", "b"] {
            let place = format!("{name} of {}.{}", kind.kind, kind.group);
            let status = json!({
                "ready": true, "failureDomains": {place: {}},
                "apiEndpoints": [{"host": "of-infrastructure", "port": 6443}],
            });
            let metadata = json!({"namespace": "ns", "name": name});
            store.put(
                &kind.object_path(&format!("ns/{name}")),
                json!({"metadata": metadata, "spec": {"of": "others"}, "status": status}),
            );
        }
    }
}

/// The Cluster of `KEY` without a spec, with all that others may write into it.
fn of_others() -> Value {
    let others = json!({"others.example.org/key": "kept"});
    let condition = json!({"type": "OfOthers", "status": "Unknown", "ofOthers": "kept"});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "namespace": "ns", "name": "c", "labels": others, "annotations": others,
            "finalizers": ["others.example.org/kept"],
        },
        "status": {"ofOthers": {"list": [{"kept": 1}]}, "conditions": [condition]},
    })
}

impl OneCluster {
    async fn new() -> Self {
        let store = Arc::<Store>::default();
        infrastructure(&store);
        let server = server(&store);
        let (context, host) = context(&server).await;
        let stop = context.stop.clone().drop_guard();
        tokio::spawn(async move { run(&context, &options()).await.unwrap() });
        Self { store, server, told: Value::Null, number: 0, _host: host, _stop: stop }
    }

    /// The Cluster as its user stores it: the spec is the user's, the rest what the controller left.
    fn tell(&mut self, object: &Value, is_replaced: bool) {
        let path = CLUSTERS.object_path(KEY);
        self.number += 1;
        if is_replaced {
            for gone in ["c", "c-kubeconfig", "c-ca", "c-sa", "c-proxy", "c-etcd"] {
                self.store.remove(gone);
            }
        }
        let mut whole = self.store.get(&path).unwrap_or_else(|| {
            let mut whole = of_others();
            whole["metadata"]["uid"] = format!("u{}", self.number).into();
            whole
        });
        whole["spec"] = object["spec"].clone();
        whole["metadata"]["generation"] = self.number.into();
        self.store.put(&path, whole);
    }

    /// The server of the kubeconfig that is stored.
    fn kubeconfig(&self) -> Option<String> {
        let secret = self.store.get(&SECRETS.object_path("ns/c-kubeconfig"))?;
        let text = STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap();
        let file = Kubeconfig::from_yaml(std::str::from_utf8(&text).unwrap()).unwrap();
        let user = &file.auth_infos[0].name;
        Some(format!("{user} at {:?}", file.clusters[0].cluster.as_ref()?.server))
    }

    fn reports(&self, object: &Value, asked: usize) -> Vec<String> {
        let cluster = self.store.get(&CLUSTERS.object_path(KEY)).unwrap();
        assert_eq!(cluster["spec"], object["spec"], "a write changes the spec");
        let mut others = of_others();
        for list in ["/metadata/finalizers", "/status/conditions"] {
            let kept = others.pointer_mut(list).unwrap().take();
            let found = cluster.pointer(list).and_then(Value::as_array).unwrap();
            assert!(found.contains(&kept[0]), "a write changes {kept}: {found:?}");
            *others.pointer_mut(list).unwrap() = found.clone().into();
        }
        let mut left = cluster.clone();
        merge(&mut left, &others);
        assert_eq!(left, cluster, "a write changes fields of others");
        let mut status = cluster["status"].clone();
        without_details(&mut status);
        let mut reports = vec![status["phase"].to_string(), status["failureDomains"].to_string()];
        reports.push(status["apiEndpoints"].to_string());
        let conditions = status["conditions"].as_array().into_iter().flatten();
        reports.extend(conditions.map(ToString::to_string));
        reports.sort();
        let news = self.server.asked().split_off(asked).into_iter();
        let news = news.filter(|it| it.path().ends_with("/events")).map(|it| it.json());
        let news = news.filter(|event| event["type"] == "Warning");
        reports.extend(news.map(|event| event["reason"].to_string()));
        reports
    }

    fn writes(&self) -> usize {
        let all = self.server.asked();
        all.iter().filter(|it| it.method() != "GET" && !it.path().contains("review")).count()
    }
}

/// Takes away times, messages and the number of the version that was looked at.
fn without_details(status: &mut Value) {
    match status {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !name.ends_with("Time") && name != "message" && name != "observedGeneration"
            });
            fields.values_mut().for_each(without_details);
        }
        Value::Array(items) => items.iter_mut().for_each(without_details),
        _ => {}
    }
}

impl World for OneCluster {
    async fn settle(&mut self, objects: &Value, is_replaced: bool) -> End {
        let object = &objects["object"];
        let asked = self.server.asked().len();
        if self.told != *object || is_replaced {
            self.told = object.clone();
            self.tell(object, is_replaced);
        }
        sleep(PAUSE).await;
        let reports = self.reports(object, asked);
        let written = self.writes();
        sleep(PAUSE).await;
        assert_eq!(self.writes(), written, "written again at rest");
        // Whether the kubeconfig is ours to make shows when it is gone; until then it is the one that would be made.
        let before = self.kubeconfig();
        self.store.remove("c-kubeconfig");
        sleep(PAUSE).await;
        let made = self.kubeconfig();
        assert!(made.is_none() || made == before, "{before:?} is not renewed as {made:?}");
        End { effects: made.into_iter().collect(), reports }
    }
}

fn fields() -> Vec<Field> {
    let field = |name: &str| -> &'static str { format!("object.spec.{name}").leak() };
    let to = |group: &str| json!({"apiGroup": group, "kind": "AWSCluster", "name": "a"});
    vec![
        Field::new(field("paused"), Value::Null, Value::Null).refuses(true),
        Field::new(field("controlPlaneEndpoint.host"), "two.example.org", "fd00::1"),
        Field::new(field("controlPlaneEndpoint.port"), 443, 8443),
        Field::new(field("infrastructureRef.kind"), "OtherCluster", Value::Null).refuses("Absent"),
        Field::new(field("infrastructureRef.name"), "b", Value::Null).refuses("absent"),
        Field::new(field("infrastructureRef.apiGroup"), &*OTHERS.group, Value::Null)
            .refuses("absent.example.org"),
        Field::new(
            field("infrastructureRef.apiVersion"),
            "others.example.org/v2",
            "others.example.org/v1alpha2",
        )
        .given(field("infrastructureRef"), to(&AWS_CLUSTERS.group))
        .given(field("infrastructureRef.apiGroup"), Value::Null)
        .replaced(),
        Field::new(field("clusterNetwork.pods.cidrBlocks"), Value::Null, Value::Null)
            .refuses(json!(["10.96.0.0/16"])),
        Field::new(field("clusterNetwork.services.cidrBlocks"), Value::Null, Value::Null)
            .refuses(json!(["192.168.0.0/24"])),
        Field::new(field("topology"), Value::Null, Value::Null)
            .refuses(json!({"classRef": {"name": "one"}})),
    ]
}

/// A runtime for one field: the tasks of its controllers end with it.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn a_field_of_a_cluster_that_is_changed_or_reverted_leaves_no_trace() {
    let objects = json!({"object": {"spec": {
        "controlPlaneEndpoint": {"host": "one.example.org", "port": 6443},
        "infrastructureRef": {"apiGroup": AWS_CLUSTERS.group, "kind": "AWSCluster", "name": "a"},
        "clusterNetwork": {
            "pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]},
        },
    }}});
    let fields = fields();
    let reference = json!({"apiGroup": "g", "kind": "ControlPlane", "name": "one"});
    let reference = Field::new("object.spec.controlPlaneRef", reference, Value::Null);
    let mut deviations = Vec::new();
    for field in fields.iter().chain([&reference]) {
        deviations.extend(runtime().block_on(play(OneCluster::new, &objects, field)));
    }
    assert!(deviations.is_empty(), "{} deviations: {deviations:#?}", deviations.len());
    let (by_kind_and_name, of_others) =
        ("an object is found by group, kind and name", "no part of this program reads it");
    let is_there = "whether there is a reference decides, which has a row";
    let mut exceptions = vec![
        (
            "spec.clusterNetwork.apiServerPort".to_owned(),
            "`aws_spec.rs` reads it for the load balancer",
        ),
        ("spec.clusterNetwork.serviceDomain".to_owned(), of_others),
        ("spec.availabilityGates".to_owned(), of_others),
        ("spec.controlPlaneRef".to_owned(), is_there),
    ];
    for name in ["namespace", "uid", "resourceVersion", "fieldPath"] {
        exceptions.push((format!("spec.infrastructureRef.{name}"), by_kind_and_name));
    }
    let exceptions: Vec<_> = exceptions.iter().map(|(it, reason)| (&**it, *reason)).collect();
    let crd = Crd::read("config/crd/cluster.x-k8s.io_clusters.yaml");
    let others = crd.is_complete(&["spec"], "object", &fields, &exceptions);
    // All of them at once change nothing, and are not changed.
    let mut start = objects;
    set(&mut start, "object.spec.controlPlaneRef", &json!({"kind": "K", "name": "n"}));
    let mut changed = start.clone();
    for (path, value) in &others {
        set(&mut changed, path, value);
    }
    runtime().block_on(async {
        let mut cluster = OneCluster::new().await;
        let end = cluster.settle(&start, false).await;
        assert_eq!(cluster.settle(&changed, false).await, end);
    });
}

/// The infrastructure of a Cluster, while the cache shows the one that had its name before, which is being deleted or not.
async fn infrastructure_of_the_next_one(is_deleting: bool) -> Option<Value> {
    let (store, path) = (Arc::<Store>::default(), CLUSTERS.object_path(KEY));
    let other =
        Resource { kind: "OtherCluster".into(), plural: "otherclusters".into(), ..AWS_CLUSTERS };
    let cluster = |uid: &str| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {
                "namespace": "ns", "name": "c", "uid": uid, "finalizers": [CLUSTER_FINALIZER],
                "annotations": {DIALECT_ANNOTATION: "v1beta2"},
            },
            "spec": {"infrastructureRef": {
                "apiGroup": INFRASTRUCTURE_GROUP, "kind": "OtherCluster", "name": "c",
            }},
        })
    };
    let mut first = cluster("u1");
    if is_deleting {
        first["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    store.put(&path, first);
    let infrastructure = other.object_path("ns/c");
    let (next, known) = (cluster("u2"), Arc::clone(&store));
    let (next_path, made) = (path.clone(), infrastructure.clone());
    let server = server_but_for(&store, move |asked| {
        let is_watch = asked.path().ends_with("/clusters") && asked.query().contains("watch=true");
        let ends = asked.path().starts_with(&next_path)
            && known.get(&next_path)?["metadata"]["uid"] == "u1"
            && asked.method() == "PATCH";
        if ends {
            // It ends, the answer is lost, and its user makes the next one at once.
            known.answer(asked);
            known.put(&next_path, next.clone());
            known.put(&made, json!({"metadata": {"namespace": "ns", "name": "c"}}));
            return Some(Reply::failure(500, "InternalError"));
        }
        is_watch.then(|| Reply::Watch(stream::pending().boxed()))
    });
    let (context, _host) = context(&server).await;
    let _stop = context.stop.clone().drop_guard();
    tokio::spawn(async move { run(&context, &options()).await.unwrap() });
    sleep(PAUSE).await;
    assert_eq!(store.get(&path).unwrap()["metadata"]["uid"], "u2");
    let asked = server.asked();
    let reads = asked.iter().filter(|it| it.method() == "GET" && it.path() == path);
    assert!(reads.count() > 0, "no reconcile has met the infrastructure");
    store.get(&infrastructure)
}

/// `rule:infrastructure-of-another-cluster-is-left`
#[tokio::test(start_paused = true)]
async fn a_cluster_that_has_ended_takes_nothing_from_the_next_one_of_its_name() {
    assert!(infrastructure_of_the_next_one(true).await.is_some(), "it is deleted");
    let found = infrastructure_of_the_next_one(false).await.unwrap();
    assert_eq!(found["metadata"]["ownerReferences"], Value::Null, "it is adopted");
}
