//! Every rule about objects has an object that it accepts and one that it refuses.

use std::collections::BTreeSet;

use crate::row::Row;
use crate::{
    aws_cluster, cluster, cluster_cidr, cluster_network, cluster_updates, kubefed, licence, machine,
};

/// Judged by a test of its own: it is about a status.
const OF_A_STATUS: &str = "member-conditions-are-known";

#[test]
fn every_rule_has_objects_that_it_accepts_and_objects_that_it_refuses() {
    let text = include_str!("../../RULES.md");
    let (_, of_objects) = text.split_once("\n## Names\n").unwrap();
    let rules: BTreeSet<&str> =
        of_objects.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let rows: Vec<Row> = [
        aws_cluster::rows(),
        cluster::rows(),
        cluster_cidr::rows(),
        cluster_network::rows(),
        cluster_updates::rows(),
        kubefed::rows(),
        licence::rows(),
        machine::rows(),
    ]
    .into_iter()
    .flatten()
    .collect();
    for refusal in [false, true] {
        let of: BTreeSet<&str> =
            rows.iter().filter(|row| row.is_refusal() == refusal).map(|row| row.rule).collect();
        let missing: Vec<_> = rules.difference(&of).collect();
        assert_eq!(missing, [&OF_A_STATUS], "without a row, refusal {refusal}");
        let unknown: Vec<_> = of.difference(&rules).collect();
        assert!(unknown.is_empty(), "no rules: {unknown:?}");
    }
}
