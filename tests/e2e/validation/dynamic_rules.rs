//! Rules about other objects, the licence and the network, through the API server and the product.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use tests::member::member;
use tests::poll::poll;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::replicas::{at, hub, product};
use crate::scene::register;
use crate::server::{Cause, causes, dry_run};

/// Secret in every secret field of these tests, as text and in base64.
const PLANTED: [&str; 2] = ["planted-secret", "cGxhbnRlZC1zZWNyZXQ="];

fn cluster(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": "t", "type": "Imported", "addresses": [
            {"type": "Real", "host": "127.0.0.1", "port": port}]},
    })
}

fn machine(name: &str, of: &str, ip: &str, port: u16) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": name},
        "spec": {"clusterName": of, "type": "Baremetal", "ip": ip, "port": port,
            "username": "root", "password": PLANTED[1]},
    })
}

fn credential(name: &str, of: &str, fields: Value) -> Value {
    let mut credential = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": name}, "tenantID": "t", "clusterName": of,
    });
    credential.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    credential
}

/// A machine with SSH, at all addresses of loopback.
async fn ssh() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The client may have left already.
            drop(stream.write_all(b"SSH-2.0-test\r\n").await);
        }
    });
    port
}

async fn make(client: &Client, object: &Value) -> BTreeSet<Cause> {
    let (api, sent) = api(client, object).await;
    causes(api.create(&PostParams::default(), &sent).await)
}

/// Waits until the product's caches show what makes the answer be this.
async fn said(client: &Client, object: &Value, field: &str, reason: &str) {
    let wanted = BTreeSet::from([(field.to_owned(), reason.to_owned())]);
    let (api, sent) = api(client, object).await;
    poll(&format!("{field} is {reason} of {object}"), async || {
        (causes(api.create(&dry_run(), &sent).await) == wanted).then_some(())
    })
    .await;
}

async fn refused(client: &Client, object: &Value, field: &str, reason: &str) {
    let expected = BTreeSet::from([(field.to_owned(), reason.to_owned())]);
    assert_eq!(make(client, object).await, expected, "{object}");
}

async fn made(client: &Client, object: &Value) {
    assert_eq!(make(client, object).await, BTreeSet::new(), "{object}");
}

const INVALID: &str = "FieldValueInvalid";
const FORBIDDEN: &str = "FieldValueForbidden";

