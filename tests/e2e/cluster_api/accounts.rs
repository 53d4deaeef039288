//! The controllers of Cluster API with an account of their own.

use serde_json::json;
use tests::kubectl::IDENTITY;

use crate::scene::{CLUSTERS, Scene, aws_cluster, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_the_controllers_may_what_they_do_whoever_asks_for_its_token() {
    let scene = Scene::set().await;
    for (name, identity) in [("own", IDENTITY), ("stock", "system:kube-controller-manager")] {
        let kubeconfig = scene.plane.kubeconfig(identity, &[]).unwrap();
        let manager = Scene::start_by(&kubeconfig, "--use-service-account-credentials=true");
        scene.create(&aws_cluster("v1alpha2", name, &json!({"region": "eu-central-1"})));
        scene.create(&cluster(name));
        scene
            .until(CLUSTERS, name, "is provisioning", |it| it["status"]["phase"] == "provisioning")
            .await;
        assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
        scene.end(manager).await;
    }
}
