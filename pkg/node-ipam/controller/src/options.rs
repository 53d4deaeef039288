//! From flag values to pools: every rule of the start, without I/O.
//!
//! All problems are found in one pass, so that a user mends the command line once.

mod check_ranges;
mod cloud;
mod cluster_cidrs;
mod pools;

use std::time::Duration;

use cidr::{IpNet, Pool};
use flags::{Problem, Values};
use kube_api::LabelSelector;

use crate::flags::{
    ADDITIONAL_CLUSTER_CIDRS, ALLOCATE_NODE_CIDRS, CIDR_ALLOCATOR_TYPE, CLOUD_PROVIDER,
    CLUSTER_CIDR, CONCURRENT_NODE_CIDR_PATCHES, DRAIN_CLUSTER_CIDRS, NODE_CIDR_EXCLUDE,
    NODE_CIDR_MAX_IPV6_BITS, ON_SECOND_ALLOCATOR, PUBLISH_POOLS, SERVICE_CLUSTER_IP_RANGE,
    WARM_PROOF, WARM_STANDBY, named, node_selector, reuse_delay, within,
};
use crate::second_allocator::{Hold, OnSecondAllocator};

pub use check_ranges::Ranges;
pub(crate) use cloud::{CloudOptions, Direction, Families, Mode};
pub(crate) use cluster_cidrs::ClusterCidrOptions;

/// The allocator types that exist.
const ALLOCATOR_TYPES: [&str; 5] =
    ["RangeAllocator", cloud::CLOUD_ALLOCATOR, "IPAMFromCluster", "IPAMFromCloud", MULTI_CIDR];

/// Pools from ClusterCIDRs.
const MULTI_CIDR: &str = "MultiCIDRRangeAllocator";

/// Options of the controller.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Pools in the order of `--cluster-cidr`, one or two of different families, with those of
    /// `--additional-cluster-cidrs` behind them; none where they come from ClusterCIDRs.
    pub(crate) pools: Vec<Pool>,
    /// Those of the pools that give out nothing (`rule:draining-pool-gives-nothing`).
    pub(crate) drained: Vec<IpNet>,
    /// Service ranges that no Node may get.
    pub(crate) service_ranges: Vec<IpNet>,
    /// Ranges of `--node-cidr-exclude`, which no Node may get.
    pub(crate) excluded: Vec<IpNet>,
    /// Which Nodes get a pod CIDR; `None` for all.
    pub(crate) node_selector: Option<LabelSelector>,
    /// How long the blocks of a deleted Node stay unused.
    pub(crate) reuse_delay: Duration,
    /// Most PATCHes in flight at once.
    pub(crate) concurrency: usize,
    /// Reaction to a second allocator.
    pub(crate) on_second_allocator: OnSecondAllocator,
    /// Whether the leader publishes its pools in a ConfigMap.
    pub(crate) publish_pools: bool,
    /// The hold that all runs of this process share.
    pub(crate) hold: Hold,
    /// For a standby with a warm cache; `None` without `--warm-standby`.
    pub(crate) warm_proof: Option<WarmProof>,
}

/// Value of `--warm-proof`: how a new leader proves that the cache of its standby is up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WarmProof {
    /// Write to a Node, and wait until the watch shows it.
    #[default]
    Beacon,
    /// Read the newest version, and wait until the watch has got there. Writes nothing.
    Bookmark,
}

/// The verdict on a command line.
#[derive(Debug)]
pub(crate) enum Judged {
    /// `--allocate-node-cidrs` is off: nothing else was looked at.
    Off,
    /// Ready to run; the warnings are for the log.
    On {
        /// Options of the run.
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
    if !kind.is_empty() && !ALLOCATOR_TYPES.contains(&&*kind) {
        let types = ALLOCATOR_TYPES.join(", ");
        problems.push(CIDR_ALLOCATOR_TYPE.problem(format!("{kind:?} is not one of {types}")));
    }
    let multi = kind == MULTI_CIDR;
    let given = values.get(&CLUSTER_CIDR);
    let unneeded = kind == cloud::CLOUD_ALLOCATOR || (multi && given.trim().is_empty());
    let clusters = if unneeded { None } else { pools::cluster_cidrs(&given, &mut problems) };
    let service_ranges =
        pools::service_ranges(&values.get(&SERVICE_CLUSTER_IP_RANGE), &mut problems, &mut warnings);
    let excluded = pools::excluded(&values.get(&NODE_CIDR_EXCLUDE), &mut problems);
    let limit = within(values, &NODE_CIDR_MAX_IPV6_BITS, 1..=64, &mut problems).unwrap_or(16);
    let node_selector = node_selector(values, &mut problems);
    let reuse_delay = reuse_delay(values, &mut problems);
    let patches = within(values, &CONCURRENT_NODE_CIDR_PATCHES, 1..=1024, &mut problems);
    let concurrency = patches.unwrap_or(1);
    let reactions = (OnSecondAllocator::NAMES, "pause, stop or warn");
    let on_second_allocator = named(values, &ON_SECOND_ALLOCATOR, reactions, &mut problems);
    let proofs =
        ([("beacon", WarmProof::Beacon), ("bookmark", WarmProof::Bookmark)], "beacon or bookmark");
    let warm_proof = named(values, &WARM_PROOF, proofs, &mut problems);
    let pools = match clusters {
        Some(clusters) => pools::pools(values, &clusters, limit, &mut problems),
        None => Vec::new(),
    };
    let further = values.get(&ADDITIONAL_CLUSTER_CIDRS);
    let pools = if multi || pools.is_empty() {
        pools
    } else {
        pools::with_additional(&further, pools, limit, &mut problems)
    };
    let to_drain = values.get(&DRAIN_CLUSTER_CIDRS);
    let drained = if matches!(&*kind, "" | "RangeAllocator") && problems.is_empty() {
        pools::drained(&to_drain, &pools, &mut problems)
    } else {
        if problems.is_empty() && !to_drain.trim().is_empty() {
            warnings.push(format!(
                "{DRAIN_CLUSTER_CIDRS}: no effect with {kind}; for MultiCIDRRangeAllocator, annotate \
                 the ClusterCIDR"
            ));
        }
        Vec::new()
    };
    for (flag, ranges) in
        [(&SERVICE_CLUSTER_IP_RANGE, &service_ranges), (&NODE_CIDR_EXCLUDE, &excluded)]
    {
        warnings.extend(pools.iter().filter_map(|pool| pools::swallowed(pool, flag, ranges)));
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
            drained,
            service_ranges,
            excluded,
            node_selector,
            reuse_delay,
            concurrency,
            on_second_allocator,
            publish_pools: values.get(&PUBLISH_POOLS),
            hold: Hold::default(),
            warm_proof: values.get(&WARM_STANDBY).then_some(warm_proof),
        });
        Ok(Judged::On { options, cluster_cidrs, cloud: cloud.map(Box::new), warnings })
    } else {
        Err(problems)
    }
}

#[cfg(test)]
mod tests;
