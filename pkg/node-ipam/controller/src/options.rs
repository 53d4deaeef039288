//! From flag values to pools: every rule of the start, without I/O.
//!
//! All problems are found in one pass, so that a user mends the command line once.

mod additional_ranges;
mod cloud;
mod cluster_cidrs;
mod ranges;

use std::time::Duration;

use cidr::{Family, IpNet, Pool, PoolError};
use flags::{Flag, Problem, Values};

use super::second_allocator::Hold;
use crate::flags::{
    ADDITIONAL_CLUSTER_CIDRS, ALLOCATE_NODE_CIDRS, CIDR_ALLOCATOR_TYPE, CLOUD_PROVIDER,
    CLUSTER_CIDR, CONCURRENT_NODE_CIDR_PATCHES, NODE_CIDR_EXCLUDE, NODE_CIDR_MASK_SIZE,
    NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6, NODE_CIDR_MAX_IPV6_BITS,
    ON_SECOND_ALLOCATOR, POD_CIDR_REUSE_DELAY, SERVICE_CLUSTER_IP_RANGE,
};
use crate::second_allocator::OnSecondAllocator;

pub(crate) use cloud::CloudOptions;
pub(crate) use cluster_cidrs::ClusterCidrOptions;
pub use ranges::Ranges;

/// The allocator types that exist.
const ALLOCATOR_TYPES: [&str; 5] =
    ["RangeAllocator", cloud::CLOUD_ALLOCATOR, "IPAMFromCluster", "IPAMFromCloud", MULTI_CIDR];

/// Pools from ClusterCIDRs.
const MULTI_CIDR: &str = "MultiCIDRRangeAllocator";

/// The longest that a block rests.
const REUSE_DELAY_MAX: Duration = Duration::from_secs(24 * 3600);

/// What the controller runs with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Pools in the order of `--cluster-cidr`, one or two of different families, with those of
    /// `--additional-cluster-cidrs` behind them; none where they come from ClusterCIDRs.
    pub(crate) pools: Vec<Pool>,
    /// Service ranges that no Node may get.
    pub(crate) service_ranges: Vec<IpNet>,
    /// What else no Node may get.
    pub(crate) excluded: Vec<IpNet>,
    /// How long the blocks of a Node that is gone are given to nobody.
    pub(crate) reuse_delay: Duration,
    /// Most PATCHes in flight at once.
    pub(crate) concurrency: usize,
    /// What follows from a second allocator.
    pub(crate) on_second_allocator: OnSecondAllocator,
    /// What holds all runs of this process.
    pub(crate) hold: Hold,
}

/// The verdict on a command line.
#[derive(Debug)]
pub(crate) enum Judged {
    /// `--allocate-node-cidrs` is off: nothing else was looked at.
    Off,
    /// Ready to run; the warnings are for the log.
    On {
        /// What to run with.
        options: Box<Options>,
        /// For pools that come from ClusterCIDRs.
        cluster_cidrs: Option<ClusterCidrOptions>,
        /// For an allocator that asks a cloud.
        cloud: Option<Box<CloudOptions>>,
        /// One sentence each, naming its flag.
        warnings: Vec<String>,
    },
}

