//! [`Topology`]: the zones and the region of a member, from the labels of its Nodes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

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

/// What was seen of the Nodes so far.
#[derive(Debug, Default)]
pub(crate) struct TopologyCounter {
    zones: BTreeSet<String>,
    regions: BTreeMap<String, usize>,
}

/// What is read of a Node.
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
    /// What it comes to; `None` when no Node says where it is.
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
