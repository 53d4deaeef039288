//! [`survey`]: problems with the pod CIDRs of a cluster and the allocators that set them, read from
//! its Nodes; [`usage`]: how full the pools are; [`details`]: one pool in full. For the command `check`; no I/O.

mod details;
mod node;

use std::collections::BTreeMap;
use std::time::Duration;

use cidr::{Conflict, Family, IpNet, Ledger, Pool};
use jiff::Timestamp;

use crate::Ranges;
pub use details::{PoolDetails, PoolUsage, details, usage};
pub use node::Surveyed;

/// Allocators that took turns within this time are taken for two that run at once.
const AT_ONCE: Duration = Duration::from_secs(600);

/// A problem with the pod CIDRs of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The pod CIDR of a Node cannot be read.
    Unreadable {
        /// The Node.
        node: String,
        /// The text of the CIDR.
        text: String,
    },
    /// Two Nodes, or one twice, have addresses in common.
    Overlap {
        /// The two Nodes, each with its CIDR.
        of: [(String, IpNet); 2],
    },
    /// A Node's CIDR lies in no pool of the flags.
    Outside {
        /// The Node.
        node: String,
        /// The CIDR of the Node.
        cidr: IpNet,
    },
    /// All CIDRs lie outside of the pools: the flags are those of another cluster.
    AllOutside {
        /// How many CIDRs Nodes have.
        cidrs: usize,
    },
    /// A Node's CIDR has addresses of Services.
    InServiceRange {
        /// The Node.
        node: String,
        /// The CIDR of the Node.
        cidr: IpNet,
        /// The range.
        services: IpNet,
    },
    /// CIDRs of Nodes have another size than what the flags give out.
    OtherSize {
        /// How many.
        nodes: usize,
        /// An example.
        example: (String, IpNet),
        /// The prefix length of the flags.
        mask: u8,
        /// True when no CIDR of the pool has it: the CIDRs were given out with other flags.
        all: bool,
    },
    /// A family has fewer blocks than there are Nodes.
    TooSmall {
        /// Ranges of the pools.
        pools: Vec<IpNet>,
        /// Blocks of all these pools.
        blocks: u128,
        /// The Nodes.
        nodes: usize,
    },
    /// Two allocators gave out CIDRs in turns.
    InTurns {
        /// Field managers of the allocators.
        managers: Vec<String>,
        /// Whether they did so just now.
        lately: bool,
    },
    /// A CIDR was given out by another allocator within the last ten minutes.
    Lately {
        /// Field manager of the allocator.
        manager: String,
        /// The Node that got it.
        node: String,
    },
    /// Nodes have no CIDR yet.
    Waiting {
        /// How many.
        nodes: usize,
    },
}

/// Checks `nodes`; most findings are in order of address; `ours` is the field manager that this
/// program writes as, `now` the time. Of Nodes that `--node-selector` does not select only overlaps
/// are found.
pub fn survey(nodes: &[Surveyed], ranges: &Ranges, ours: &str, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    let (nodes, others): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| ranges.select(node));
    let of_selected = held(&nodes, &mut found);
    let mut held = [&of_selected[..], &held(&others, &mut Vec::new())].concat();
    held.sort_unstable();
    overlaps(&held, &mut found);
    in_services(&held, ranges, &mut found);
    strays(&of_selected, ranges, &mut found);
    sizes(&of_selected, ranges, &mut found);
    too_small(nodes.len(), ranges, &mut found);
    allocators(&nodes, ours, now, &mut found);
    let waiting = nodes.iter().filter(|node| node.cidrs.is_empty()).count();
    if waiting > 0 {
        found.push(Finding::Waiting { nodes: waiting });
    }
    found
}

/// A CIDR and whose it is.
type Held<'a> = (IpNet, &'a str);

/// In order of address, a wider one before those in it.
fn held<'a>(nodes: &[&'a Surveyed], found: &mut Vec<Finding>) -> Vec<Held<'a>> {
    let mut held = Vec::new();
    for node in nodes {
        for text in &node.cidrs {
            match cidr::parse(text) {
                Ok(cidr) => held.push((cidr, node.name.as_str())),
                Err(_) => {
                    let (node, text) = (node.name.clone(), text.clone());
                    found.push(Finding::Unreadable { node, text });
                }
            }
        }
    }
    held.sort_unstable();
    held
}