async fn answering(kubectl: &Kubectl) {
    let client = kubectl.plane.client().await;
    let lost = machine("mc-lost", "nowhere", "10.0.0.1", 22);
    let (machines, sent) = api(&client, &lost).await;
    poll("the webhook answers", async || {
        let answer = machines.create(&dry_run(), &sent).await;
        answer.is_err_and(|it| it.to_string().contains("there is no Cluster")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_objects_the_licence_and_the_network_are_judged_by_the_product() {
    let (kubectl, member) = (hub().await, member().await);
    let client = kubectl.plane.client().await;
    let (server, ssh) = (member_port(member.url()), ssh().await);
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let admin =
        member.client_certificate("admin", &["system:masters"], Duration::from_secs(3600)).unwrap();
    let encoded = |text: &str| STANDARD.encode(text);
    let ca = encoded(&member.authority().certificate_pem);
    kubectl.create(&credential("cc-bad", "cls-0", json!({"token": PLANTED[0], "caCert": ca})));
    let good = json!({"caCert": ca, "clientCert": encoded(&admin.certificate_pem),
        "clientKey": encoded(&admin.key_pem)});
    kubectl.create(&credential("cc-good", "cls-1", good.clone()));
    kubectl.create(&credential("cc-second", "cls-2", good));
    let flags = [
        "--dial-allow-cidrs=127.0.0.0/8",
        "--import-check",
        "--license-max-clusters=3",
        "--license-max-nodes=40",
        "--license-max-cpus=400",
        "--webhook-failure-policy=Fail",
        "--leader-elect=false",
    ];
    let (manager, port) = product(&kubectl, &flags).await;
    register(&kubectl, &at(port, "Fail"));
    answering(&kubectl).await;

    refused(&client, &cluster("cls-0", closed), "spec.addresses[0]", INVALID).await;
    let with = |name: &str, credential: &str| {
        let mut cluster = cluster(name, server);
        cluster["spec"]["clusterCredentialRef"] = json!({ "name": credential });
        cluster
    };
    let reference = "spec.clusterCredentialRef";
    refused(&client, &with("cls-0", "cc-bad"), reference, INVALID).await;
    // One that is for another Cluster is not tried.
    let (clusters, sent) = api(&client, &with("cls-9", "cc-bad")).await;
    clusters.create(&PostParams::default(), &sent).await.unwrap();
    kubectl.run("delete cls cls-9");
    // Of a dry run the network is not asked.
    let (clusters, sent) = api(&client, &with("cls-0", "cc-bad")).await;
    clusters.create(&dry_run(), &sent).await.unwrap();
    made(&client, &with("cls-1", "cc-good")).await;
    let (clusters, _) = api(&client, &cluster("cls-1", server)).await;
    let pods = |pods: u32| Patch::Merge(json!({"spec": {"properties": {"maxNodePodNum": pods}}}));
    let merge = PatchParams::default();
    let answer = causes(clusters.patch("cls-1", &merge, &pods(7)).await);
    let at = ("spec.properties.maxNodePodNum".to_owned(), "FieldValueNotSupported".to_owned());
    assert_eq!(answer, BTreeSet::from([at]));
    clusters.patch("cls-1", &merge, &pods(64)).await.unwrap();
    mark(&member.client().await).await;
    refused(&client, &with("cls-2", "cc-second"), "metadata.name", INVALID).await;

    refused(&client, &machine("mc-1", "nowhere", "127.0.0.1", ssh), "spec.clusterName", INVALID)
        .await;
    eventually_made(&client, &machine("mc-1", "cls-1", "127.0.0.1", ssh)).await;
    refused(&client, &machine("mc-2", "cls-1", "127.0.0.2", closed), "spec", FORBIDDEN).await;
    let twin = machine("mc-2", "cls-1", "127.0.0.1", ssh);
    said(&client, &twin, "spec.ip", "FieldValueDuplicate").await;
    refused(&client, &machine("mc-2", "cls-1", "169.254.169.254", ssh), "spec", FORBIDDEN).await;

    let mut small = cluster("cls-small", server);
    small["spec"]["clusterCIDR"] = json!("10.0.0.0/24");
    made(&client, &small).await;
    kubectl.patch_status("cls cls-small", &json!({"nodeCIDRMaskSize": 24}));
    eventually_made(&client, &machine("mc-3", "cls-small", "127.0.0.3", ssh)).await;
    said(&client, &machine("mc-4", "cls-small", "127.0.0.4", ssh), "spec", FORBIDDEN).await;

    made(&client, &cluster("cls-3", server)).await;
    said(&client, &cluster("cls-4", server), "spec.name", FORBIDDEN).await;
    made(&client, &cluster("global", server)).await;
    let worker = machine("mc-5", "cls-3", "127.0.0.5", ssh);
    for resource in [
        json!({"nodes": {"total": 50}}),
        json!({"nodes": {"total": 1}, "capacity": {"cpu": "500"}}),
    ] {
        kubectl.patch_status("cls cls-3", &json!({ "resource": null }));
        eventually_dry(&client, &worker).await;
        kubectl.patch_status("cls cls-3", &json!({ "resource": resource }));
        said(&client, &worker, "spec.name", FORBIDDEN).await;
    }

    warned_of_twins(&client).await;
    for line in manager.lines() {
        assert!(!PLANTED.iter().any(|planted| line.contains(planted)), "{line}");
        assert!(!line.contains("is forbidden: User"), "{line}");
    }
    let refused = [("rule", "request"), ("outcome", "refused")];
    let count = manager.metric("clusterhealth_webhook_checks_total", &refused).await;
    assert!(count.is_some_and(|count| count > 8.0), "{count:?}");
}

/// Once the caches show what it needs.
async fn eventually_made(client: &Client, object: &Value) {
    poll(&format!("{object} is made"), async || {
        make(client, object).await.is_empty().then_some(())
    })
    .await;
}

async fn eventually_dry(client: &Client, object: &Value) {
    let (api, sent) = api(client, object).await;
    poll("nothing is wrong with it", async || api.create(&dry_run(), &sent).await.ok()).await;
}

fn member_port(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Marks a member as TKEStack marks a cluster that it imports.
async fn mark(member: &Client) {
    let mark = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "tke"}});
    let (maps, mark) = api(member, &mark).await;
    maps.create(&PostParams::default(), &mark).await.unwrap();
}

async fn warned_of_twins(client: &Client) {
    let twin = |name: &str| {
        json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"name": name, "namespace": "kube-federation-system"},
            "spec": {"apiEndpoint": "https://10.0.0.1:6443", "secretRef": {"name": "one"}}})
    };
    made(client, &twin("one")).await;
    let expected = "the KubeFedCluster kube-federation-system/one has the same endpoint";
    poll("the second object gets a warning", async || {
        let path = "/apis/core.kubefed.io/v1beta1/namespaces/kube-federation-system/kubefedclusters?dryRun=All";
        let body = twin("two").to_string().into_bytes();
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = client.send(request.body(body.into()).unwrap()).await.unwrap();
        assert!(answer.status().is_success(), "the duplicate is a warning and not an error: {}", answer.status());
        let warnings = answer.headers().get_all("warning");
        warnings.iter().any(|it| it.to_str().unwrap().contains(expected)).then_some(())
    })
    .await;
}
