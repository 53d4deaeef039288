//! What stored Clusters and Machines say of their size.

use std::collections::HashMap;
use std::sync::Arc;

use kube_api::quantity::Quantity;
use serde_json::Value;

use crate::place::Place;
use crate::subject::name_of;

/// Nodes of a Cluster: as many as its summary says, and without one its masters and Machines.
pub(crate) fn nodes(cluster: &Value, machines: &HashMap<&str, usize>) -> u64 {
    let root = Place::root(cluster);
    let summary = root.at(&["status", "resource", "nodes", "total"]).number();
    if let Some(total) = summary.and_then(|total| u64::try_from(total).ok()) {
        return total;
    }
    let masters = root.at(&["spec", "machines"]).items().count();
    let workers = name_of(cluster).and_then(|name| machines.get(name)).copied().unwrap_or(0);
    u64::try_from(masters.saturating_add(workers)).unwrap_or(u64::MAX)
}

/// How many Machines each Cluster has.
pub(crate) fn machine_counts(machines: &[Arc<Value>]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for machine in machines {
        let Some(cluster) = cluster_of(machine) else { continue };
        let count: &mut usize = counts.entry(cluster).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// Whole cores of a Cluster by its summary, rounded down Node by Node; a summary without them, as an
/// API server of TKEStack's own stores it, has the sum only.
pub(crate) fn cpus(cluster: &Value) -> u64 {
    let each = Place::root(cluster).at(&["status", "resource", "cores"]).number();
    if let Some(cores) = each.and_then(|cores| u64::try_from(cores).ok()) {
        return cores;
    }
    let at = Place::root(cluster).at(&["status", "resource", "capacity", "cpu"]);
    let cpu = at.text().map(str::to_owned).or_else(|| at.number().map(|cpu| cpu.to_string()));
    let cpu = cpu.and_then(|text| text.parse::<Quantity>().ok());
    let cores = cpu.and_then(|cpu| cpu.as_milli().checked_div(1000));
    cores.and_then(|cores| u64::try_from(cores).ok()).unwrap_or_default()
}

/// The Machines of a Cluster.
pub(crate) fn machines_of<'a>(
    machines: &'a [Arc<Value>],
    cluster: &str,
) -> impl Iterator<Item = &'a Value> {
    machines.iter().map(|machine| &**machine).filter(move |it| cluster_of(it) == Some(cluster))
}

fn cluster_of(machine: &Value) -> Option<&str> {
    Place::root(machine).at(&["spec", "clusterName"]).text()
}
