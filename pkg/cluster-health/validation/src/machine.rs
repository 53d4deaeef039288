//! Rules of TKEStack's Machine. `room.rs` tells how many a Cluster has room for.

mod room;

use serde_json::Value;

use crate::cluster::ranges;
use crate::findings::Findings;
use crate::formats::{self, IMMUTABLE};
use crate::known_clusters::machines_of;
use crate::place::Place;
use crate::subject::{Subject, name_of};
use crate::{licence, login, taints};

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if spec.is_absent() {
        return findings.required(&spec, "how the machine is reached");
    }
    kind_of_machine(subject, findings);
    login::check(&spec, findings);
    taints::check(&spec, findings);
    let Some(old) = subject.old_spec() else { return };
    for name in ["type", "clusterName"] {
        let (now, before) = (spec.field(name), old.field(name));
        if before.word().is_some() && now.value() != before.value() {
            findings.invalid(&now, IMMUTABLE);
        }
    }
}

fn kind_of_machine(subject: &Subject<'_>, findings: &mut Findings) {
    let (of, cluster) = (subject.spec().field("type"), subject.spec().field("clusterName"));
    let types = &subject.environment.machine_types;
    match of.text() {
        None => findings.required(&of, "what the machine is, such as Baremetal"),
        Some(text) if !types.iter().any(|known| known == text) => {
            findings.not_supported(&of, &of.shown(), types.iter().map(String::as_str));
        }
        Some(_) => {}
    }
    if cluster.word().is_none() {
        findings.required(&cluster, "the Cluster that the machine is of");
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
        licence::nodes(subject, 1, findings);
        licence::cpus(subject, findings);
    }
    address_is_free(subject, name, cluster, findings);
}

fn in_cluster(
    subject: &Subject<'_>,
    at: &Place<'_>,
    cluster: Option<&Value>,
    findings: &mut Findings,
) {
    let Some(cluster) = cluster else {
        return findings.invalid(at, "there is no Cluster of this name");
    };
    let cluster = Place::root(cluster);
    let Some(text) = cluster.at(&["spec", "clusterCIDR"]).word() else { return };
    match ranges::read(text, true) {
        Ok(ranges) => room::check(subject, &cluster, &ranges, findings),
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
    let has_it = |at: Place<'_>| at.field("ip").text() == Some(ip);
    let masters = cluster.map(|cluster| Place::root(cluster).at(&["spec", "machines"]));
    let is_master = masters.is_some_and(|masters| masters.items().any(has_it));
    let mut others = machines_of(machines, name).filter(|machine| subject.is_other(machine));
    if is_master || others.any(|machine| has_it(Place::root(machine).field("spec"))) {
        findings.duplicate(&at);
    }
}

/// Rules about the network.
pub(crate) fn network(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if !subject.old_spec().is_some_and(|old| login::is_same(&old, &spec)) {
        login::answers(subject, &spec, findings);
    }
}
