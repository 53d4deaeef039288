//! All faults at once, for a short while. `scripts/soak` plays it for longer, with more seeds and
//! beside kube-controller-manager.

use std::time::Duration;

use tests::cluster;
use tests::soak::{Contender, Scene, play};

#[tokio::test(flavor = "multi_thread")]
async fn under_all_faults_at_once_nothing_is_doubled_leaked_or_forgotten() {
    let cluster = cluster().await;
    let scene = Scene { seed: 1, length: Duration::from_secs(15), logs: None };
    let report = play(&scene, &Contender::Product, &cluster).await;
    println!("{}", report.json());
    assert_eq!(report.faults(), [""; 0]);
    assert!(report.served > 0, "nobody was served while there were faults");
}