/// Judges the values.
///
/// # Errors
/// Every broken rule, each naming its flag and the cause.
pub(crate) fn judge(values: &Values) -> Result<Judged, Vec<Problem>> {
    let allocates = values.get(&ALLOCATE_NODE_CIDRS);
    let mut problems = Vec::new();
    let kind = values.get(&CIDR_ALLOCATOR_TYPE);
    let provider = values.get(&CLOUD_PROVIDER);
    cloud::check_provider(&provider, allocates.then_some(kind.as_str()), &mut problems);
    if !allocates {
        return if problems.is_empty() { Ok(Judged::Off) } else { Err(problems) };
    }
    let mut warnings = Vec::new();
    check_allocator_type(&kind, &mut problems);
    let multi = kind == MULTI_CIDR;
    let given = values.get(&CLUSTER_CIDR);
    let unneeded = kind == cloud::CLOUD_ALLOCATOR || (multi && given.trim().is_empty());
    let clusters = if unneeded { None } else { cluster_cidrs(&given, &mut problems) };
    let service_ranges =
        service_ranges(&values.get(&SERVICE_CLUSTER_IP_RANGE), &mut problems, &mut warnings);
    let excluded = excluded(&values.get(&NODE_CIDR_EXCLUDE), &mut problems);
    let limit = ipv6_limit(values, &mut problems);
    let reuse_delay = reuse_delay(values, &mut problems);
    let concurrency = concurrency(values, &mut problems);
    let on_second_allocator = on_second_allocator(values, &mut problems);
    let pools = match clusters {
        Some(clusters) => pools(values, &clusters, limit, &mut problems),
        None => Vec::new(),
    };
    let further = values.get(&ADDITIONAL_CLUSTER_CIDRS);
    let pools = if multi || pools.is_empty() {
        pools
    } else {
        additional_ranges::added(&further, pools, limit, &mut problems)
    };
    for (flag, ranges) in
        [(&SERVICE_CLUSTER_IP_RANGE, &service_ranges), (&NODE_CIDR_EXCLUDE, &excluded)]
    {
        warnings.extend(pools.iter().filter_map(|pool| swallowed(pool, flag, ranges)));
    }
    let of_objects = ClusterCidrOptions::judge(values, &pools, limit, &mut problems);
    if multi {
        of_objects.check_default(&mut problems);
    }
    warnings.extend(cluster_cidrs::unused(values, multi));
    warnings.extend(cloud::unused(values, &kind, &pools));
    let reserved = [&service_ranges[..], &excluded].concat();
    let services = &service_ranges;
    let cloud = CloudOptions::judge(values, &kind, &pools, services, &reserved, &mut problems);
    let (pools, cluster_cidrs) = if multi { (Vec::new(), Some(of_objects)) } else { (pools, None) };
    if problems.is_empty() {
        let options = Box::new(Options {
            pools,
            service_ranges,
            excluded,
            reuse_delay,
            concurrency,
            on_second_allocator,
            hold: Hold::default(),
        });
        Ok(Judged::On { options, cluster_cidrs, cloud: cloud.map(Box::new), warnings })
    } else {
        Err(problems)
    }
}

fn on_second_allocator(values: &Values, problems: &mut Vec<Problem>) -> OnSecondAllocator {
    let given = values.get(&ON_SECOND_ALLOCATOR);
    OnSecondAllocator::named(&given).unwrap_or_else(|| {
        problems.push(ON_SECOND_ALLOCATOR.problem(format!("{given:?} is not pause, stop or warn")));
        OnSecondAllocator::default()
    })
}

/// A pool without a block to give is legal and surely not meant.
fn swallowed(pool: &Pool, flag: &Flag<String>, ranges: &[IpNet]) -> Option<String> {
    let range = ranges.iter().find(|range| range.contains(&pool.cidr()))?;
    Some(format!(
        "{CLUSTER_CIDR}: {} lies wholly inside {flag} {range}: no Node will get a pod CIDR",
        pool.cidr()
    ))
}

fn check_allocator_type(kind: &str, problems: &mut Vec<Problem>) {
    match kind {
        "" => {}
        known if ALLOCATOR_TYPES.contains(&known) => {}
        other => problems.push(
            CIDR_ALLOCATOR_TYPE
                .problem(format!("{other:?} is not one of {}", ALLOCATOR_TYPES.join(", "))),
        ),
    }
}

/// The cluster CIDRs, or `None` when they cannot be used.
fn cluster_cidrs(text: &str, problems: &mut Vec<Problem>) -> Option<Vec<IpNet>> {
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
    let given = text.split(',').count();
    if given > 2 {
        problems.push(CLUSTER_CIDR.problem(format!(
            "{given} CIDRs given; at most two are allowed, one of each IP family"
        )));
    }
    if let Some(family) = repeated_family(&cidrs) {
        problems.push(CLUSTER_CIDR.problem(format!(
            "{text:?} holds two {family} CIDRs; two CIDRs must be of different IP families"
        )));
    }
    (problems.len() == before).then_some(cidrs)
}

