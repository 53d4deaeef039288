//! Every rule about objects has an object that it accepts and one that it refuses.

use std::collections::BTreeSet;

use crate::row::Row;
use crate::{
    aws_cluster, cluster, cluster_cidr, cluster_network, cluster_updates, kubefed, licence, machine,
};

/// Field rules with rows. A rule that loses all of its rows changes the number.
const RULES: usize = 51;

#[test]
fn every_rule_has_objects_that_it_accepts_and_objects_that_it_refuses() {
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
    let [accepted, refused] = [false, true].map(|refusal| -> BTreeSet<&str> {
        rows.iter().filter(|row| row.is_refusal() == refusal).map(|row| row.rule).collect()
    });
    let one_sided: Vec<_> = accepted.symmetric_difference(&refused).collect();
    assert!(one_sided.is_empty(), "only accepted or only refused: {one_sided:?}");
    assert_eq!(accepted.len(), RULES);
}
