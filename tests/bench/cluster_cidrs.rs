//! ClusterCIDRs whose selectors overlap, the Nodes that they are for, and by a naive model whether
//! every Node was placed where it belongs. Pure.

use std::cmp::Reverse;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::blocks::MASK_SIZE;

/// A label, or the requirement that there is such a label.
pub(crate) type Label = (&'static str, String);

/// Number of ClusterCIDRs for each group of Nodes.
const OF_A_GROUP: u32 = 4;
/// Maximum of ClusterCIDRs: the number of /16 in the pool of the benchmark.
const MOST: u32 = 256;
/// The prefix lengths of the ranges of a group. The first takes what is left over; the third is
/// asked before it, and runs full.
const RANGES: [u8; OF_A_GROUP as usize] = [16, 19, 21, 20];

/// The ClusterCIDRs of a case.
pub(crate) struct ClusterCidrs(Vec<Object>);

struct Object {
    range: Ipv4Net,
    /// Terms of the nodeSelector. One matching term with all its requirements selects a Node.
    terms: Vec<Vec<Label>>,
}

/// Whether so many of them can serve so many Nodes.
pub(crate) fn can_serve(nodes: usize, objects: u32) -> bool {
    let groups = objects / OF_A_GROUP;
    (OF_A_GROUP..=MOST).contains(&objects)
        && objects.is_multiple_of(OF_A_GROUP)
        && nodes <= groups as usize * blocks(RANGES[0])
}

/// The labels of the Node of this number, where there are so many ClusterCIDRs.
pub(crate) fn labels(node: usize, objects: u32) -> Vec<Label> {
    let groups = (objects / OF_A_GROUP) as usize;
    let (group, place) = (node % groups, node / groups);
    let mut labels = vec![("group", group.to_string())];
    match place % 3 {
        0 => labels.push(("zone", "a".to_owned())),
        1 => labels.push(("zone", "b".to_owned())),
        _ => {}
    }
    if place.is_multiple_of(5) {
        labels.push(("disk", "fast".to_owned()));
    }
    labels
}

fn blocks(prefix: u8) -> usize {
    1 << (MASK_SIZE - prefix)
}

impl ClusterCidrs {
    /// A set of `objects` ClusterCIDRs.
    pub(crate) fn new(objects: u32) -> Self {
        Self((0..objects).map(Object::new).collect())
    }

    /// The manifests of the objects, in the order of their creation.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = Value> {
        self.0.iter().enumerate().map(|(number, object)| object.manifest(number))
    }

    /// Number of Nodes with a block of an object that does not select them, or of an object that comes
    /// after another object with a free block. Assumes that no block was ever freed.
    pub(crate) fn misplaced(&self, placed: &[(Vec<Label>, Ipv4Net)]) -> usize {
        let place = |block: &Ipv4Net| self.0.iter().position(|it| it.range.contains(block));
        let places: Vec<_> = placed.iter().map(|(_, block)| place(block)).collect();
        let is_full = |object: usize| {
            let used = places.iter().filter(|place| **place == Some(object)).count();
            used == blocks(self.0[object].range.prefix_len())
        };
        let full: Vec<bool> = (0..self.0.len()).map(is_full).collect();
        let is_right = |labels: &[Label], place: Option<usize>| {
            let mut order = self.order(labels).into_iter();
            place.is_some() && order.find(|it| !full[*it] || Some(*it) == place) == place
        };
        let of_each = placed.iter().zip(&places);
        of_each.filter(|((labels, _), place)| !is_right(labels, **place)).count()
    }

    /// The objects for a Node with these labels, the first to be asked in front: more requirements
    /// that are met, then fewer blocks.
    fn order(&self, labels: &[Label]) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.0.len())
            .filter_map(|it| Some((Reverse(self.0[it].fulfilled(labels)?), it)))
            .collect();
        order.sort_by_key(|(fulfilled, it)| (*fulfilled, blocks(self.0[*it].range.prefix_len())));
        order.into_iter().map(|(_, it)| it).collect()
    }
}

