//! [`PoolUsage`]: how much of each pool is left.

use cidr::{IpNet, Ledger};

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

/// How much of each pool is used, in the order of the pools.
pub fn usage(nodes: &[Surveyed], ranges: &Ranges) -> Vec<PoolUsage> {
    let mut ledger = Ledger::new(ranges.pools.clone());
    let kept_out = [&ranges.services[..], &ranges.excluded].concat();
    // Owners only have to differ.
    ledger.occupy(&0, &kept_out);
    let held = |node: &Surveyed| -> Vec<IpNet> {
        node.cidrs.iter().filter_map(|text| cidr::parse(text).ok()).collect()
    };
    let held: Vec<Vec<IpNet>> = nodes.iter().map(held).collect();
    for (owner, cidrs) in (1..).zip(&held) {
        ledger.occupy(&owner, cidrs);
    }
    let pools = ledger.pools().iter().map(|pool| {
        let is_in = |cidrs: &&Vec<IpNet>| cidrs.iter().any(|cidr| pool.indices(cidr).is_some());
        PoolUsage {
            range: pool.cidr(),
            mask: pool.mask(),
            blocks: pool.blocks(),
            used: pool.used(),
            nodes: held.iter().filter(is_in).count(),
        }
    });
    pools.collect()
}

#[cfg(test)]
mod tests {
    use cidr::Pool;

    use super::*;

    #[test]
    fn blocks_of_nodes_services_and_what_is_excluded_are_used_once() {
        let net = |text| cidr::parse(text).unwrap();
        let pool = |cidr, mask| Pool::new(net(cidr), mask, 16).unwrap();
        let ranges = Ranges {
            pools: vec![pool("10.0.0.0/16", 24), pool("10.9.0.0/24", 24), pool("fd00::/62", 64)],
            services: vec![net("10.0.0.0/23")],
            excluded: vec![net("10.0.1.7/32"), net("10.0.5.0/24")],
            ..Ranges::default()
        };
        let node = |name: &str, cidrs: &[&str]| Surveyed {
            name: name.to_owned(),
            cidrs: cidrs.iter().map(ToString::to_string).collect(),
            ..Surveyed::default()
        };
        let nodes = [
            node("a", &["10.0.2.0/24", "fd00::/64"]),
            node("b", &["10.0.2.0/25"]),
            node("outside", &["172.16.0.0/24", "garbage"]),
            node("waiting", &[]),
        ];
        let found = usage(&nodes, &ranges);
        let numbers: Vec<_> =
            found.iter().map(|it| (it.mask, it.blocks, it.used, it.nodes)).collect();
        assert_eq!(numbers, [(24, 256, 4, 2), (24, 1, 0, 0), (64, 4, 1, 1)]);
        assert_eq!(found[1].range, net("10.9.0.0/24"));
    }
}
