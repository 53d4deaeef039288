//! The service accounts of the controllers of Cluster API, and what these accounts may not do.

use serde_json::json;
use tests::kubectl::{IDENTITY, Kubectl};
use tests::poll::poll;

use crate::scene::{CLUSTERS, Scene, aws_cluster, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_the_controllers_may_what_they_do_whoever_asks_for_its_token() {
    let scene = Scene::set().await;
    for (name, identity) in [("own", IDENTITY), ("stock", "system:kube-controller-manager")] {
        let kubeconfig = scene.plane.kubeconfig(identity, &[]).unwrap();
        let manager = Scene::start_by(&kubeconfig, "");
        scene.create(&aws_cluster("v1alpha2", name, &json!({"region": "eu-central-1"})));
        scene.create(&cluster(name));
        scene
            .until(CLUSTERS, name, "is provisioning", |it| it["status"]["phase"] == "provisioning")
            .await;
        assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
        scene.end(manager).await;
    }
}

/// A Secret of type service-account-token makes the API server mint a token of the account that it names.
#[tokio::test(flavor = "multi_thread")]
async fn no_account_of_the_program_gets_a_token_of_another_one_by_a_secret() {
    let kubectl = Kubectl::with_crds().await;
    for file in ["cluster-api", "cluster-api-process", "validation-webhook"] {
        kubectl.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    kubectl.run("create serviceaccount victim -n kube-system");
    let secret = |name: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name, "namespace": "kube-system",
            "annotations": {"kubernetes.io/service-account.name": "victim"}}})
    };
    let account = "system:serviceaccount:kube-system:cluster-api-infrastructure-controller";
    for (at, identity) in [account, IDENTITY].into_iter().enumerate() {
        let user = tests::kubectl::Shell::new(kubectl.plane.kubeconfig(identity, &[]).unwrap());
        let own = secret(&format!("own-{at}"), "cluster.x-k8s.io/secret");
        // The API server learns of roles and policies by watches of its own.
        poll("the account writes Secrets of clusters", async || {
            user.may_create(&own).then_some(())
        })
        .await;
        let mut tries = 0;
        poll("a Secret with a token is refused", async || {
            tries += 1;
            let token =
                secret(&format!("token-{at}-{tries}"), "kubernetes.io/service-account-token");
            (!user.may_create(&token)).then_some(())
        })
        .await;
    }
    let webhook = "system:serviceaccount:kube-system:validation-webhook-controller";
    let user = tests::kubectl::Shell::new(kubectl.plane.kubeconfig(webhook, &[]).unwrap());
    assert!(
        !user.may_create(&secret("any", "Opaque")),
        "the webhook fills the Secret of the manifest"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_accounts_the_process_needs_the_rights_of_cluster_api_process_and_no_others() {
    let kubectl = Kubectl::with_crds().await;
    for file in ["cluster-api", "cluster-api-process"] {
        kubectl.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    let kubeconfig = kubectl.plane.kubeconfig(IDENTITY, &[]).unwrap();
    let manager = Scene::start_by(&kubeconfig, "--use-service-account-credentials=false");
    kubectl.create(&aws_cluster("v1alpha2", "one", &json!({"region": "eu-central-1"})));
    kubectl.create(&cluster("one"));
    poll("the Cluster is provisioning", async || {
        let phase =
            kubectl.object(&format!("{CLUSTERS} one -n default"))["status"]["phase"].clone();
        (phase == "provisioning").then_some(())
    })
    .await;
    assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
}