/// `rule:service-ranges-only-warn`.
fn service_ranges(
    text: &str,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<IpNet> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for element in text.split(',') {
        match cidr::parse(element) {
            Ok(net) => ranges.push(net),
            Err(error) => warnings.push(format!(
                "{SERVICE_CLUSTER_IP_RANGE}: {error}; Service IPs in it are not kept out of the pools"
            )),
        }
    }
    let given = text.split(',').count();
    if given > 2 {
        problems.push(SERVICE_CLUSTER_IP_RANGE.problem(format!(
            "{given} CIDRs given; at most two are allowed, one of each IP family"
        )));
    } else if let Some(family) = repeated_family(&ranges) {
        problems.push(SERVICE_CLUSTER_IP_RANGE.problem(format!(
            "{text:?} holds two {family} CIDRs; two CIDRs must be of different IP families"
        )));
    }
    ranges
}

/// `rule:excluded-addresses-go-to-nobody`.
fn excluded(text: &str, problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    for element in text.split(',').filter(|_| !text.trim().is_empty()) {
        match cidr::parse(element) {
            Ok(range) => ranges.push(range),
            Err(error) => problems.push(NODE_CIDR_EXCLUDE.problem(error.to_string())),
        }
    }
    ranges
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

fn ipv6_limit(values: &Values, problems: &mut Vec<Problem>) -> u8 {
    let given = values.get(&NODE_CIDR_MAX_IPV6_BITS);
    match u8::try_from(given) {
        Ok(bits @ 1..=64) => bits,
        _ => {
            let rule = format!("{given} is not between 1 and 64");
            problems.push(NODE_CIDR_MAX_IPV6_BITS.problem(rule));
            16
        }
    }
}

/// `rule:freed-blocks-rest`.
fn reuse_delay(values: &Values, problems: &mut Vec<Problem>) -> Duration {
    let given = values.get(&POD_CIDR_REUSE_DELAY);
    let delay = given.to_std();
    if given.nanos() < 0 || delay > REUSE_DELAY_MAX {
        let rule = format!("{given} is not between 0s and 24h");
        problems.push(POD_CIDR_REUSE_DELAY.problem(rule));
    }
    delay
}

fn concurrency(values: &Values, problems: &mut Vec<Problem>) -> usize {
    let given = values.get(&CONCURRENT_NODE_CIDR_PATCHES);
    match usize::try_from(given) {
        Ok(count @ 1..=1024) => count,
        _ => {
            let rule = format!("{given} is not between 1 and 1024");
            problems.push(CONCURRENT_NODE_CIDR_PATCHES.problem(rule));
            1
        }
    }
}

/// `rule:masks-by-family`.
fn pools(values: &Values, clusters: &[IpNet], limit: u8, problems: &mut Vec<Problem>) -> Vec<Pool> {
    let before = problems.len();
    let any = mask_flag(values, &NODE_CIDR_MASK_SIZE, family_width(clusters), problems);
    let v4 = mask_flag(values, &NODE_CIDR_MASK_SIZE_IPV4, 32, problems);
    let v6 = mask_flag(values, &NODE_CIDR_MASK_SIZE_IPV6, 128, problems);
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

/// A mask flag: `None` when unset (0), else a value between 1 and the width of the family.
fn mask_flag(
    values: &Values,
    flag: &Flag<i64>,
    width: u8,
    problems: &mut Vec<Problem>,
) -> Option<u8> {
    match values.get(flag) {
        0 => None,
        size => match u8::try_from(size) {
            Ok(size) if size <= width => Some(size),
            _ => {
                problems.push(flag.problem(format!("{size} is not between 1 and {width}")));
                None
            }
        },
    }
}

#[cfg(test)]
mod tests;
