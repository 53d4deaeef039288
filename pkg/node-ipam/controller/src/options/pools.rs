//! From the flags of ranges and masks to [`Pool`]s and to the ranges that no Node may get.

use cidr::{Family, IpNet, ParseError, Pool, PoolError};
use flags::{Flag, Problem, Values};

use crate::flags::{
    ADDITIONAL_CLUSTER_CIDRS, CLUSTER_CIDR, DRAIN_CLUSTER_CIDRS, NODE_CIDR_EXCLUDE,
    NODE_CIDR_MASK_SIZE, NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6,
    SERVICE_CLUSTER_IP_RANGE, within,
};

/// The cluster CIDRs, or `None` when they cannot be used.
pub(super) fn cluster_cidrs(text: &str, problems: &mut Vec<Problem>) -> Option<Vec<IpNet>> {
    if text.trim().is_empty() {
        problems.push(CLUSTER_CIDR.problem("must be set when --allocate-node-cidrs is true"));
        return None;
    }
    let before = problems.len();
    let mut cidrs = Vec::new();
    for element in text.split(',') {
        match cidr::parse(element) {
            Ok(net) => cidrs.push(net),
            Err(_) if element.trim().is_empty() => {
                problems.push(CLUSTER_CIDR.problem(format!("{text:?} has an empty element")));
            }
            Err(error) => problems.push(CLUSTER_CIDR.problem(error.to_string())),
        }
    }
    problems.extend(broken_rules(text, &cidrs).map(|rule| CLUSTER_CIDR.problem(rule)));
    (problems.len() == before).then_some(cidrs)
}

/// A service range that cannot be parsed is left out with a warning, as stock does; three, or two of
/// one family, are refused.
pub(super) fn service_ranges(
    text: &str,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<IpNet> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for range in elements(text) {
        match range {
            Ok(net) => ranges.push(net),
            Err(error) => warnings.push(format!(
                "{SERVICE_CLUSTER_IP_RANGE}: {error}; its Service IPs are not excluded from the \
                 pools"
            )),
        }
    }
    let broken = broken_rules(text, &ranges).next();
    problems.extend(broken.map(|rule| SERVICE_CLUSTER_IP_RANGE.problem(rule)));
    ranges
}

/// Ranges of `--node-cidr-exclude`: given to no Node, counted as used; a Node that has them keeps them.
pub(super) fn excluded(text: &str, problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let mut refused =
        |error: ParseError| problems.push(NODE_CIDR_EXCLUDE.problem(error.to_string()));
    elements(text).filter_map(|range| range.map_err(&mut refused).ok()).collect()
}

/// The ranges of a list; none of an empty text.
fn elements(text: &str) -> impl Iterator<Item = Result<IpNet, ParseError>> {
    text.split(',').filter(|_| !text.trim().is_empty()).map(cidr::parse)
}

/// The rules that a list breaks which may have one range of each family.
fn broken_rules(text: &str, ranges: &[IpNet]) -> impl Iterator<Item = String> {
    let given = text.split(',').count();
    let too_many = (given > 2)
        .then(|| format!("{given} CIDRs given; at most two are allowed, one of each IP family"));
    let repeated = repeated_family(ranges).map(|family| {
        format!("{text:?} holds two {family} CIDRs; two CIDRs must be of different IP families")
    });
    too_many.into_iter().chain(repeated)
}

fn repeated_family(cidrs: &[IpNet]) -> Option<Family> {
    let v4 = cidrs.iter().filter(|net| Family::of(net) == Family::V4).count();
    if v4 > 1 {
        Some(Family::V4)
    } else if cidrs.len() - v4 > 1 {
        Some(Family::V6)
    } else {
        None
    }
}

