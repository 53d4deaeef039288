//! Limits of the licence, for Clusters and Machines.

use std::sync::Arc;

use serde_json::Value;

use crate::findings::Findings;
use crate::known_clusters;
use crate::place::Place;
use crate::subject::{Subject, name_of};

/// The cluster that is not counted: the one that this runs in.
const GLOBAL: &str = "global";

/// New Clusters.
pub(crate) fn clusters(subject: &Subject<'_>, findings: &mut Findings) {
    let most = subject.environment.licence.max_clusters;
    if most == 0 || !subject.is_new() || subject.name() == Some(GLOBAL) {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let is_counted =
        |other: &&Arc<Value>| subject.is_other(other) && name_of(other) != Some(GLOBAL);
    let others = clusters.iter().filter(is_counted).count();
    let others = u64::try_from(others).unwrap_or(u64::MAX);
    if others >= most {
        let why = format!("the licence is for {most} clusters, and there are {others}");
        findings.forbidden(&at(subject), &why);
    }
}

/// Nodes, with those that the subject adds.
pub(crate) fn nodes(subject: &Subject<'_>, added: usize, findings: &mut Findings) {
    let most = subject.environment.licence.max_nodes;
    if most == 0 {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let machines = subject.environment.machines.as_deref().unwrap_or_default();
    let machines = known_clusters::machine_counts(machines);
    let each = clusters.iter().map(|cluster| known_clusters::nodes(cluster, &machines));
    let now = each.fold(0_u64, u64::saturating_add);
    let after = now.saturating_add(u64::try_from(added).unwrap_or(u64::MAX));
    if now >= most || after > most {
        let why = format!("the licence is for {most} nodes; there are {now}, and {added} are new");
        findings.forbidden(&at(subject), &why);
    }
}

/// Cores.
pub(crate) fn cpus(subject: &Subject<'_>, findings: &mut Findings) {
    let most = subject.environment.licence.max_cpus;
    if most == 0 {
        return;
    }
    let Some(clusters) = counted(subject, findings) else { return };
    let now = clusters
        .iter()
        .map(|cluster| known_clusters::cpus(cluster))
        .fold(0_u64, u64::saturating_add);
    if now >= most {
        let why = format!("the licence is for {most} CPUs, and there are {now}");
        findings.forbidden(&at(subject), &why);
    }
}

/// Upstream's field of these errors, though no kind has it.
fn at<'a>(subject: &Subject<'a>) -> Place<'a> {
    subject.spec().field("name")
}

fn counted<'a>(subject: &Subject<'a>, findings: &mut Findings) -> Option<&'a [Arc<Value>]> {
    let clusters = subject.environment.clusters.as_deref();
    if clusters.is_none() {
        findings.unchecked(&at(subject), "whether the licence allows it", "clusters");
    }
    clusters
}
