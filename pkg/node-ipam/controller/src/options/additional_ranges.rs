//! `--additional-cluster-cidrs`: further pools of the families that `--cluster-cidr` has.

use cidr::{Family, IpNet, Pool};
use flags::Problem;

use crate::flags::ADDITIONAL_CLUSTER_CIDRS;

/// `pools` with those of the flag behind them, whose blocks are as large.
pub(super) fn added(
    text: &str,
    pools: Vec<Pool>,
    ipv6_bits: u8,
    problems: &mut Vec<Problem>,
) -> Vec<Pool> {
    let mut all = pools;
    for element in text.split(',').filter(|_| !text.trim().is_empty()) {
        match pool(element, &all, ipv6_bits) {
            Ok(pool) => all.push(pool),
            Err(cause) => problems.push(ADDITIONAL_CLUSTER_CIDRS.problem(cause)),
        }
    }
    all
}

fn pool(element: &str, before: &[Pool], ipv6_bits: u8) -> Result<Pool, String> {
    let range = cidr::parse(element).map_err(|error| error.to_string())?;
    let family = Family::of(&range);
    let overlaps = |other: &IpNet| other.contains(&range) || range.contains(other);
    if let Some(other) = before.iter().map(Pool::cidr).find(overlaps) {
        return Err(format!("{range} overlaps {other}, of which blocks are cut already"));
    }
    let Some(alike) = before.iter().find(|pool| pool.family() == family) else {
        return Err(format!("{range} cannot be used: --cluster-cidr holds no {family} CIDR"));
    };
    Pool::new(range, alike.mask(), ipv6_bits).map_err(|error| error.to_string())
}
