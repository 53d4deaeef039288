//! Rules of TKEStack's Cluster.
//!
//! | file | holds |
//! |---|---|
//! | `types.rs` | types that rules are about |
//! | `sizes.rs` | numbers of Pods and Services |
//! | `ranges.rs` | CIDRs of Pods and Services |
//! | `masters.rs` | the machines, and how they change |
//! | `features.rs` | GPU, high availability, IPVS |
//! | `constant.rs` | what stays as it was made |
//! | `addresses.rs` | ways to the API server |
//! | `reachable.rs` | what the network says |

mod addresses;
mod constant;
mod features;
mod masters;
pub(crate) mod ranges;
mod reachable;
mod sizes;
mod types;

use crate::cluster::types::BAREMETAL;
use crate::findings::Findings;
use crate::licence;
use crate::subject::Subject;

pub(crate) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    if spec.is_absent() {
        return findings.required(&spec, "what the cluster is to be");
    }
    kind_of_cluster(subject, findings);
    version(subject, findings);
    sizes::check(&spec, findings);
    let is_baremetal = spec.field("type").text() == Some(BAREMETAL);
    ranges::check(&spec, is_baremetal, findings);
    masters::check(&spec, is_baremetal, findings);
    features::check(&spec, findings);
    addresses::check(&subject.root(), findings);
    constant::check(subject, findings);
    masters::changes(subject, findings);
}

/// Rules about other objects.
pub(crate) fn about_others(subject: &Subject<'_>, findings: &mut Findings) {
    let new_masters = masters::added(subject);
    licence::clusters(subject, findings);
    if subject.is_new() || new_masters > 0 {
        licence::nodes(subject, new_masters, findings);
        licence::cpus(subject, findings);
    }
    reachable::credential_pair(subject, findings);
}

/// Rules about the network.
pub(crate) fn network(subject: &Subject<'_>, findings: &mut Findings) {
    masters::answer(subject, findings);
    reachable::addresses(subject, findings);
    reachable::credential(subject, findings);
    reachable::import(subject, findings);
}

fn kind_of_cluster(subject: &Subject<'_>, findings: &mut Findings) {
    let (tenant, of) = (subject.spec().field("tenantID"), subject.spec().field("type"));
    if tenant.is_absent() {
        findings.required(&tenant, "the tenant that the cluster is of");
    }
    let types = &subject.environment.cluster_types;
    match of.text() {
        None => findings.required(&of, "who made the cluster, such as Imported or Baremetal"),
        Some(text) if !types.iter().any(|known| known == text) => {
            findings.not_supported(&of, &of.shown(), types.iter().map(String::as_str));
        }
        Some(_) => {}
    }
}

fn version(subject: &Subject<'_>, findings: &mut Findings) {
    let (of, version) = (subject.spec().field("type"), subject.spec().field("version"));
    if of.text() != Some(BAREMETAL) || !subject.is_new() {
        return;
    }
    let supported = &subject.environment.supported_versions;
    match version.word() {
        None => findings.required(&version, "the version of Kubernetes to install"),
        Some(text) if !supported.is_empty() && !supported.iter().any(|known| known == text) => {
            findings.not_supported(
                &version,
                &version.shown(),
                supported.iter().map(String::as_str),
            );
        }
        Some(_) => {}
    }
}
