//! From flag values to pools: every rule of the start, without I/O.
//!
//! All problems are found in one pass, so that a user mends the command line once.

use cidr::{Family, IpNet, Pool, PoolError};
use pflag::{Problem, Values};

/// The allocator types that exist; only the first is built (`rule:unbuilt-types-are-refused`).
const ALLOCATOR_TYPES: [&str; 5] = [
    "RangeAllocator",
    "CloudAllocator",
    "IPAMFromCluster",
    "IPAMFromCloud",
    "MultiCIDRRangeAllocator",
];

/// What the controller runs with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Pools in the order of `--cluster-cidr`: one, or two of different families.
    pub(crate) pools: Vec<Pool>,
    /// Service ranges that no Node may get.
    pub(crate) service_ranges: Vec<IpNet>,
    /// Most PATCHes in flight at once.
    pub(crate) concurrency: usize,
}

/// The verdict on a command line.
#[derive(Debug)]
pub(crate) enum Judged {
    /// `--allocate-node-cidrs` is off: nothing else was looked at.
    Off,
    /// Ready to run; the warnings are for the log.
    On {
        /// What to run with.
        options: Options,
        /// One sentence each, naming its flag.
        warnings: Vec<String>,
    },
}

/// Judges the values.
///
/// # Errors
/// Every broken rule, each naming its flag and the cause.
pub(crate) fn judge(values: &Values) -> Result<Judged, Vec<Problem>> {
    if !values.bool("allocate-node-cidrs") {
        return Ok(Judged::Off);
    }
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    check_allocator_type(values.string("cidr-allocator-type"), &mut problems);
    let clusters = cluster_cidrs(values.string("cluster-cidr"), &mut problems);
    let service_ranges =
        service_ranges(values.string("service-cluster-ip-range"), &mut problems, &mut warnings);
    let limit = ipv6_limit(values, &mut problems);
    let concurrency = concurrency(values, &mut problems);
    let pools = match clusters {
        Some(clusters) => pools(values, &clusters, limit, &mut problems),
        None => Vec::new(),
    };
    warnings.extend(pools.iter().filter_map(|pool| swallowed(pool, &service_ranges)));
    if problems.is_empty() {
        Ok(Judged::On { options: Options { pools, service_ranges, concurrency }, warnings })
    } else {
        Err(problems)
    }
}

/// A pool without a block to give is legal and surely not meant.
fn swallowed(pool: &Pool, service_ranges: &[IpNet]) -> Option<String> {
    let range = service_ranges.iter().find(|range| range.contains(&pool.cidr()))?;
    Some(format!(
        "--cluster-cidr: {} lies wholly inside --service-cluster-ip-range {range}: no Node will get \
         a pod CIDR",
        pool.cidr()
    ))
}

fn check_allocator_type(kind: &str, problems: &mut Vec<Problem>) {
    match kind {
        "" | "RangeAllocator" => {}
        known if ALLOCATOR_TYPES.contains(&known) => problems.push(Problem::new(
            "cidr-allocator-type",
            format!("{known} is not built yet; use RangeAllocator or leave the flag out"),
        )),
        other => problems.push(Problem::new(
            "cidr-allocator-type",
            format!("{other:?} is not one of {}", ALLOCATOR_TYPES.join(", ")),
        )),
    }
}

/// The cluster CIDRs, or `None` when they cannot be used.
fn cluster_cidrs(text: &str, problems: &mut Vec<Problem>) -> Option<Vec<IpNet>> {
    const FLAG: &str = "cluster-cidr";
    if text.trim().is_empty() {
        problems.push(Problem::new(FLAG, "must be set when --allocate-node-cidrs is true"));
        return None;
    }
    let before = problems.len();
    let mut cidrs = Vec::new();
    for element in text.split(',') {
        match cidr::parse(element) {
            Ok(net) => cidrs.push(net),
            Err(_) if element.trim().is_empty() => {
                problems.push(Problem::new(FLAG, format!("{text:?} has an empty element")));
            }
            Err(error) => problems.push(Problem::new(FLAG, error.to_string())),
        }
    }
    let given = text.split(',').count();
    if given > 2 {
        problems.push(Problem::new(
            FLAG,
            format!("{given} CIDRs given; at most two are allowed, one of each IP family"),
        ));
    }
    if let Some(family) = repeated_family(&cidrs) {
        problems.push(Problem::new(
            FLAG,
            format!(
                "{text:?} holds two {family} CIDRs; two CIDRs must be of different IP families"
            ),
        ));
    }
    (problems.len() == before).then_some(cidrs)
}

