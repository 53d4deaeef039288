//! [`PoolRecord`]: the ConfigMap `icm-pools` in the namespace of the Lease, in which the leader publishes
//! the numbers of its pools. Without I/O; `pool_publisher` writes it.

use std::collections::BTreeMap;

use cidr::IpNet;
use informer::MANAGED_BY;
use jiff::Timestamp;
use kube_api::Resource;
use objects::Schema;
use serde::{Deserialize, Serialize};

use crate::PRODUCT;
use crate::pressure::PoolState;

/// Name of the ConfigMap.
pub const POOL_RECORD: &str = "icm-pools";

/// The kind of records.
pub(crate) const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");

/// The longest list of pools; with leader, time and metadata a record stays below 512 KiB.
const LONGEST_LIST: usize = 508 * 1024;

/// Keys of the ConfigMap's data.
const LEADER: &str = "leader";
const WRITTEN: &str = "written";
const POOLS: &str = "pools";
const OMITTED: &str = "omittedPools";

/// ConfigMaps, as far as records need them.
#[derive(Debug)]
pub(crate) enum ConfigMap {}

impl Schema for ConfigMap {
    type Body = ConfigMapBody;
    type Status = ();
}

/// The fields of a ConfigMap.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConfigMapBody {
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}

/// What the leader published last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRecord {
    /// Identity of the leader, as in its Lease.
    pub leader: String,
    /// When it was written, by the leader's clock.
    pub written: Timestamp,
    /// The pools in the order of the allocator.
    pub pools: Vec<RecordedPool>,
}

/// One pool of a record. Numbers above 2^64 - 1 are recorded as 2^64 - 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPool {
    /// The cluster CIDR.
    pub pool: String,
    /// The ClusterCIDR that the pool is of, if it is of one.
    #[serde(rename = "clusterCIDRName", default, skip_serializing_if = "Option::is_none")]
    pub cluster_cidr: Option<String>,
    /// Prefix length of its blocks.
    pub mask: u8,
    /// Whether it assigns blocks, as in the metric `node_ipam_pool_state`.
    pub state: String,
    /// How many blocks it has.
    pub blocks: u64,
    /// Blocks that some claim overlaps.
    pub used: u64,
    /// Blocks that no claim overlaps.
    pub free: u64,
    /// Pod CIDRs of deleted Nodes that `--pod-cidr-reuse-delay` holds back; they count as used.
    pub resting: u64,
}

impl RecordedPool {
    /// Records the numbers of a pool. `resting` are the pod CIDRs in all pools that are held back, in
    /// order of address.
    pub(crate) fn new(pool: &PoolState, resting: &[IpNet]) -> Self {
        let last = pool.cidr.broadcast();
        let inside = &resting[resting.partition_point(|it| *it < pool.cidr)..];
        let inside = inside.partition_point(|it| it.network() <= last);
        let number = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            pool: cidr::canonical(&pool.cidr),
            cluster_cidr: pool.object.as_deref().map(str::to_owned),
            mask: pool.mask,
            state: pool.state.to_owned(),
            blocks: number(pool.blocks),
            used: number(pool.used),
            free: number(pool.blocks - pool.used),
            resting: number(inside as u128),
        }
    }

    fn identity(&self) -> (&str, Option<&str>, u8, &str) {
        (&self.pool, self.cluster_cidr.as_deref(), self.mask, &self.state)
    }
}

/// Whether pools differ so much from the recorded ones that they are written at once: a pool was added
/// or removed, changed its state, became full or has room again, or its use changed by one percent of its
/// blocks.
pub(crate) fn is_news(recorded: &[RecordedPool], now: &[RecordedPool]) -> bool {
    let differs = |(before, now): (&RecordedPool, &RecordedPool)| {
        let change = u128::from(before.used.abs_diff(now.used));
        before.identity() != now.identity()
            || (before.free == 0) != (now.free == 0)
            || change * 100 >= u128::from(now.blocks)
    };
    recorded.len() != now.len() || recorded.iter().zip(now).any(differs)
}

/// The data of the record. Pools that do not fit are counted only.
pub(crate) fn data(
    leader: &str,
    written: Timestamp,
    pools: &[RecordedPool],
) -> BTreeMap<String, String> {
    let mut list = String::from("[");
    let mut listed = 0;
    for pool in pools {
        // Names and numbers always have a form in JSON.
        let line = serde_json::to_string(pool).unwrap_or_default();
        // One line a pool, so that `kubectl get -o yaml` can be read.
        let separator = if listed == 0 { "\n" } else { ",\n" };
        if list.len() + separator.len() + line.len() > LONGEST_LIST {
            break;
        }
        list.push_str(separator);
        list.push_str(&line);
        listed += 1;
    }
    list.push_str("\n]\n");
    let mut data = BTreeMap::from([
        (LEADER.to_owned(), leader.to_owned()),
        (WRITTEN.to_owned(), format!("{written:.0}")),
        (POOLS.to_owned(), list),
    ]);
    if listed < pools.len() {
        data.insert(OMITTED.to_owned(), (pools.len() - listed).to_string());
    }
    data
}

