//! Facts about a member apart from its health: its [`Topology`], zones and region by the labels of its
//! Nodes, and its [`Identity`], by which [`DuplicateClusters`] finds members that are the same
//! cluster. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use crate::engine::MemberId;
use crate::paging::{Abort, Collect};

/// Label and the one that came before it; looked for in each Node by itself.
const ZONE: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
const REGION: [&str; 2] =
    ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];

/// Values of labels are no longer.
const NAME_MAX: usize = 63;
/// More zones, and more regions, than any cluster has.
const TOPOLOGY_MAX: usize = 256;

/// Where a member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    /// Sorted, each once.
    pub(crate) zones: Vec<String>,
    /// The region of most Nodes; on a tie the first by name.
    pub(crate) region: Option<String>,
    /// The Nodes are in several regions.
    pub(crate) spread: bool,
}

/// The zones and regions of the Nodes so far.
#[derive(Debug, Default)]
pub(crate) struct TopologyCounter {
    zones: BTreeSet<String>,
    regions: BTreeMap<String, usize>,
}

/// The fields of a Node that are read.
#[derive(Deserialize)]
pub(crate) struct Node {
    #[serde(default)]
    metadata: NodeMeta,
}

#[derive(Default, Deserialize)]
struct NodeMeta {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

impl Collect for TopologyCounter {
    type Item = Node;

    fn add(&mut self, node: Node) -> Result<(), Abort> {
        let labels = node.metadata.labels.unwrap_or_default();
        let of = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| labels.get(*name));
            found.filter(|value| !value.is_empty()).cloned()
        };
        let (zone, region) = (of(ZONE), of(REGION));
        if [&zone, &region].into_iter().flatten().any(|name| name.len() > NAME_MAX) {
            return Err(Abort::TooLarge("a zone or region has more than 63 bytes"));
        }
        self.zones.extend(zone);
        if let Some(region) = region {
            *self.regions.entry(region).or_default() += 1;
        }
        if self.zones.len().max(self.regions.len()) > TOPOLOGY_MAX {
            return Err(Abort::TooLarge("there are more than 256 zones or regions"));
        }
        Ok(())
    }
}

impl TopologyCounter {
    /// The topology; `None` when no Node has a label for it.
    pub(crate) fn topology(self) -> Option<Topology> {
        let spread = self.regions.len() > 1;
        let most = self.regions.values().copied().max();
        let region = self.regions.into_iter().find(|(_, count)| Some(*count) == most);
        let topology = Topology {
            zones: self.zones.into_iter().collect(),
            region: region.map(|(region, _)| region),
            spread,
        };
        (topology != Topology::default()).then_some(topology)
    }
}

/// Where it is read: every cluster has this namespace, and none has it twice.
pub(super) const PATH: &str = "/api/v1/namespaces";
pub(super) const QUERY: [(&str, &str); 1] = [("fieldSelector", "metadata.name=kube-system")];
/// A UID has 36 bytes.
const UID_MAX: usize = 64;

/// The identity of the cluster of a member, once it could be read.
#[derive(Default)]
pub(super) struct Identity(Option<Box<str>>);

/// The fields of the namespace that are read.
#[derive(Deserialize)]
pub(super) struct Namespace {
    metadata: NamespaceMeta,
}

#[derive(Deserialize)]
struct NamespaceMeta {
    uid: Box<str>,
}

impl Collect for Identity {
    type Item = Namespace;

    fn add(&mut self, namespace: Namespace) -> Result<(), Abort> {
        let uid = Some(namespace.metadata.uid);
        self.0 = uid.filter(|uid| !uid.is_empty() && uid.len() <= UID_MAX);
        Ok(())
    }
}

/// The identity of the cluster of each member, by the UID of its object.
#[derive(Default)]
pub(super) struct DuplicateClusters(HashMap<Arc<str>, Known>);

struct Known {
    key: Arc<str>,
    identity: Box<str>,
}

impl DuplicateClusters {
    /// Takes in which cluster a member is; the other members that are the same one, in order, when it was not known yet.
    pub(super) fn found(&mut self, member: &MemberId, identity: Identity) -> Vec<Arc<str>> {
        let Some(identity) = identity.0 else { return Vec::new() };
        let known = Known { key: Arc::clone(&member.key), identity: identity.clone() };
        let before = self.0.insert(Arc::clone(&member.uid), known);
        if before.is_some_and(|before| before.identity == identity) {
            return Vec::new();
        }
        let others =
            self.0.iter().filter(|(uid, it)| **uid != member.uid && it.identity == identity);
        let mut others: Vec<_> = others.map(|(_, known)| Arc::clone(&known.key)).collect();
        others.sort_unstable();
        others
    }

