//! A controller that panics again and again, in one process with another one.

use std::path::Path;

use objects::{Draft, Dynamic};
use sample::{BOMB, NAME, SHIPMENTS};
use serde_json::json;
use tests::churn::{Churn, Going};
use tests::{Process, poll};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

const OTHER: &str = "node-ipam-controller";
/// No Node waits longer for its CIDR: a bucket of the histogram.
const LONGEST: &str = "5";

async fn until_check(manager: &Process, controller: &str, status: u16) {
    let path = format!("/livez/{controller}");
    let answers = async || manager.get(&path).await.ok().filter(|answer| answer.0 == status);
    poll(&format!("{path} answers {status}"), answers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_panics_turns_red_and_green_again_and_the_other_one_works_on() {
    let scene = Scene::set().await;
    let manager = Process::with_kubeconfig(&scene.plane.admin_kubeconfig())
        .program(Path::new(env!("CARGO_BIN_EXE_sample-controller")))
        .args([&format!("--controllers={NAME},{OTHER}"), "--allocate-node-cidrs=true"])
        .args(["--cluster-cidr=10.0.0.0/12"])
        .start();
    let client = scene.plane.client().await;
    let (calm, going) = (CancellationToken::new(), Going { old: 1, young: 0 });
    let churn = tokio::spawn(Churn::begin(&client, 20, going, None).await.run(calm.clone()));
    until_check(&manager, NAME, 200).await;

    let shipments = scene.objects::<Dynamic>(&SHIPMENTS);
    let body = json!({"spec": {"items": [{"name": BOMB}],
        "carrier": {"group": "g", "kind": "K", "name": "n"}}});
    let bomb = Draft::new(body.as_object().unwrap().clone());
    shipments.create("default/bomb", &bomb).await.unwrap();
    until_check(&manager, NAME, 500).await;
    until_check(&manager, OTHER, 200).await;
    let bomb = shipments.read("default/bomb").await.unwrap().unwrap();
    shipments.delete(&bomb).await.unwrap();
    until_check(&manager, NAME, 200).await;

    calm.cancel();
    churn.await.unwrap();
    let metrics = manager.metrics().await;
    let of = |name: &str, controller: &str| metrics.value(name, &[("controller", controller)]);
    for counted in ["icm_controller_restarts_total", "icm_panics_total"] {
        assert!(of(counted, NAME) >= Some(3.0), "{counted}");
        assert_eq!(of(counted, OTHER), Some(0.0), "{counted}");
    }
    let assigned = "node_ipam_assignment_duration_seconds";
    let in_time = metrics.value(&format!("{assigned}_bucket"), &[("le", LONGEST)]);
    assert_eq!(in_time, metrics.value(&format!("{assigned}_count"), &[]));
    assert!(in_time > Some(100.0), "{in_time:?} Nodes were served all along");
    assert_eq!(metrics.value("leader_election_master_status", &[]), Some(1.0));
}
