//! Findings about the pod CIDRs of Nodes.

use client::AnswerError;
use flags::Values;
use http::StatusCode;
use jiff::Timestamp;
use node_ipam::{Finding, PoolUsage, Ranges, Surveyed, survey, usage};
use serde_json::Value;

use super::cluster::Cluster;
use super::report::{Check, Report, Severity};
use crate::build;

/// Findings that are told one by one; of more, the number.
const TOLD: usize = 20;

pub(super) const CLUSTER_CIDRS: &str = "/apis/networking.x-k8s.io/v1/clustercidrs?";

/// Nodes and ranges of the cluster.
pub(super) struct Seen {
    nodes: Vec<Surveyed>,
    ranges: Ranges,
}

/// Lists all Nodes and judges them.
pub(super) async fn check(
    cluster: &Cluster,
    values: &Values,
    now: Timestamp,
    report: &mut Report,
) -> Option<Seen> {
    let nodes: Vec<Surveyed> = match cluster.list("/api/v1/nodes?").await {
        Ok(nodes) => nodes,
        Err(error) => {
            let message = format!("cannot list the Nodes: {error}");
            report.error(Check::Nodes, message, "allow the identity of --kubeconfig to list nodes");
            return None;
        }
    };
    let ranges = Ranges::of(values)?;
    let found = survey(&nodes, &ranges, build::PRODUCT, now);
    tell(nodes.len(), &found, report);
    Some(Seen { nodes, ranges })
}

/// Tells how much of each pool is left, and each claim if that is wanted.
pub(super) async fn count(
    cluster: &Cluster,
    seen: Option<Seen>,
    claims: bool,
    report: &mut Report,
) {
    let Some(Seen { nodes, mut ranges }) = seen else { return };
    if ranges.are_of_cluster_cidrs() {
        match cluster.list::<Value>(CLUSTER_CIDRS).await {
            Ok(objects) => ranges = ranges.with_cluster_cidrs(objects),
            Err(AnswerError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
                let advice = "apply their CRD of config/crd, or set --install-crds";
                report.warn(Check::Nodes, "ClusterCIDRs are not served", advice);
            }
            Err(error) => {
                let message = format!("cannot list the ClusterCIDRs: {error}");
                let advice = "their blocks are not counted; allow the identity of --kubeconfig \
                    to list clustercidrs";
                report.warn(Check::Nodes, message, advice);
            }
        }
    }
    for pool in usage(&nodes, &ranges) {
        report.note(Check::Nodes, left(&pool));
    }
    for node in nodes.iter().filter(|node| claims && !node.cidrs.is_empty()) {
        report.note(Check::Nodes, format!("{} has {}", node.name, node.cidrs.join(", ")));
    }
}

fn left(pool: &PoolUsage) -> String {
    let PoolUsage { range, mask, blocks, used, nodes } = pool;
    let free = blocks - used;
    format!("{range} has {free} of {blocks} blocks of /{mask} free, and {nodes} Nodes in it")
}

fn tell(nodes: usize, found: &[Finding], report: &mut Report) {
    for finding in found.iter().take(TOLD) {
        let (severity, message, advice) = said(finding);
        report.push(severity, Check::Nodes, message, advice);
    }
    if let Some(rest) = found.len().checked_sub(TOLD + 1) {
        let worst = found.iter().skip(TOLD).map(|finding| said(finding).0).min();
        let message = format!("{} more findings about Nodes", rest + 1);
        report.push(
            worst.unwrap_or(Severity::Note),
            Check::Nodes,
            message,
            "correct the findings above first",
        );
    }
    if found.is_empty() {
        report.note(Check::Nodes, format!("the pod CIDRs of all {nodes} Nodes are correct"));
    }
}

fn said(finding: &Finding) -> (Severity, String, &'static str) {
    use Severity::{Error, Note, Warning};
    const DRAIN: &str = "drain one of them, delete its Node and let it register again";
    match finding {
        Finding::Unreadable { node, text } => {
            (Error, format!("{node} has {text:?}, which is not a CIDR"), "delete that Node")
        }
        Finding::Overlap { of: [(one, wider), (other, cidr)] } => {
            (Error, format!("{one} has {wider} and {other} has {cidr}, which overlap"), DRAIN)
        }
        Finding::AllOutside { cidrs } => (
            Error,
            format!("none of the {cidrs} pod CIDRs of Nodes is inside --cluster-cidr"),
            "set the CIDR flags with which the cluster was created",
        ),
        Finding::Outside { node, cidr } => (
            Warning,
            format!("{node} has {cidr}, outside --cluster-cidr"),
            "the Node keeps it, and its addresses are not assigned to another Node",
        ),
        Finding::InServiceRange { node, cidr, services } => (
            Warning,
            format!("{node} has {cidr}, which overlaps --service-cluster-ip-range {services}"),
            DRAIN,
        ),
        Finding::OtherSize { nodes, example: (node, cidr), mask, all } => (
            if *all { Error } else { Warning },
            format!(
                "Nodes whose pod CIDR is not a /{mask}: {nodes}, for example {node} with {cidr}"
            ),
            "set --node-cidr-mask-size to its previous value, unless you want to change the \
             block size",
        ),
        Finding::TooSmall { pools, blocks, nodes } => (
            Warning,
            format!("{} has {blocks} blocks for {nodes} Nodes", listed(pools)),
            "some Nodes will wait for a block; a larger --node-cidr-mask-size gives more blocks",
        ),
        Finding::InTurns { managers, lately: true } => (
            Error,
            format!(
                "{} assigned pod CIDRs in turns within the last ten minutes",
                managers.join(" and ")
            ),
            "disable all allocators except one",
        ),
        Finding::InTurns { managers, lately: false } => (
            Warning,
            format!("{} assigned pod CIDRs in turns", managers.join(" and ")),
            "this is normal after a migration from one to the other and back",
        ),
        Finding::Lately { manager, node } => (
            Warning,
            format!("{manager} assigned the pod CIDR of {node} within the last ten minutes"),
            "disable its node-ipam-controller",
        ),
        Finding::Waiting { nodes } => {
            (Note, format!("Nodes that wait for a pod CIDR: {nodes}"), "")
        }
    }
}

fn listed(pools: &[impl ToString]) -> String {
    pools.iter().map(ToString::to_string).collect::<Vec<_>>().join(" with ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_findings_are_cut_short_with_the_worst_of_the_rest() {
        let cidr = "10.0.0.0/24".parse().unwrap();
        let outside = |node: usize| Finding::Outside { node: node.to_string(), cidr };
        let told = |found: &[Finding]| {
            let mut report = Report::default();
            tell(100, found, &mut report);
            report
        };
        let mut found: Vec<_> = (0..TOLD).map(outside).collect();
        assert_eq!(told(&found).lines().len(), TOLD);
        let two = [("a".to_owned(), cidr), ("b".to_owned(), cidr)];
        found.extend([Finding::Waiting { nodes: 1 }, Finding::Overlap { of: two }]);
        let report = told(&found);
        let last = report.lines().last().unwrap();
        assert_eq!(
            (last.severity, &*last.message),
            (Severity::Error, "2 more findings about Nodes")
        );
        assert!(!report.is_safe());
        let text = told(&[]).text();
        assert!(text.contains("the pod CIDRs of all 100 Nodes are correct"), "{text}");
    }
}