/// One cluster CIDR takes `--node-cidr-mask-size` or the size of its family, two take the sizes per
/// family only; the defaults are /24 and /64.
pub(super) fn pools(
    values: &Values,
    clusters: &[IpNet],
    limit: u8,
    problems: &mut Vec<Problem>,
) -> Vec<Pool> {
    let before = problems.len();
    // 0 stands for the default.
    let mut mask = |flag: &Flag<i64>, width: u8| {
        if values.get(flag) == 0 { None } else { within(values, flag, 1..=width, problems) }
    };
    let any = mask(&NODE_CIDR_MASK_SIZE, family_width(clusters));
    let v4 = mask(&NODE_CIDR_MASK_SIZE_IPV4, 32);
    let v6 = mask(&NODE_CIDR_MASK_SIZE_IPV6, 128);
    let dual = clusters.len() > 1;
    if dual && any.is_some() {
        problems.push(NODE_CIDR_MASK_SIZE.problem(
            "cannot be used with two cluster CIDRs; set --node-cidr-mask-size-ipv4 and \
             --node-cidr-mask-size-ipv6",
        ));
    }
    if !dual && any.is_some() && (v4.is_some() || v6.is_some()) {
        problems.push(NODE_CIDR_MASK_SIZE.problem(
            "cannot be used together with --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6",
        ));
    }
    for (family, size) in [(Family::V4, v4), (Family::V6, v6)] {
        let present = clusters.iter().any(|net| Family::of(net) == family);
        if size.is_some() && !present {
            problems.push(
                mask_size(family)
                    .problem(format!("cannot be used: --cluster-cidr holds no {family} CIDR")),
            );
        }
    }
    if problems.len() > before {
        return Vec::new();
    }
    let mut pools = Vec::new();
    for cluster in clusters {
        let family = Family::of(cluster);
        let (own, default) = match family {
            Family::V4 => (v4, 24),
            Family::V6 => (v6, 64),
        };
        let flag = if any.is_some() { NODE_CIDR_MASK_SIZE } else { mask_size(family) };
        match Pool::new(*cluster, any.or(own).unwrap_or(default), limit) {
            Ok(pool) => pools.push(pool),
            Err(error) => problems.push(flag.problem(pool_message(&error))),
        }
    }
    pools
}

fn pool_message(error: &PoolError) -> String {
    match error {
        PoolError::TooManyIpv6Bits { .. } => {
            format!("{error} with --node-cidr-max-ipv6-bits")
        }
        _ => error.to_string(),
    }
}

fn mask_size(family: Family) -> Flag<i64> {
    match family {
        Family::V4 => NODE_CIDR_MASK_SIZE_IPV4,
        Family::V6 => NODE_CIDR_MASK_SIZE_IPV6,
    }
}

fn family_width(clusters: &[IpNet]) -> u8 {
    clusters.iter().map(IpNet::max_prefix_len).max().unwrap_or(32)
}

/// A pool without a block to give is legal and surely not meant.
pub(super) fn swallowed(pool: &Pool, flag: &Flag<String>, ranges: &[IpNet]) -> Option<String> {
    let range = ranges.iter().find(|range| range.contains(&pool.cidr()))?;
    Some(format!(
        "{CLUSTER_CIDR}: {} is completely inside {flag} {range}: no Node will get a pod CIDR",
        pool.cidr()
    ))
}

/// `pools` with those of the flag behind them, whose blocks are as large.
pub(super) fn with_additional(
    text: &str,
    pools: Vec<Pool>,
    ipv6_bits: u8,
    problems: &mut Vec<Problem>,
) -> Vec<Pool> {
    let mut all = pools;
    for range in elements(text) {
        let range = range.map_err(|error| error.to_string());
        match range.and_then(|range| additional_pool(range, &all, ipv6_bits)) {
            Ok(pool) => all.push(pool),
            Err(cause) => problems.push(ADDITIONAL_CLUSTER_CIDRS.problem(cause)),
        }
    }
    all
}

/// Ranges of `--drain-cluster-cidrs`: each is a pool, and each family keeps another one.
pub(super) fn drained(text: &str, pools: &[Pool], problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let mut drained = Vec::new();
    for range in elements(text) {
        match range {
            Ok(range) if pools.iter().any(|pool| pool.cidr() == range) => drained.push(range),
            Ok(range) => problems.push(DRAIN_CLUSTER_CIDRS.problem(format!(
                "{range} is not a range of {CLUSTER_CIDR} or {ADDITIONAL_CLUSTER_CIDRS}"
            ))),
            Err(error) => problems.push(DRAIN_CLUSTER_CIDRS.problem(error.to_string())),
        }
    }
    for family in [Family::V4, Family::V6] {
        let mut ranges = pools.iter().filter(|pool| pool.family() == family).peekable();
        if ranges.peek().is_some() && ranges.all(|pool| drained.contains(&pool.cidr())) {
            problems.push(DRAIN_CLUSTER_CIDRS.problem(format!(
                "no {family} range is left to assign blocks; keep one, or add one to \
                 {ADDITIONAL_CLUSTER_CIDRS}"
            )));
        }
    }
    drained
}

fn additional_pool(range: IpNet, before: &[Pool], ipv6_bits: u8) -> Result<Pool, String> {
    let family = Family::of(&range);
    let overlaps = |other: &IpNet| other.contains(&range) || range.contains(other);
    if let Some(other) = before.iter().map(Pool::cidr).find(overlaps) {
        return Err(format!("{range} overlaps {other}; use each range once"));
    }
    let Some(alike) = before.iter().find(|pool| pool.family() == family) else {
        return Err(format!("{range} cannot be used: --cluster-cidr holds no {family} CIDR"));
    };
    Pool::new(range, alike.mask(), ipv6_bits).map_err(|error| error.to_string())
}
