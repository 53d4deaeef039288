//! Each field of the spec of a ClusterCIDR, set, changed, reverted and refused: what Nodes get, and what is published in
//! the end, are those of a ClusterCIDR that never had another spec. The reconciler and the allocator run on a server in
//! memory; the watch tells the allocator, and no PATCH of a Node is sent.

use api_server_double::fields::{Crd, End, Field, World, play};
use api_server_double::{ApiServer, Store, merge};
use informer::{Delta, Format, InformerMetrics, Server, Source, Subscription};
use kube_api::{Kind, LabelledNode, Node, NodeMarks, PodCidrs};
use prometheus::{IntCounter, Registry};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use workqueue::{
    PanicLimit, QueueMetrics, ReconcileMetrics, WorkQueue, WorkerOptions, run_workers,
};

use super::*;
use crate::allocator::{Assignment, Uid};
use crate::cluster_cidr::selector::Terms;
use crate::cluster_cidr::spec::CLUSTER_CIDRS;
use crate::cluster_cidr::{BACKOFF, see};

const RULES: Rules = Rules { terms: Terms::Or, ipv6_bits: 16 };
/// Names of Nodes, and the zone of each.
const NODES: [(&str, &str); 3] = [("n1", "a"), ("n2", "b"), ("n3", "c")];
const NAME: &str = "one";
const FINALIZER_OF_OTHERS: &str = "others.example.org/kept";

/// One ClusterCIDR and three Nodes.
struct OneClusterCidr {
    store: Arc<Store>,
    server: ApiServer,
    reconciler: Arc<ClusterCidrReconciler>,
    queue: WorkQueue<Arc<str>>,
    uid: u64,
    _subscription: Subscription<Object<ClusterCidr>>,
    _events: events::Broadcaster,
}

fn node_uid(name: &str, number: u64) -> Uid {
    Uid::from(format!("{name}-{number}").as_str())
}

fn worker(registry: &Registry) -> WorkerOptions<Arc<str>> {
    WorkerOptions {
        workers: 1,
        limit: STATUS_EVERY,
        ready: None,
        metrics: ReconcileMetrics::new(registry).unwrap().of_controller("test"),
        panics: PanicLimit::new(IntCounter::new("panics", "Contained panics.").unwrap()),
    }
}

/// All that others may write into the ClusterCIDR.
fn of_others() -> Value {
    let others = json!({"others.example.org/key": "kept"});
    json!({
        "apiVersion": CLUSTER_CIDRS.api_version(), "kind": CLUSTER_CIDRS.kind,
        "metadata": {"name": NAME, "labels": others, "annotations": others},
        "status": {"ofOthers": {"list": [{"kept": 1}]}},
    })
}

impl OneClusterCidr {
    fn new() -> Self {
        let (store, registry) = (Arc::<Store>::default(), Registry::new());
        let shown = Arc::clone(&store);
        let server = ApiServer::new(move |asked| shown.answer(asked));
        let client = server.client();
        let source = Source::new(Server::own(client.clone()), Kind::BuiltIn(CLUSTER_CIDRS));
        let metrics = InformerMetrics::new(&registry, "test").unwrap();
        let cache = Informer::<Object<ClusterCidr>>::new(source, &metrics, Format::Json);
        let running = cache.clone();
        tokio::spawn(async move { running.run(CancellationToken::new()).await });
        let metrics = events::EventMetrics::new(&registry).unwrap();
        let (recorder, events) = events::start(client.clone(), "test", "test", metrics);
        let allocator = Arc::new(Mutex::new(Allocator::of_cluster_cidrs(&[], STATUS_EVERY)));
        let queue = WorkQueue::new("test", BACKOFF, &QueueMetrics::new(&registry).unwrap());
        // As `watch` does, without the Nodes that it wakes.
        let (seen, add) = (Arc::clone(&allocator), queue.clone());
        let subscription = cache.subscribe(move |delta| {
            let object = match delta {
                Delta::Added(object) | Delta::Updated { new: object, .. } => {
                    drop(see(&mut seen.lock(), object, RULES));
                    object
                }
                Delta::Deleted(object) => {
                    drop(seen.lock().cluster_cidr_gone(&object.metadata.uid));
                    object
                }
                Delta::ListStarts | Delta::ListEnds => return,
            };
            add.add(Arc::clone(&object.metadata.key));
        });
        let client = ObjectClient::new(client, CLUSTER_CIDRS, "test", STATUS_EVERY);
        let said = Mutex::default();
        let reconciler = Arc::new(ClusterCidrReconciler {
            cache,
            client,
            allocator,
            recorder,
            rules: RULES,
            said,
        });
        tokio::spawn(run_workers(queue.clone(), Arc::clone(&reconciler), worker(&registry)));
        Self {
            store,
            server,
            reconciler,
            queue,
            uid: 0,
            _subscription: subscription,
            _events: events,
        }
    }

