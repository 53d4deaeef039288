//! Flags of the allocators that ask a cloud.

use std::path::Path;

use cidr::{Family, IpNet, Pool};
use flags::{Problem, Values};

use crate::flags::{
    CIDR_ALLOCATOR_TYPE, CLOUD_CONFIG, CLOUD_PROVIDER, CLUSTER_CIDR, CONFIGURE_CLOUD_ROUTES,
    NODE_CIDR_MASK_SIZE, NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6, POD_CIDR_REUSE_DELAY,
};

/// The name of the CloudAllocator.
pub(super) const CLOUD_ALLOCATOR: &str = "CloudAllocator";

/// The allocator that the flags ask for.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// The CloudAllocator.
    Copy(Families),
    /// IPAMFromCluster or IPAMFromCloud.
    Sync {
        /// IPAMFromCluster or IPAMFromCloud.
        direction: Direction,
        /// Where blocks come from.
        pool: Pool,
        /// Ranges of the pool that no Node may get.
        reserved: Vec<IpNet>,
    },
}

/// The side that decides if Node and VM differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Nodes get blocks of the pool, and the cloud routes them.
    FromCluster,
    /// Nodes get what the cloud has given their VMs.
    FromCloud,
}

impl Direction {
    /// The value of `--cidr-allocator-type`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FromCluster => "IPAMFromCluster",
            Self::FromCloud => "IPAMFromCloud",
        }
    }
}

/// One or two families, the primary one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Families(pub(crate) Vec<Family>);

impl Families {
    /// Families of the service ranges; IPv4 without such ranges.
    pub(crate) fn of_services(services: &[IpNet]) -> Self {
        let mut families: Vec<_> = services.iter().map(Family::of).collect();
        families.dedup();
        if families.is_empty() {
            families.push(Family::V4);
        }
        Self(families)
    }
}

/// Options of an allocator that asks a cloud.
#[derive(Clone, Debug)]
pub(crate) struct CloudOptions {
    /// How Google is called.
    pub(crate) google: gce::Config,
    /// The allocator.
    pub(crate) mode: Mode,
}

/// Whether an allocator of this name asks a cloud.
pub(super) fn asks_a_cloud(kind: &str) -> bool {
    kind == CLOUD_ALLOCATOR || direction(kind).is_some()
}

fn direction(kind: &str) -> Option<Direction> {
    [Direction::FromCluster, Direction::FromCloud].into_iter().find(|it| it.name() == kind)
}

/// The provider, on its own and with the allocator of this name, if anything is allocated.
pub(super) fn check_provider(name: &str, kind: Option<&str>, problems: &mut Vec<Problem>) {
    match (name, kind) {
        ("gce", _) => {}
        ("" | "external", kind) => {
            if let Some(kind) = kind.filter(|kind| asks_a_cloud(kind)) {
                problems.push(CIDR_ALLOCATOR_TYPE.problem(format!(
                    "{kind} takes pod CIDRs from a cloud; also set {CLOUD_PROVIDER}=gce"
                )));
            }
        }
        (other, _) => problems.push(
            CLOUD_PROVIDER
                .problem(format!("{other:?} is not a cloud provider; use \"\", external or gce")),
        ),
    }
}

impl CloudOptions {
    /// Judges the values for an allocator of this name; `None` when it asks no cloud. `pools` are
    /// those of `--cluster-cidr`, `reserved` what no Node may get of them. The file of
    /// `--cloud-config` belongs to the command line, and is read here.
    pub(super) fn judge(
        values: &Values,
        kind: &str,
        pools: &[Pool],
        services: &[IpNet],
        reserved: &[IpNet],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let path = values.get(&CLOUD_CONFIG);
        let is_google = values.get(&CLOUD_PROVIDER) == "gce";
        let google = match path.as_str() {
            path if is_google && !path.is_empty() => gce::Config::read(Path::new(path)),
            _ => Ok(gce::Config::default()),
        };
        let google = google
            .map_err(|error| problems.push(CLOUD_CONFIG.problem(error.to_string())))
            .unwrap_or_default();
        if kind == CLOUD_ALLOCATOR {
            return Some(Self { google, mode: Mode::Copy(Families::of_services(services)) });
        }
        let (direction, pool) = (direction(kind)?, pools.first()?.clone());
        if is_full(&pool, reserved) {
            problems.push(CLUSTER_CIDR.problem(format!(
                "no block of {} is left for Nodes outside the service and excluded ranges",
                pool.cidr()
            )));
        }
        let reserved = reserved.to_vec();
        Some(Self { google, mode: Mode::Sync { direction, pool, reserved } })
    }
}

fn is_full(pool: &Pool, reserved: &[IpNet]) -> bool {
    let mut pool = pool.clone();
    for range in reserved {
        pool.occupy(range);
    }
    pool.free() == 0
}

/// Flags that have no effect on an allocator with this name, or one that is not meant.
pub(super) fn unused(values: &Values, kind: &str, pools: &[Pool]) -> Vec<String> {
    let mut unused = Vec::new();
    let is_google = values.get(&CLOUD_PROVIDER) == "gce";
    if kind == CLOUD_ALLOCATOR {
        let no_effect = "no effect with CloudAllocator: the cloud chooses the ranges";
        if !values.get(&CLUSTER_CIDR).trim().is_empty() {
            unused.push(format!("{CLUSTER_CIDR}: {no_effect}"));
        }
        let masks = [NODE_CIDR_MASK_SIZE, NODE_CIDR_MASK_SIZE_IPV4, NODE_CIDR_MASK_SIZE_IPV6];
        let given = masks.iter().filter(|mask| values.get(mask) != 0);
        unused.extend(given.map(|mask| format!("{mask}: {no_effect}")));
    }
    let chooses = kind != CLOUD_ALLOCATOR && direction(kind) != Some(Direction::FromCloud);
    if !chooses && values.get(&POD_CIDR_REUSE_DELAY).nanos() != 0 {
        unused.push(format!(
            "{POD_CIDR_REUSE_DELAY}: no effect with {kind}: the cloud chooses the ranges"
        ));
    }
    if let (Some(_), [_, second, ..]) = (direction(kind), pools) {
        let second = second.cidr();
        unused.push(format!("{CLUSTER_CIDR}: {kind} uses only the first range, not {second}"));
    }
    if !is_google && !values.get(&CLOUD_CONFIG).is_empty() {
        unused.push(format!("{CLOUD_CONFIG}: no effect without {CLOUD_PROVIDER}=gce"));
    }
    if is_google && values.get(&CONFIGURE_CLOUD_ROUTES) {
        unused.push(if asks_a_cloud(kind) {
            format!("{CONFIGURE_CLOUD_ROUTES}: no effect: the cloud routes the alias ranges of VMs")
        } else {
            format!(
                "{CONFIGURE_CLOUD_ROUTES}: this program creates no routes: pods are reachable \
                 only if another program creates them"
            )
        });
    }
    unused
}

#[cfg(test)]
mod tests;
