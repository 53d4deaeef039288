//! [`details`]: one pool in full, for `check --pool`.

use cidr::{IpNet, Pool};

use super::{PoolUsage, Surveyed, claimed};
use crate::Ranges;

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

/// The pools with this range or of this ClusterCIDR. They are several when ClusterCIDRs share the
/// range, or when one has a range of each family.
pub fn details(nodes: &[Surveyed], ranges: &Ranges, wanted: &str) -> Vec<PoolDetails> {
    let range = cidr::parse(wanted).ok();
    let (kept_out, ledger, held) = claimed(nodes, ranges);
    let pools = ledger.pools().iter().zip(&kept_out).enumerate();
    let details = pools.filter_map(|(place, (pool, kept_out))| {
        let (name, state) = ranges.identity(place);
        let is_wanted = range == Some(pool.cidr()) || name == Some(wanted);
        is_wanted.then(|| {
            let of_node = |(node, cidrs): (&Surveyed, &Vec<IpNet>)| {
                let inside = cidrs.iter().filter(|cidr| pool.indices(cidr).is_some());
                let inside: Vec<IpNet> = inside.copied().collect();
                (!inside.is_empty()).then(|| (node.name.clone(), inside))
            };
            let mut held: Vec<_> = nodes.iter().zip(&held).filter_map(of_node).collect();
            held.sort_unstable_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
            PoolDetails {
                cluster_cidr: name.map(str::to_owned),
                state,
                usage: PoolUsage::of(pool, held.len()),
                kept_out: *kept_out,
                longest_free_run: pool.longest_free_run(),
                held,
            }
        })
    });
    details.collect()
}

impl PoolUsage {
    /// Of a pool of which so many Nodes have addresses.
    pub(super) fn of(pool: &Pool, nodes: usize) -> Self {
        Self {
            range: pool.cidr(),
            mask: pool.mask(),
            blocks: pool.blocks(),
            used: pool.used(),
            nodes,
        }
    }
}