    /// Nothing is known of it any more.
    pub(super) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn counter(nodes: &[Value]) -> TopologyCounter {
        let mut counter = TopologyCounter::default();
        for labels in nodes {
            let node = json!({"metadata": {"labels": labels}});
            counter.add(serde_json::from_value(node).unwrap()).unwrap();
        }
        counter
    }

    fn at(zone: &str, region: &str) -> Value {
        json!({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region})
    }

    #[test]
    fn zones_are_sorted_and_the_region_is_that_of_most_nodes() {
        let old = json!({"failure-domain.beta.kubernetes.io/zone": "c",
                         "failure-domain.beta.kubernetes.io/region": "r1"});
        let both = json!({"topology.kubernetes.io/zone": "a",
                          "failure-domain.beta.kubernetes.io/zone": "old"});
        let counter =
            counter(&[at("b", "r2"), at("a", "r2"), at("b", "r1"), old, both, Value::Null]);
        let topology = counter.topology().unwrap();
        assert_eq!(topology.zones, ["a", "b", "c"]);
        assert_eq!((topology.region.as_deref(), topology.spread), (Some("r1"), true));
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn more_zones_and_longer_names_than_any_cluster_has_end_the_list() {
        let add = |counter: &mut TopologyCounter, zone: &str, region: &str| {
            let node = json!({"metadata": {"labels": at(zone, region)}});
            counter.add(serde_json::from_value(node).unwrap())
        };
        for varied in [["zone", ""], ["", "region"]] {
            let mut counter = TopologyCounter::default();
            let [zone, region] = varied;
            let added = (0..1000)
                .take_while(|number| {
                    let name = |name: &str| (!name.is_empty()).then(|| format!("{name}-{number}"));
                    let (zone, region) = (name(zone), name(region));
                    let added = add(
                        &mut counter,
                        zone.as_deref().unwrap_or("z"),
                        region.as_deref().unwrap_or("r"),
                    );
                    added.is_ok()
                })
                .count();
            assert_eq!(added, TOPOLOGY_MAX);
        }
        let long = "x".repeat(NAME_MAX + 1);
        for (zone, region) in [(&*long, "r"), ("z", &*long)] {
            assert!(add(&mut TopologyCounter::default(), zone, region).is_err());
        }
    }

    #[test]
    fn nodes_that_say_nothing_are_no_places() {
        let counter = counter(&[json!({}), json!({"topology.kubernetes.io/zone": ""})]);
        assert_eq!(counter.topology(), None);
    }
}

#[cfg(test)]
mod duplicate_clusters_tests {
    use super::*;

    fn member(name: &str) -> MemberId {
        MemberId { uid: format!("uid-{name}").into(), key: format!("fed/{name}").into() }
    }

    /// rule:lists-of-members-are-bounded
    #[test]
    fn what_is_no_uid_is_not_kept() {
        assert!(identity(&"x".repeat(1 << 20)).0.is_none());
    }

    fn identity(uid: &str) -> Identity {
        let mut identity = Identity::default();
        identity
            .add(serde_json::from_value(serde_json::json!({"metadata": {"uid": uid}})).unwrap())
            .unwrap();
        identity
    }

    #[test]
    fn who_comes_to_be_known_as_a_cluster_that_is_there_already_is_told_once() {
        let mut duplicates = DuplicateClusters::default();
        let mut found = |name: &str, uid: &str| {
            let others = duplicates.found(&member(name), identity(uid));
            others.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("b", "one"), [""; 0]);
        assert_eq!(found("c", "other"), [""; 0]);
        assert_eq!(found("a", "one"), ["fed/b"]);
        assert_eq!(found("a", "one"), [""; 0], "it was told");
        assert_eq!(found("b", "one"), [""; 0], "the later one was told");
        assert_eq!(found("c", "one"), ["fed/a", "fed/b"], "it is another cluster now");
        assert_eq!(found("d", ""), [""; 0], "nothing is known");
        assert_eq!(found("e", ""), [""; 0], "nothing is known");
        assert!(duplicates.found(&member("f"), Identity::default()).is_empty());
    }

    #[test]
    fn who_is_gone_is_nobodys_double() {
        let mut duplicates = DuplicateClusters::default();
        duplicates.found(&member("a"), identity("one"));
        duplicates.forget("uid-a");
        assert!(duplicates.found(&member("b"), identity("one")).is_empty());
        duplicates.forget("uid-b");
        assert!(
            duplicates.found(&member("b"), identity("one")).is_empty(),
            "and it may come again"
        );
    }
}