/// Whether both data say the same, the time of writing aside.
pub(crate) fn is_same(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> bool {
    let is_lasting = |(key, _): &(&String, &String)| *key != WRITTEN;
    one.iter().filter(is_lasting).eq(other.iter().filter(is_lasting))
}

/// Whether this program may overwrite a ConfigMap with these labels.
pub(crate) fn is_ours(labels: &BTreeMap<String, String>) -> bool {
    labels.get(MANAGED_BY).is_some_and(|by| by == PRODUCT)
}

impl PoolRecord {
    /// Reads a ConfigMap; `None` if this program did not write it, or if it cannot be read.
    pub fn of_config_map(object: &serde_json::Value) -> Option<Self> {
        let labels = BTreeMap::deserialize(&object["metadata"]["labels"]).ok()?;
        let text = |key: &str| object["data"][key].as_str();
        is_ours(&labels).then_some(())?;
        Some(Self {
            leader: text(LEADER)?.to_owned(),
            written: text(WRITTEN)?.parse().ok()?,
            pools: serde_json::from_str(text(POOLS)?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(range: &str, used: u64, blocks: u64) -> RecordedPool {
        RecordedPool {
            pool: range.to_owned(),
            cluster_cidr: None,
            mask: 24,
            state: "serving".to_owned(),
            blocks,
            used,
            free: blocks - used,
            resting: 0,
        }
    }

    fn config_map(data: &BTreeMap<String, String>) -> serde_json::Value {
        json!({"metadata": {"labels": {MANAGED_BY: PRODUCT}}, "data": data})
    }

    #[test]
    fn an_operator_reads_one_pool_a_line_and_a_program_reads_them_back() {
        let written = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut of_object = pool("10.1.0.0/16", 7, 256);
        of_object.cluster_cidr = Some("east".to_owned());
        let pools = vec![pool("10.0.0.0/16", 256, 256), of_object];
        let data = data("host_1", written, &pools);
        assert_eq!(
            data[POOLS],
            "[\n\
             {\"pool\":\"10.0.0.0/16\",\"mask\":24,\"state\":\"serving\",\"blocks\":256,\"used\":256,\
             \"free\":0,\"resting\":0},\n\
             {\"pool\":\"10.1.0.0/16\",\"clusterCIDRName\":\"east\",\"mask\":24,\"state\":\"serving\",\
             \"blocks\":256,\"used\":7,\"free\":249,\"resting\":0}\n\
             ]\n"
        );
        assert_eq!(data[WRITTEN], "2026-01-02T03:04:05Z");
        let record = PoolRecord::of_config_map(&config_map(&data)).unwrap();
        assert_eq!(record, PoolRecord { leader: "host_1".to_owned(), written, pools });
        let mut foreign = config_map(&data);
        foreign["metadata"]["labels"] = json!({"app": "theirs"});
        assert_eq!(PoolRecord::of_config_map(&foreign), None);
        for object in [json!({}), json!({"metadata": {"labels": {MANAGED_BY: PRODUCT}}})] {
            assert_eq!(PoolRecord::of_config_map(&object), None);
        }
    }

    #[test]
    fn the_largest_record_is_below_512_kib_and_counts_what_it_leaves_out() {
        let name = "n".repeat(253);
        let many = (0..10_000).map(|_| RecordedPool {
            cluster_cidr: Some(name.clone()),
            ..pool("fd00:1234:5678:9abc:1234:5678:9abc::/120", 0, u64::MAX)
        });
        let pools: Vec<_> = many.collect();
        let data = data("host", Timestamp::UNIX_EPOCH, &pools);
        let size: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(size < 510 * 1024, "{size}");
        let record = PoolRecord::of_config_map(&config_map(&data)).unwrap();
        let omitted: usize = data[OMITTED].parse().unwrap();
        assert_eq!(record.pools.len() + omitted, pools.len());
        assert!(record.pools.len() > 1_000);
    }

    #[test]
    fn a_pool_is_news_by_state_by_room_and_by_one_percent() {
        let before = [pool("10.0.0.0/8", 65_000, 65_536)];
        let with = |used| [pool("10.0.0.0/8", used, 65_536)];
        assert!(!is_news(&before, &before));
        assert!(!is_news(&before, &with(65_535)), "536 blocks are less than one percent");
        assert!(is_news(&before, &with(65_536)), "it is full");
        assert!(is_news(&with(65_536), &with(65_535)), "it has room");
        assert!(!is_news(&before, &with(65_000 - 655)));
        assert!(is_news(&before, &with(65_000 - 656)));
        let mut draining = before.clone();
        draining[0].state = "draining".to_owned();
        assert!(is_news(&before, &draining));
        assert!(is_news(&before, &[]));
        let mut renamed = before.clone();
        renamed[0].cluster_cidr = Some("east".to_owned());
        assert!(is_news(&before, &renamed));
        assert!(is_news(&[pool("10.0.0.0/24", 0, 16)], &[pool("10.0.0.0/24", 1, 16)]));
    }
}
