//! Texts and times of a ClusterCIDR's status, and each field of its spec.

use api_server_double::fields::{Crd, End, Field, World, play};
use kube_api::{LabelledNode, Node, NodeMarks, PodCidrs};
use serde_json::{Value, json};

use super::*;
use crate::allocator::{Assignment, Uid};
use crate::cluster_cidr::see;
use crate::cluster_cidr::selector::Terms;

fn facts() -> Facts {
    let range = |cidr: &str, blocks, used| RangeUse { cidr: cidr.parse().unwrap(), blocks, used };
    let ranges = vec![range("10.0.0.0/22", 4, 1), range("fd00::/56", 1 << 64, 1)];
    Facts { error: None, terminating: None, draining: None, ranges, generation: 3 }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Type, status, reason, message.
fn said(status: &ClusterCidrStatus) -> Vec<(&str, &str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions.map(|it| (&*it.kind, &*it.status, &*it.reason, &*it.message)).collect()
}

#[test]
fn one_in_use_is_ready_and_shows_its_ranges() {
    let mut status = ClusterCidrStatus::default();
    facts().publish(&mut status, at(10));
    assert_eq!(
        said(&status),
        [
            ("Ready", "True", "Ready", ""),
            ("Exhausted", "False", "BlocksLeft", ""),
            ("Terminating", "False", "NotDeleted", ""),
            ("Invalid", "False", "Valid", ""),
            ("Draining", "False", "NotDraining", ""),
        ]
    );
    assert!(status.conditions.iter().all(|it| it.observed_generation == Some(3)));
    let numbers: Vec<_> = status.families.iter().map(|it| (&*it.cidr, it.total, it.used)).collect();
    assert_eq!(numbers, [("10.0.0.0/22", 4, 1), ("fd00::/56", i64::MAX, 1)]);
}

#[test]
fn what_is_full_wrong_or_on_its_way_out_is_said_with_the_reason() {
    let mut full = facts();
    full.ranges[0].used = 4;
    let mut status = ClusterCidrStatus::default();
    full.publish(&mut status, at(10));
    assert_eq!(
        said(&status)[1],
        ("Exhausted", "True", "NoFreeBlock", "10.0.0.0/22 has no free block")
    );

    let wrong = Facts { error: Some(SpecError::NoRange), ranges: Vec::new(), ..facts() };
    wrong.publish(&mut status, at(20));
    let why = "it has neither ipv4 nor ipv6; set one of them";
    assert_eq!(said(&status)[0], ("Ready", "False", "Invalid", why));
    assert_eq!(said(&status)[3], ("Invalid", "True", "InvalidClusterCIDR", why));
    assert_eq!(status.families, []);

    for (nodes, message) in [
        (1, "1 Node has addresses of this ClusterCIDR; the ClusterCIDR is deleted after that Node"),
        (
            3,
            "3 Nodes have addresses of this ClusterCIDR; the ClusterCIDR is deleted after the last of them",
        ),
    ] {
        let leaving = Facts { terminating: Some(Holding::By(nodes)), ..facts() };
        leaving.publish(&mut status, at(30));
        assert_eq!(
            said(&status)[0],
            (
                "Ready",
                "False",
                "Terminating",
                "the ClusterCIDR is being deleted and assigns no more blocks"
            )
        );
        assert_eq!(said(&status)[2], ("Terminating", "True", "Deleted", message));
    }
}

/// `rule:draining-pool-gives-nothing`
#[test]
fn one_that_is_drained_says_how_many_nodes_are_left() {
    let mut status = ClusterCidrStatus::default();
    for (holding, reason, message) in [
        (Holding::By(3), "NodesLeft", "3 Nodes left"),
        (Holding::By(1), "NodesLeft", "1 Node left"),
        (Holding::Unused, "Drained", "0 Nodes left"),
    ] {
        Facts { draining: Some(holding), ..facts() }.publish(&mut status, at(10));
        assert_eq!(said(&status)[4], ("Draining", "True", reason, message));
        let ready = "the ClusterCIDR is draining and assigns no more blocks";
        assert_eq!(said(&status)[0], ("Ready", "False", "Draining", ready));
    }
    facts().publish(&mut status, at(20));
    assert_eq!(said(&status)[0], ("Ready", "True", "Ready", ""));
    assert_eq!(said(&status)[4], ("Draining", "False", "NotDraining", ""));
}

#[test]
fn saying_the_same_again_changes_nothing_and_a_time_is_that_of_the_change() {
    let mut status = ClusterCidrStatus::default();
    facts().publish(&mut status, at(10));
    let before = status.clone();
    facts().publish(&mut status, at(20));
    assert_eq!(status, before);
    let mut full = facts();
    full.ranges[0].used = 4;
    full.publish(&mut status, at(30));
    let since = |index: usize| status.conditions[index].last_transition_time.clone().unwrap();
    assert_eq!((&*since(0), &*since(1)), ("1970-01-01T00:00:10Z", "1970-01-01T00:00:30Z"));
}

/// The MultiCIDRRangeAllocator with one ClusterCIDR and three Nodes.
struct OneClusterCidr {
    allocator: Allocator,
    uid: u64,
}

const RULES: Rules = Rules { terms: Terms::Or, ipv6_bits: 16 };
/// Names of Nodes, and the zone of each.
const NODES: [(&str, &str); 3] = [("n1", "a"), ("n2", "b"), ("n3", "c")];

impl World for OneClusterCidr {
    /// The spec of a ClusterCIDR does not change, so the object is always another one, and its Nodes are.
    async fn settle(&mut self, objects: &Value, _: bool) -> End {
        let (allocator, now) = (&mut self.allocator, Instant::now());
        let node_uid = |name: &str, number: u64| Uid::from(format!("{name}-{number}").as_str());
        for (name, _) in NODES {
            drop(allocator.gone(&node_uid(name, self.uid), now));
        }
        drop(allocator.cluster_cidr_gone(&self.uid.to_string()));
        self.uid += 1;
        let uid = self.uid.to_string();
        let mut whole = objects["object"].clone();
        whole["metadata"] = json!({"name": "one", "uid": uid, "resourceVersion": "1",
            "finalizers": [FINALIZER]});
        let object: Object<ClusterCidr> = Object::read(whole).unwrap();
        let written = serde_json::to_value(&object.body).unwrap();
        assert_eq!(written["spec"], objects["object"]["spec"], "a write keeps all fields");
        drop(see(allocator, &object, RULES));
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
        let error = Plan::of(&object.body.spec, RULES).err();
        let ranges = allocator.use_of(&uid).unwrap_or_default();
        let (terminating, draining) = (None, None);
        let mut status = ClusterCidrStatus::default();
        Facts { error, terminating, draining, ranges, generation: 1 }.publish(&mut status, at(10));
        let families = status.families.iter().map(|it| format!("{it:?}"));
        let conditions = said(&status).into_iter().map(|it| format!("{it:?}"));
        End { effects, reports: families.chain(conditions).collect() }
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

#[tokio::test]
async fn a_field_of_a_cluster_cidr_that_was_another_one_before_leaves_no_trace() {
    let new = async || OneClusterCidr {
        allocator: Allocator::of_cluster_cidrs(&[], STATUS_EVERY),
        uid: 0,
    };
    let spec = json!({"ipv4": "10.0.0.0/16", "ipv6": "fd00::/112", "perNodeHostBits": 7});
    let objects = json!({"object": {"spec": spec}});
    let crd = Crd::read("config/crd/networking.x-k8s.io_clustercidrs.yaml");
    assert_eq!(crd.is_complete(&["spec"], "object", &fields(), &[]), []);
    for field in fields() {
        assert_eq!(play(new, &objects, &field).await, []);
    }
}