/// A [`Finding::Overlap`] for each CIDR with the narrowest one that contains it.
fn overlaps(held: &[Held<'_>], found: &mut Vec<Finding>) {
    let mut ledger = Ledger::new(Vec::new());
    for (index, (cidr, node)) in held.iter().enumerate() {
        let conflicts = ledger.occupy(&index, &[*cidr]).conflicts;
        if let Some(Conflict { other, theirs, .. }) = conflicts.last() {
            let of = [(held[*other].1.to_owned(), *theirs), ((*node).to_owned(), *cidr)];
            found.push(Finding::Overlap { of });
        }
    }
}

fn in_services(held: &[Held<'_>], ranges: &Ranges, found: &mut Vec<Finding>) {
    for (cidr, node) in held {
        let overlap = |range: &&IpNet| range.contains(cidr) || cidr.contains(*range);
        if let Some(range) = ranges.services.iter().find(overlap) {
            let (node, services) = ((*node).to_owned(), *range);
            found.push(Finding::InServiceRange { node, cidr: *cidr, services });
        }
    }
}

fn strays(held: &[Held<'_>], ranges: &Ranges, found: &mut Vec<Finding>) {
    let pools = &ranges.pools;
    if pools.is_empty() {
        return;
    }
    let is_outside = |(cidr, _): &&Held<'_>| !pools.iter().any(|pool| pool.cidr().contains(cidr));
    let outside: Vec<_> = held.iter().filter(is_outside).collect();
    if !held.is_empty() && outside.len() == held.len() {
        found.push(Finding::AllOutside { cidrs: held.len() });
        return;
    }
    let stray = |(cidr, node): &Held<'_>| Finding::Outside { node: (*node).into(), cidr: *cidr };
    found.extend(outside.into_iter().map(stray));
}

fn too_small(nodes: usize, ranges: &Ranges, found: &mut Vec<Finding>) {
    for family in [Family::V4, Family::V6] {
        let pools = || ranges.pools.iter().filter(|pool| pool.family() == family);
        let blocks: u128 = pools().map(Pool::blocks).sum();
        if pools().next().is_some() && u128::try_from(nodes).is_ok_and(|count| count > blocks) {
            found.push(Finding::TooSmall {
                pools: pools().map(Pool::cidr).collect(),
                blocks,
                nodes,
            });
        }
    }
}

fn sizes(held: &[Held<'_>], ranges: &Ranges, found: &mut Vec<Finding>) {
    for pool in &ranges.pools {
        let of_pool =
            |(cidr, _): &&Held<'_>| Family::of(cidr) == pool.family() && pool.cidr().contains(cidr);
        let (same, others): (Vec<_>, Vec<_>) =
            held.iter().filter(of_pool).partition(|(cidr, _)| cidr.prefix_len() == pool.mask());
        if let Some((cidr, node)) = others.first() {
            let example = ((*node).to_owned(), *cidr);
            let (nodes, all) = (others.len(), same.is_empty());
            found.push(Finding::OtherSize { nodes, example, mask: pool.mask(), all });
        }
    }
}

/// Finds allocators that gave out CIDRs in turns, or just now.
fn allocators(nodes: &[&Surveyed], ours: &str, now: Timestamp, found: &mut Vec<Finding>) {
    let mut given: Vec<(Timestamp, &str, &str)> = Vec::new();
    for node in nodes.iter().filter(|node| !node.cidrs.is_empty()) {
        given.extend(node.setters.iter().map(|(at, by)| (*at, by.as_str(), node.name.as_str())));
    }
    given.sort_unstable();
    let is_late = |at: Timestamp| now.duration_since(at).unsigned_abs() < AT_ONCE;
    let late: Vec<_> = given.iter().copied().filter(|(at, ..)| is_late(*at)).collect();
    for (seen, lately) in [(&late, true), (&given, false)] {
        if turns(seen) > 1 {
            let mut managers: Vec<String> =
                seen.iter().map(|(_, by, _)| (*by).to_owned()).collect();
            managers.sort_unstable();
            managers.dedup();
            found.push(Finding::InTurns { managers, lately });
            return;
        }
    }
    let mut others = BTreeMap::new();
    for (_, manager, node) in late.into_iter().filter(|(_, manager, _)| *manager != ours) {
        others.insert(manager, node);
    }
    let lately = |(manager, node): (&str, &str)| Finding::Lately {
        manager: manager.to_owned(),
        node: node.to_owned(),
    };
    found.extend(others.into_iter().map(lately));
}

/// How often the next CIDR was given out by another allocator; once is a take-over.
fn turns(given: &[(Timestamp, &str, &str)]) -> usize {
    given.iter().zip(given.iter().skip(1)).filter(|(one, next)| one.1 != next.1).count()
}

#[cfg(test)]
mod tests;