impl Object {
    fn new(number: u32) -> Self {
        let group = ("group", (number / OF_A_GROUP).to_string());
        let (zone, disk) = (|name: &str| ("zone", name.to_owned()), ("disk", "fast".to_owned()));
        let kind = (number % OF_A_GROUP) as usize;
        let terms = match kind {
            1 => vec![vec![group, zone("a")]],
            3 => vec![vec![group.clone(), disk.clone()], vec![group, zone("b"), disk]],
            _ => vec![vec![group]],
        };
        let first = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 0)) + (number << 16));
        Self { range: Ipv4Net::new_assert(first, RANGES[kind]), terms }
    }

    /// How many requirements the terms have that select this Node; none when it is not for it.
    fn fulfilled(&self, labels: &[Label]) -> Option<usize> {
        let selects = |term: &&Vec<Label>| term.iter().all(|wanted| labels.contains(wanted));
        let of_terms: Vec<usize> = self.terms.iter().filter(selects).map(Vec::len).collect();
        (!of_terms.is_empty()).then(|| of_terms.iter().sum())
    }

    fn manifest(&self, number: usize) -> Value {
        let requirement =
            |(key, value): &Label| json!({"key": key, "operator": "In", "values": [value]});
        let term = |term: &Vec<Label>| json!({"matchExpressions": term.iter().map(requirement).collect::<Vec<_>>()});
        let terms: Vec<Value> = self.terms.iter().map(term).collect();
        json!({
            "apiVersion": "networking.x-k8s.io/v1",
            "kind": "ClusterCIDR",
            "metadata": {"name": format!("bench-{number:03}")},
            "spec": {
                "perNodeHostBits": 32 - MASK_SIZE,
                "ipv4": self.range.to_string(),
                "nodeSelector": {"nodeSelectorTerms": terms},
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves Nodes in the order of their numbers, each from the first of its objects that has a
    /// block.
    fn serve(objects: &ClusterCidrs, nodes: usize, of: u32) -> Vec<(Vec<Label>, Ipv4Net)> {
        let mut used = vec![0_u32; objects.0.len()];
        let mut placed = Vec::new();
        for node in 0..nodes {
            let labels = labels(node, of);
            let order = objects.order(&labels);
            let has_block =
                |it: &usize| (used[*it] as usize) < blocks(objects.0[*it].range.prefix_len());
            let object = order.into_iter().find(has_block).unwrap();
            let first = u32::from(objects.0[object].range.network()) + (used[object] << 6);
            used[object] += 1;
            placed.push((labels, Ipv4Net::new_assert(first.into(), MASK_SIZE)));
        }
        placed
    }

    #[test]
    fn nodes_that_were_served_in_order_are_placed_right_and_one_that_was_not_is_counted() {
        let objects = ClusterCidrs::new(8);
        let mut placed = serve(&objects, 400, 8);
        assert_eq!(objects.misplaced(&placed), 0);
        let of = |object: usize, placed: &[(Vec<Label>, Ipv4Net)]| {
            let range = objects.0[object].range;
            placed.iter().filter(|(_, block)| range.contains(block)).count()
        };
        let counts: Vec<usize> = (0..8).map(|object| of(object, &placed)).collect();
        assert_eq!(counts[2], 32, "the small one is full");
        assert!(counts.iter().all(|count| *count > 0), "each serves a Node: {counts:?}");
        // The wide range of the other group, and one behind one with a free block.
        let strange = placed.iter().position(|(labels, _)| labels[0].1 == "1").unwrap();
        placed[strange].1 = "10.0.250.0/26".parse().unwrap();
        assert_eq!(objects.misplaced(&placed), 1);
        let zoned = [("group", "0".to_owned()), ("zone", "a".to_owned())];
        let zoned = placed.iter().position(|(labels, _)| *labels == zoned).unwrap();
        placed[zoned].1 = "10.0.251.0/26".parse().unwrap();
        assert_eq!(objects.misplaced(&placed), 2);
        placed[0].1 = "192.168.0.0/26".parse().unwrap();
        assert_eq!(objects.misplaced(&placed), 3);
    }

    #[test]
    fn more_nodes_than_the_wide_ranges_have_blocks_are_too_many() {
        assert!(can_serve(10_000, 200));
        assert!(can_serve(1_024, 4) && !can_serve(1_025, 4));
        for objects in [0, 3, 6, 260] {
            assert!(!can_serve(1, objects), "{objects}");
        }
    }
}
