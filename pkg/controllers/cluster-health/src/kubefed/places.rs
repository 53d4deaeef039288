//! [`Places`]: the zones and the region of a member, from the labels of its Nodes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::paging::Collect;

/// Label and the one that came before it; looked for in each Node by itself.
const ZONE: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
const REGION: [&str; 2] =
    ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];

/// Where a member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Sorted, each once.
    pub(crate) zones: Vec<String>,
    /// That of most Nodes; of as many, the first by name.
    pub(crate) region: Option<String>,
    /// Its Nodes are in several regions.
    pub(crate) spread: bool,
}

/// What was seen of the Nodes so far.
#[derive(Debug, Default)]
pub(crate) struct Census {
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

impl Collect for Census {
    type Item = Node;

    fn add(&mut self, node: Node) {
        let labels = node.metadata.labels.unwrap_or_default();
        let of = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| labels.get(*name));
            found.filter(|value| !value.is_empty()).cloned()
        };
        self.zones.extend(of(ZONE));
        if let Some(region) = of(REGION) {
            *self.regions.entry(region).or_default() += 1;
        }
    }
}

impl Census {
    /// What it comes to; `None` when no Node says where it is.
    pub(crate) fn places(self) -> Option<Places> {
        let spread = self.regions.len() > 1;
        let most = self.regions.values().copied().max();
        let region = self.regions.into_iter().find(|(_, count)| Some(*count) == most);
        let places = Places {
            zones: self.zones.into_iter().collect(),
            region: region.map(|(region, _)| region),
            spread,
        };
        (places != Places::default()).then_some(places)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn census(nodes: &[Value]) -> Census {
        let mut census = Census::default();
        for labels in nodes {
            let node = json!({"metadata": {"labels": labels}});
            census.add(serde_json::from_value(node).unwrap());
        }
        census
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
        let census = census(&[at("b", "r2"), at("a", "r2"), at("b", "r1"), old, both, Value::Null]);
        let places = census.places().unwrap();
        assert_eq!(places.zones, ["a", "b", "c"]);
        assert_eq!((places.region.as_deref(), places.spread), (Some("r1"), true));
    }

    #[test]
    fn nodes_that_say_nothing_are_no_places() {
        let census = census(&[json!({}), json!({"topology.kubernetes.io/zone": ""})]);
        assert_eq!(census.places(), None);
    }
}