/// `rule:service-ranges-only-warn`.
fn service_ranges(
    text: &str,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Vec<IpNet> {
    const FLAG: &str = "service-cluster-ip-range";
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut ranges = Vec::new();
    for element in text.split(',') {
        match cidr::parse(element) {
            Ok(net) => ranges.push(net),
            Err(error) => warnings.push(format!(
                "--{FLAG}: {error}; Service IPs in it are not kept out of the pools"
            )),
        }
    }
    let given = text.split(',').count();
    if given > 2 {
        problems.push(Problem::new(
            FLAG,
            format!("{given} CIDRs given; at most two are allowed, one of each IP family"),
        ));
    } else if let Some(family) = repeated_family(&ranges) {
        problems.push(Problem::new(
            FLAG,
            format!(
                "{text:?} holds two {family} CIDRs; two CIDRs must be of different IP families"
            ),
        ));
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
    const FLAG: &str = "node-cidr-max-ipv6-bits";
    match u8::try_from(values.int(FLAG)) {
        Ok(bits @ 1..=64) => bits,
        _ => {
            problems
                .push(Problem::new(FLAG, format!("{} is not between 1 and 64", values.int(FLAG))));
            16
        }
    }
}

fn concurrency(values: &Values, problems: &mut Vec<Problem>) -> usize {
    const FLAG: &str = "concurrent-node-cidr-patches";
    match usize::try_from(values.int(FLAG)) {
        Ok(count @ 1..=1024) => count,
        _ => {
            problems.push(Problem::new(
                FLAG,
                format!("{} is not between 1 and 1024", values.int(FLAG)),
            ));
            1
        }
    }
}

/// `rule:masks-by-family`.
fn pools(values: &Values, clusters: &[IpNet], limit: u8, problems: &mut Vec<Problem>) -> Vec<Pool> {
    let before = problems.len();
    let any = mask_flag(values, "node-cidr-mask-size", family_width(clusters), problems);
    let v4 = mask_flag(values, "node-cidr-mask-size-ipv4", 32, problems);
    let v6 = mask_flag(values, "node-cidr-mask-size-ipv6", 128, problems);
    let dual = clusters.len() > 1;
    if dual && any.is_some() {
        problems.push(Problem::new(
            "node-cidr-mask-size",
            "cannot be used with two cluster CIDRs; set --node-cidr-mask-size-ipv4 and \
             --node-cidr-mask-size-ipv6",
        ));
    }
    if !dual && any.is_some() && (v4.is_some() || v6.is_some()) {
        problems.push(Problem::new(
            "node-cidr-mask-size",
            "cannot be used together with --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6",
        ));
    }
    for (family, size) in [(Family::V4, v4), (Family::V6, v6)] {
        let present = clusters.iter().any(|net| Family::of(net) == family);
        if size.is_some() && !present {
            problems.push(Problem::new(
                mask_name(family),
                format!("cannot be used: --cluster-cidr holds no {family} CIDR"),
            ));
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
        let flag = if any.is_some() { "node-cidr-mask-size" } else { mask_name(family) };
        match Pool::new(*cluster, any.or(own).unwrap_or(default), limit) {
            Ok(pool) => pools.push(pool),
            Err(error) => problems.push(Problem::new(flag, pool_message(&error))),
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

fn mask_name(family: Family) -> &'static str {
    match family {
        Family::V4 => "node-cidr-mask-size-ipv4",
        Family::V6 => "node-cidr-mask-size-ipv6",
    }
}

fn family_width(clusters: &[IpNet]) -> u8 {
    clusters.iter().map(IpNet::max_prefix_len).max().unwrap_or(32)
}

/// A mask flag: `None` when unset (0), else a value between 1 and the width of the family.
fn mask_flag(values: &Values, flag: &str, width: u8, problems: &mut Vec<Problem>) -> Option<u8> {
    match values.int(flag) {
        0 => None,
        size => match u8::try_from(size) {
            Ok(size) if size <= width => Some(size),
            _ => {
                problems.push(Problem::new(flag, format!("{size} is not between 1 and {width}")));
                None
            }
        },
    }
}

#[cfg(test)]
mod tests;
