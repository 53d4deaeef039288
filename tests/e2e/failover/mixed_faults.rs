//! All faults at once, for a short while. `scripts/soak` plays it for longer, with more seeds and
//! with kube-controller-manager for comparison.

use std::time::Duration;

use tests::soak::{Contender, Scene, play};
use tests::{Allocator, cluster};

/// Of the Nodes that lived and died while there were faults, a fifth only for an instant. Two cores that compile
/// meanwhile serve 0.83, and a machine at half of its speed with all other tests 0.36.
const SERVED: f64 = 0.25;

#[tokio::test(flavor = "multi_thread")]
async fn under_all_faults_at_once_nothing_is_doubled_leaked_or_forgotten() {
    all_faults_are_survived(Allocator::Range).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_all_faults_at_once_no_block_of_a_cluster_cidr_is_doubled_or_leaked() {
    all_faults_are_survived(Allocator::MultiCidr).await;
}

async fn all_faults_are_survived(allocator: Allocator) {
    let cluster = cluster().await;
    let scene = Scene { seed: 1, allocator, length: Duration::from_secs(15), logs: None };
    let report = play(&scene, &Contender::Product, &cluster).await;
    eprintln!("{}", report.json());
    assert_eq!(report.faults(), [""; 0]);
    assert!(
        report.share() > SERVED,
        "too few Nodes were served while there were faults: {report:?}"
    );
    assert!(report.terms.len() > 1, "no leader was ended: {report:?}");
}
