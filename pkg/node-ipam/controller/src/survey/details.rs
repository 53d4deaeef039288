//! [`details`]: one pool in full, for `check --pool`.

use cidr::{IpNet, Ledger, Pool};

use super::Surveyed;
use crate::Ranges;

/// One pool in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    /// The range.
    pub range: IpNet,
    /// Prefix length of its blocks.
    pub mask: u8,
    /// How many it has.
    pub blocks: u128,
    /// How many of them Nodes, Services and what is excluded overlap.
    pub used: u128,
    /// Nodes with addresses of it.
    pub nodes: usize,
}

/// One pool with the Nodes that have addresses of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolDetails {
    /// The ClusterCIDR that the pool is of, if it is of one.
    pub cluster_cidr: Option<String>,
    /// Whether it assigns blocks, as in the metric `node_ipam_pool_state`.
    pub state: &'static str,
    /// The pool in numbers.
    pub usage: PoolUsage,
    /// Used blocks that service ranges or excluded ranges overlap.
    pub kept_out: u128,
    /// The most free blocks side by side.
    pub longest_free_run: u128,
    /// Nodes, each with its CIDRs in the pool, in order of address.
    pub held: Vec<(String, Vec<IpNet>)>,
}

/// How much of each pool is used, in the order of the pools.
pub fn usage(nodes: &[Surveyed], ranges: &Ranges) -> Vec<PoolUsage> {
    of_pools(nodes, ranges, |_, _| true).into_iter().map(|pool| pool.usage).collect()
}

/// The pools with this range or of this ClusterCIDR. They are several when ClusterCIDRs share the
/// range, or when one has a range of each family.
pub fn details(nodes: &[Surveyed], ranges: &Ranges, wanted: &str) -> Vec<PoolDetails> {
    let range = cidr::parse(wanted).ok();
    of_pools(nodes, ranges, |pool, name| range == Some(pool.cidr()) || name == Some(wanted))
}

/// The pools that are wanted, by their range and the name of their ClusterCIDR.
fn of_pools(
    nodes: &[Surveyed],
    ranges: &Ranges,
    is_wanted: impl Fn(&Pool, Option<&str>) -> bool,
) -> Vec<PoolDetails> {
    let mut ledger = Ledger::new(ranges.pools.clone());
    // Owners only have to differ.
    ledger.occupy(&0, &[&ranges.services[..], &ranges.excluded].concat());
    let kept_out: Vec<u128> = ledger.pools().iter().map(Pool::used).collect();
    let held = |node: &Surveyed| -> Vec<IpNet> {
        node.cidrs.iter().filter_map(|text| cidr::parse(text).ok()).collect()
    };
    let held: Vec<Vec<IpNet>> = nodes.iter().map(held).collect();
    for (owner, cidrs) in (1..).zip(&held) {
        ledger.occupy(&owner, cidrs);
    }
    let pools = ledger.pools().iter().zip(kept_out).enumerate();
    let details = pools.filter_map(|(place, (pool, kept_out))| {
        let (name, state) = ranges.identity(place);
        is_wanted(pool, name).then(|| {
            let of_node = |(node, cidrs): (&Surveyed, &Vec<IpNet>)| {
                let inside = cidrs.iter().filter(|cidr| pool.indices(cidr).is_some());
                let inside: Vec<IpNet> = inside.copied().collect();
                (!inside.is_empty()).then(|| (node.name.clone(), inside))
            };
            let mut held: Vec<_> = nodes.iter().zip(&held).filter_map(of_node).collect();
            held.sort_unstable_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
            let usage = PoolUsage {
                range: pool.cidr(),
                mask: pool.mask(),
                blocks: pool.blocks(),
                used: pool.used(),
                nodes: held.len(),
            };
            let (cluster_cidr, longest_free_run) =
                (name.map(str::to_owned), pool.longest_free_run());
            PoolDetails { cluster_cidr, state, usage, kept_out, longest_free_run, held }
        })
    });
    details.collect()
}
