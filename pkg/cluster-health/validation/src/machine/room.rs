//! How many Machines a Cluster has room for.

use ipnet::IpNet;

use crate::findings::Findings;
use crate::known_clusters::machines_of;
use crate::place::Place;
use crate::subject::Subject;

/// Pods of a Node where the Cluster does not say.
const PODS: u64 = 256;
/// From so many hundredths of the room on it is told that it ends.
const EARLY: u64 = 90;

pub(super) fn check(
    subject: &Subject<'_>,
    cluster: &Place<'_>,
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
fn node_mask(cluster: &Place<'_>) -> u32 {
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
mod tests;
