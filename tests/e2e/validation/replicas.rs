//! The certificate of the product's webhook, which all replicas sign with one authority.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tests::Process;
use tests::dynamic::api;
use tests::kubectl::{IDENTITY, Kubectl};
use tests::poll::poll;

use crate::objects;
use crate::scene::{Call, register, registration};
use crate::server::dry_run;

const REGISTRATION: &str = "validatingwebhookconfiguration infra-controller-manager";
const SECRET: &str = "secret infra-controller-manager-webhook -n kube-system";

/// The product with its webhook, and the port of that.
pub(crate) async fn product(kubectl: &Kubectl, flags: &[&str]) -> (Process, u16) {
    let kubeconfig = kubectl.plane.kubeconfig(IDENTITY, &[]).unwrap();
    let manager = Process::with_kubeconfig(&kubeconfig)
        .args(["--controllers=validation-webhook", "--webhook-bind-address=127.0.0.1:0"])
        .args([
            "--webhook-client-ca-file".into(),
            kubectl.plane.webhook_client_ca().into_os_string(),
        ])
        .args(flags.iter().copied())
        .start();
    let line = manager.line("Serving the validating webhook").await;
    let (_, rest) = line.split_once("address=").unwrap();
    let port = rest.trim_matches('"').rsplit_once(':').unwrap().1;
    let port = port.trim_end_matches(|it: char| !it.is_ascii_digit()).parse().unwrap();
    (manager, port)
}

/// A cluster in which the product has its rights.
pub(crate) async fn hub() -> Kubectl {
    let kubectl = Kubectl::with_crds().await;
    kubectl.run("create namespace kube-federation-system");
    kubectl.run("apply -f config/rbac");
    kubectl
}

/// The start of a webhook configuration of the product, which writes the rest of it.
pub(crate) fn at(port: u16, policy: &str) -> Value {
    let call = Call { port, path: "/validate", bundle: None, policy, timeout: 10 };
    registration(&call)
}

/// A Machine whose Cluster is nowhere, which only the webhook finds wrong.
async fn is_asked(kubectl: &Kubectl) -> bool {
    let client = kubectl.plane.client().await;
    let (machines, machine) = api(&client, &objects::machine()).await;
    let answer = machines.create(&dry_run(), &machine).await;
    answer.is_err_and(|error| error.to_string().contains("there is no Cluster of this name"))
}

fn authority(kubectl: &Kubectl) -> String {
    kubectl.object(SECRET)["data"]["ca.crt"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_answers_under_one_authority_and_the_registration_has_its_bundle() {
    let kubectl = hub().await;
    let flags = ["--webhook-failure-policy=Fail", "--leader-elect=false"];
    let ((one, first), (other, second)) =
        tokio::join!(product(&kubectl, &flags), product(&kubectl, &flags));
    for port in [first, second] {
        register(&kubectl, &at(port, "Ignore"));
        poll("the webhook answers", async || is_asked(&kubectl).await.then_some(())).await;
    }
    let stored = kubectl.object(REGISTRATION);
    for webhook in stored["webhooks"].as_array().unwrap() {
        assert_eq!(webhook["failurePolicy"], "Fail");
        let bundle = STANDARD.decode(webhook["clientConfig"]["caBundle"].as_str().unwrap());
        let own = STANDARD.decode(authority(&kubectl)).unwrap();
        assert_eq!(bundle.unwrap(), own, "one authority");
    }
    // A Secret that was deleted and applied again is filled with the same authority.
    let before = authority(&kubectl);
    kubectl.run(&format!("delete {SECRET}"));
    kubectl.run("apply -f config/rbac/validation-webhook.yaml");
    poll("the Secret is filled", async || {
        kubectl.object(SECRET)["data"]["ca.crt"].is_string().then_some(())
    })
    .await;
    assert_eq!(authority(&kubectl), before);
    assert!(is_asked(&kubectl).await);
    for manager in [&one, &other] {
        assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
        for line in manager.lines() {
            assert!(
                !line.contains("PRIVATE KEY") && !line.contains("is forbidden: User"),
                "{line}"
            );
        }
    }
}
