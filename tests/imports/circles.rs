//! The circles of a directed graph: sets of nodes that all reach each other.

use std::collections::BTreeSet;

/// The largest sets of two or more nodes in which each node leads to all others.
pub(crate) fn circles<'a>(
    nodes: impl Iterator<Item = &'a str> + Clone,
    next: impl Fn(&str) -> BTreeSet<&'a str>,
) -> Vec<Vec<&'a str>> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    for node in nodes.clone() {
        if found.iter().any(|circle| circle.contains(&node)) {
            continue;
        }
        let ahead = reached(node, &next);
        let circle: Vec<_> = nodes
            .clone()
            .filter(|other| {
                *other == node || ahead.contains(other) && reached(other, &next).contains(node)
            })
            .collect();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// All nodes that can be reached from this one.
fn reached<'a>(from: &str, next: impl Fn(&str) -> BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> = next(from).into_iter().collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(next(node));
        }
    }
    seen
}
