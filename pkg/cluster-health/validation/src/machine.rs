//! Rules of TKEStack's Machine, and how many Machines a Cluster has room for.

use ipnet::IpNet;
use serde_json::Value;

use super::cluster::read_ranges;
use super::field::Field;
use super::findings::Findings;
use super::formats::IMMUTABLE;
use super::subject::machines_of;
use super::subject::{Subject, name_of};
use super::{formats, subject};

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    subject::check_type(&spec, &subject.environment.machine_types, findings);
    subject::check(&spec, findings);
    let Some(old) = subject.old_spec() else { return };
    for name in ["type", "clusterName"] {
        let (now, before) = (spec.field(name), old.field(name));
        if before.word().is_some() && now.value() != before.value() {
            findings.invalid(&now, IMMUTABLE);
        }
    }
}

/// Rules about other objects.
pub(crate) fn about_others(subject: &Subject<'_>, findings: &mut Findings) {
    let at = subject.spec().field("clusterName");
    let Some(name) = at.word() else { return };
    let cluster = match subject.environment.clusters.as_deref() {
        None => {
            if subject.is_new() {
                let question = format!("whether there is a Cluster {name} with room for it");
                findings.unchecked(&at, &question, "clusters");
            }
            None
        }
        Some(clusters) => {
            clusters.iter().map(|it| &**it).find(|cluster| name_of(cluster) == Some(name))
        }
    };
    if subject.is_new() {
        if subject.environment.clusters.is_some() {
            in_cluster(subject, &at, cluster, findings);
        }
        subject::licensed_nodes(subject, 1, findings);
        subject::licensed_cpus(subject, findings);
    }
    address_is_free(subject, name, cluster, findings);
}

fn in_cluster(
    subject: &Subject<'_>,
    at: &Field<'_>,
    cluster: Option<&Value>,
    findings: &mut Findings,
) {
    let Some(cluster) = cluster else {
        return findings.invalid(at, "there is no Cluster of this name");
    };
    let cluster = Field::root(cluster);
    let Some(text) = cluster.at(&["spec", "clusterCIDR"]).word() else { return };
    match read_ranges(text, true) {
        Ok(ranges) => check_room(subject, &cluster, &ranges, findings),
        Err(_) => findings.invalid(at, "spec.clusterCIDR of this Cluster is no CIDR"),
    }
}

fn address_is_free(
    subject: &Subject<'_>,
    name: &str,
    cluster: Option<&Value>,
    findings: &mut Findings,
) {
    let at = subject.spec().field("ip");
    let before = subject.old_spec().and_then(|old| old.field("ip").word());
    let is_asked = |ip: &&str| before != Some(ip) && formats::ip(ip).is_some();
    let Some(ip) = at.word().filter(is_asked) else { return };
    let Some(machines) = subject.environment.machines.as_deref() else {
        let question = format!("whether another Machine of {name} has the address {ip}");
        return findings.unchecked(&at, &question, "machines");
    };
    let has_it = |at: Field<'_>| at.field("ip").text() == Some(ip);
    let masters = cluster.map(|cluster| Field::root(cluster).at(&["spec", "machines"]));
    let is_master = masters.is_some_and(|masters| masters.items().any(has_it));
    let mut others = machines_of(machines, name).filter(|machine| subject.is_other(machine));
    if is_master || others.any(|machine| has_it(Field::root(machine).field("spec"))) {
        findings.duplicate(&at);
    }
}

/// Rules about the network.
pub(crate) fn network(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if !subject.old_spec().is_some_and(|old| subject::is_same(&old, &spec)) {
        subject::answers(subject, &spec, findings);
    }
}

/// Pods of a Node where the Cluster does not say.
const PODS: u64 = 256;
/// From so many hundredths of the room on it is told that it ends.
const EARLY: u64 = 90;

fn check_room(
    subject: &Subject<'_>,
    cluster: &Field<'_>,
    ranges: &[IpNet],
    findings: &mut Findings,
) {
    let Some(range) = ranges.iter().find(|range| matches!(range, IpNet::V4(_))) else { return };
    let at = subject.spec();
    let name = cluster.at(&["metadata", "name"]);
    let Some(machines) = subject.environment.machines.as_deref() else {
        return findings.unchecked(&at, "whether the Cluster has room for it", "machines");
    };
    let room = room(range.prefix_len(), node_mask(cluster));
    let others = machines_of(machines, name.text().unwrap_or_default());
    let there = others.filter(|machine| subject.is_other(machine)).count();
    let there = u64::try_from(there).unwrap_or(u64::MAX);
    if there >= room {
        let why = format!("the range of Pods has room for {room} machines, and there are {there}");
        findings.forbidden(&at, &why);
    } else if there.saturating_add(1).saturating_mul(100) > room.saturating_mul(EARLY) {
        let now = there.saturating_add(1);
        let why = format!("this is machine {now} of {room} that the range of Pods has room for");
        findings.warn(&at, &why);
    }
}

fn room(range: u8, node: u32) -> u64 {
    let bits = node.checked_sub(u32::from(range));
    bits.map_or(0, |bits| 1_u64.checked_shl(bits).unwrap_or(u64::MAX))
}

/// The mask of a Node's range: what is published, or what the number of Pods comes to.
fn node_mask(cluster: &Field<'_>) -> u32 {
    let published = ["nodeCIDRMaskSizeIPv4", "nodeCIDRMaskSize"].into_iter().find_map(|name| {
        let number = cluster.at(&["status", name]).number()?;
        u32::try_from(number).ok().filter(|mask| (1..=32).contains(mask))
    });
    published.unwrap_or_else(|| {
        let pods = cluster.at(&["spec", "properties", "maxNodePodNum"]).number();
        let pods = pods.and_then(|pods| u64::try_from(pods).ok()).filter(|&pods| pods > 0);
        let addresses = pods.unwrap_or(PODS).checked_next_power_of_two().unwrap_or(u64::MAX);
        32_u32.saturating_sub(addresses.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_a_power_of_two_and_nothing_where_a_block_is_larger_than_the_range() {
        for (range, node, expected) in
            [(16, 24, 256), (24, 26, 4), (28, 24, 0), (24, 24, 1), (0, 32, 1 << 32)]
        {
            assert_eq!(room(range, node), expected, "/{range} in /{node}");
        }
    }
}