    /// The Nodes go, then the ClusterCIDR is deleted.
    async fn delete(&mut self) {
        for (name, _) in NODES {
            let gone = node_uid(name, self.uid);
            drop(self.reconciler.allocator.lock().gone(&gone, Instant::now()));
        }
        let path = CLUSTER_CIDRS.object_path(NAME);
        let Some(mut object) = self.store.get(&path) else { return };
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let finalizers = object["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|it| it != FINALIZER_OF_OTHERS);
        self.store.put(&path, object);
        sleep(STATUS_EVERY).await;
        assert_eq!(self.store.get(&path), None, "no Node has blocks of it, and it is held");
    }

    /// What each Node gets.
    fn assign(&self) -> Vec<String> {
        let (mut allocator, now) = (self.reconciler.allocator.lock(), Instant::now());
        let mut effects = Vec::new();
        for (name, zone) in NODES {
            let labels = [("zone", zone), ("tier", "front"), ("rank", "5")];
            let labels =
                labels.map(|(key, value)| (key.into(), value.into())).into_iter().collect();
            let marks = Some(Arc::new(NodeMarks { labels, taints: [].into_iter().collect() }));
            let node = Node {
                name: name.into(),
                uid: node_uid(name, self.uid),
                resource_version: 1,
                deleting: false,
                is_selected: true,
                pod_cidrs: PodCidrs::default(),
            };
            drop(allocator.observe(&LabelledNode { node, marks }, now));
            if let Assignment::Send { cidrs, .. } = allocator.assign(&node_uid(name, self.uid)).0 {
                effects.push(format!("{name} gets {cidrs:?}"));
            }
        }
        effects
    }

    /// The audit finds statuses that are outdated, several times.
    async fn audit(&self) {
        for _ in 0..3 {
            if let Some(object) = self.reconciler.cache.get(NAME)
                && self.reconciler.is_outdated(&object)
            {
                self.queue.add(NAME.into());
            }
            sleep(2 * STATUS_EVERY).await;
        }
    }

    fn writes(&self) -> usize {
        self.server.asked().iter().filter(|it| it.method() != "GET").count()
    }

    /// What the object and the events say.
    fn reports(&self, spec: &Value, asked: usize) -> Vec<String> {
        let object = self.store.get(&CLUSTER_CIDRS.object_path(NAME)).unwrap();
        assert_eq!(object["spec"], *spec, "a write changes the spec");
        let mut left = object.clone();
        merge(&mut left, &of_others());
        assert_eq!(left, object, "a write changes fields of others");
        let finalizers = object["metadata"]["finalizers"].as_array().unwrap();
        assert!(finalizers.contains(&FINALIZER_OF_OTHERS.into()), "{finalizers:?}");
        let mut conditions = object["status"]["conditions"].as_array().unwrap().clone();
        assert!(conditions.contains(&condition_of_others()), "{conditions:?}");
        for condition in &mut conditions {
            condition["lastTransitionTime"].take();
        }
        let news = self.server.asked().split_off(asked).into_iter();
        let events = news.filter(|it| it.path().ends_with("/events")).map(|it| it.json());
        let events: Vec<_> =
            events.map(|it| format!("{} {}", it["reason"], it["message"])).collect();
        let is_invalid =
            conditions.iter().any(|it| it["type"] == "Invalid" && it["status"] == "True");
        assert_eq!(events.len(), usize::from(is_invalid), "one event for one error: {events:?}");
        let families = object["status"]["families"].to_string();
        let said = conditions.iter().map(ToString::to_string);
        let held = finalizers.iter().map(ToString::to_string);
        said.chain(events).chain(held).chain([families]).collect()
    }
}

fn condition_of_others() -> Value {
    json!({"type": "OfOthers", "status": "Unknown", "ofOthers": "kept"})
}

impl World for OneClusterCidr {
    /// The spec of a ClusterCIDR does not change, so the object is always another one, and its Nodes are.
    async fn settle(&mut self, objects: &Value, _: bool) -> End {
        self.delete().await;
        self.uid += 1;
        let asked = self.server.asked().len();
        let mut whole = of_others();
        whole["metadata"]["uid"] = self.uid.to_string().into();
        whole["metadata"]["generation"] = 1.into();
        whole["metadata"]["finalizers"] = json!([FINALIZER_OF_OTHERS]);
        whole["status"]["conditions"] = json!([condition_of_others()]);
        whole["spec"] = objects["object"]["spec"].clone();
        self.store.put(&CLUSTER_CIDRS.object_path(NAME), whole);
        sleep(STATUS_EVERY).await;
        let effects = self.assign();
        self.audit().await;
        let (written, reports) = (self.writes(), self.reports(&objects["object"]["spec"], asked));
        self.audit().await;
        assert_eq!(self.writes(), written, "written again at rest");
        End { effects, reports }
    }
}

const TERMS: &str = "object.spec.nodeSelector.nodeSelectorTerms";

fn fields() -> Vec<Field> {
    let wants = |key: &str, operator: &str, values: &[&str]| json!([{"key": key, "operator": operator, "values": values}]);
    let by_label = |values: &[&str]| json!([{"matchExpressions": wants("zone", "In", values)}]);
    let by_name = |name: &str| json!([{"matchFields": wants("metadata.name", "In", &[name])}]);
    let labelled = |field: Field| field.given(TERMS, by_label(&["a"]));
    let named = |field: Field| field.given(TERMS, by_name("n1"));
    let at = |rest: &str| -> &'static str { format!("{TERMS}{rest}").leak() };
    let rows = [
        Field::new("object.spec.perNodeHostBits", 6, 8).refuses(3),
        Field::new("object.spec.perNodeHostBitsIPv4", 5, 6).refuses(40),
        Field::new("object.spec.perNodeHostBitsIPv6", 10, 12).refuses(2),
        Field::new("object.spec.ipv4", "10.1.0.0/16", "10.2.0.0/24").refuses("fd00::/112"),
        Field::new("object.spec.ipv6", "fd00:1::/112", "fd00:2::/112").refuses("no range"),
        Field::new(TERMS, by_label(&["a"]), by_name("n2")).refuses(json!([
            {"matchExpressions": wants("zone", "Like", &["a"])}])),
        labelled(Field::new(
            at("[].matchExpressions"),
            wants("zone", "In", &["b"]),
            wants("rank", "Gt", &["4"]),
        ))
        .refuses(wants("rank", "Gt", &["four"])),
        labelled(Field::new(at("[].matchExpressions[].key"), "rank", Value::Null)),
        labelled(Field::new(at("[].matchExpressions[].operator"), "NotIn", Value::Null))
            .refuses("Exists"),
        labelled(Field::new(at("[].matchExpressions[].values"), json!(["b"]), json!(["b", "c"])))
            .refuses(json!([])),
        named(Field::new(
            at("[].matchFields"),
            wants("metadata.name", "In", &["n2"]),
            wants("metadata.name", "In", &["n3"]),
        ))
        .refuses(wants("metadata.uid", "In", &["n2"])),
        named(Field::new(at("[].matchFields[].key"), Value::Null, Value::Null))
            .refuses("metadata.uid"),
        named(Field::new(at("[].matchFields[].operator"), "NotIn", Value::Null)).refuses("Exists"),
        named(Field::new(at("[].matchFields[].values"), json!(["n2"]), json!(["n3"])))
            .refuses(json!(["n1", "n2"])),
    ];
    rows.map(Field::replaced).into()
}

#[tokio::test(start_paused = true)]
async fn a_field_of_a_cluster_cidr_that_was_another_one_before_leaves_no_trace() {
    let spec = json!({"ipv4": "10.0.0.0/16", "ipv6": "fd00::/112", "perNodeHostBits": 7});
    let objects = json!({"object": {"spec": spec}});
    let crd = Crd::read("config/crd/networking.x-k8s.io_clustercidrs.yaml");
    assert_eq!(crd.is_complete(&["spec"], "object", &fields(), &[]), []);
    for field in fields() {
        assert_eq!(play(async || OneClusterCidr::new(), &objects, &field).await, []);
    }
}
