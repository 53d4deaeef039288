//! [`Places`]: the zones and the region of a member, from the labels of its Nodes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

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

/// One page of a list of Nodes.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Node>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(rename = "continue", default)]
    token: String,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    metadata: NodeMeta,
}

#[derive(Default, Deserialize)]
struct NodeMeta {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

impl Census {
    /// Takes in a page; the token of the next one, empty after the last. `None` if it is none.
    pub(crate) fn take(&mut self, page: &[u8]) -> Option<String> {
        let Page { metadata, items } = serde_json::from_slice(page).ok()?;
        for node in items {
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
        Some(metadata.token)
    }

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

    fn page(nodes: &[Value], token: &str) -> Vec<u8> {
        let items: Vec<_> =
            nodes.iter().map(|labels| json!({"metadata": {"labels": labels}})).collect();
        json!({"metadata": {"continue": token}, "items": items}).to_string().into()
    }

    fn at(zone: &str, region: &str) -> Value {
        json!({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region})
    }

    #[test]
    fn zones_are_sorted_and_the_region_is_that_of_most_nodes() {
        let mut census = Census::default();
        let first = page(&[at("b", "r2"), at("a", "r2"), at("b", "r1")], "next");
        assert_eq!(census.take(&first).as_deref(), Some("next"));
        let old = json!({"failure-domain.beta.kubernetes.io/zone": "c",
                         "failure-domain.beta.kubernetes.io/region": "r1"});
        let both = json!({"topology.kubernetes.io/zone": "a",
                          "failure-domain.beta.kubernetes.io/zone": "old"});
        assert_eq!(census.take(&page(&[old, both, Value::Null], "")).as_deref(), Some(""));
        let places = census.places().unwrap();
        assert_eq!(places.zones, ["a", "b", "c"]);
        assert_eq!((places.region.as_deref(), places.spread), (Some("r1"), true));
    }

    #[test]
    fn nodes_that_say_nothing_are_no_places() {
        let mut census = Census::default();
        census.take(&page(&[json!({}), json!({"topology.kubernetes.io/zone": ""})], "")).unwrap();
        assert_eq!(census.places(), None);
        assert_eq!(Census::default().take(b"no page"), None);
    }
}
