//! S3, S9: clients of the webhook's port, with and without the certificate of an API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use kube::Client;
use serde_json::{Value, json};
use tests::control_plane::client_from;
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::{Process, usage};
use tokio::net::TcpListener;

use crate::stranger::Stranger;

const TOKEN: &str = "victims-token-in-a-credential";

async fn hub() -> Kubectl {
    let hub = Kubectl::with_crds().await;
    hub.run("create namespace kube-federation-system");
    hub.run("apply -f config/rbac");
    hub
}

/// The product with its webhook on a free port, which dials loopback for these tests.
async fn product(hub: &Kubectl, knows_callers: bool) -> (Process, u16) {
    let ca = hub.plane.webhook_client_ca();
    let ca = knows_callers.then(|| format!("--webhook-client-ca-file={}", ca.display()));
    let manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--controllers=validation-webhook", "--leader-elect=false"])
        .args(["--webhook-bind-address=127.0.0.1:0", "--dial-allow-cidrs=127.0.0.0/8"])
        .args(ca)
        .start();
    let line = manager.line("Serving the validating webhook").await;
    let (_, address) = line.split_once("127.0.0.1:").unwrap();
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    let port = port.parse().unwrap();
    (manager, port)
}

/// A client of the port, with or without the certificate of the API server.
async fn caller(hub: &Kubectl, port: u16, shows_certificate: bool) -> Client {
    let secret = hub.object("secret infra-controller-manager-webhook -n kube-system");
    let user = if shows_certificate {
        let identity = hub.plane.webhook_caller();
        let encoded = |text: &str| STANDARD.encode(text);
        json!({"client-certificate-data": encoded(&identity.certificate_pem),
            "client-key-data": encoded(&identity.key_pem)})
    } else {
        json!({})
    };
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": format!("https://127.0.0.1:{port}"),
            "tls-server-name": "localhost",
            "certificate-authority-data": secret["data"]["ca.crt"]}}],
        "users": [{"name": "it", "user": user}]});
    let path = hub.plane.dir().join(format!("caller-{port}-{shows_certificate}.kubeconfig"));
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    client_from(&path).await.unwrap()
}

fn cluster(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": "t", "type": "Imported", "clusterCredentialRef": {"name": "victim"},
            "addresses": [{"type": "Real", "host": "127.0.0.1", "port": port}]},
    })
}

fn machine(ip: &str, port: u16) -> Value {
    json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc-new"},
        "spec": {"clusterName": "cls-1", "tenantID": "t", "type": "Baremetal", "ip": ip,
            "port": port, "username": "root", "password": "cA=="},
    })
}

/// The answer to the review of a new object.
async fn asked(caller: &Client, object: &Value) -> Value {
    try_asked(caller, object).await.unwrap()
}

async fn try_asked(caller: &Client, object: &Value) -> Result<Value, kube::Error> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "object": object}});
    let request = http::Request::post("/validate?timeout=10s")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes());
    let answer: Value = caller.request(request.unwrap()).await?;
    Ok(answer["response"].clone())
}

/// The answer without the port, the only difference between two answers.
fn without_port(answer: &Value, port: u16) -> String {
    answer.to_string().replace(&port.to_string(), "PORT")
}

async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// rule:a-credential-goes-where-its-owner-sent-it, rule:the-network-is-asked-with-care
#[tokio::test(flavor = "multi_thread")]
async fn a_review_of_anybody_has_nothing_dialled_and_no_credential_sent() {
    let (hub, stranger) = futures::join!(hub(), Stranger::start());
    for ca in [None, Some(STANDARD.encode(&stranger.ca_pem))] {
        let name = if ca.is_some() { "victim" } else { "victim-without-ca" };
        let mut credential = json!({"apiVersion": "platform.tkestack.io/v1",
            "kind": "ClusterCredential", "metadata": {"name": name}, "tenantID": "t",
            "clusterName": "cls-victim", "token": TOKEN});
        if let Some(ca) = ca {
            credential["caCert"] = json!(ca);
        }
        hub.create(&credential);
    }
    let closed = closed_port().await;
    {
        let (manager, port) = product(&hub, false).await;
        assert!(manager.has_said("cannot authenticate callers"), "it is said at start");
        let unauthenticated = caller(&hub, port, false).await;
        poll("the webhook knows that there is no Cluster", async || {
            let answer = asked(&unauthenticated, &machine("127.0.0.1", closed)).await;
            (answer["allowed"] == false).then_some(())
        })
        .await;
        for credential in ["victim", "victim-without-ca"] {
            let mut answers = Vec::new();
            for port in [stranger.port, closed] {
                let mut invented = cluster("cls-victim", port);
                invented["spec"]["clusterCredentialRef"]["name"] = json!(credential);
                let answer = asked(&unauthenticated, &invented).await;
                assert!(answer["warnings"].to_string().contains("--webhook-client-ca-file"));
                answers.push(without_port(&answer, port));
                let answer = asked(&unauthenticated, &machine("127.0.0.1", port)).await;
                answers.push(without_port(&answer, port));
            }
            assert_eq!(answers[..2], answers[2..], "an open port looks like a closed one");
        }
        println!(
            "without a client CA: {} connections, token arrived: {}",
            stranger.connections(),
            stranger.has(TOKEN)
        );
        assert!(stranger.connections() == 0 && !stranger.has(TOKEN));
    }
    // The control: an API server asks about the owner's own object.
    let (_manager, port) = product(&hub, true).await;
    let api_server = caller(&hub, port, true).await;
    poll("the token goes where its owner sends it", async || {
        let answer = asked(&api_server, &cluster("cls-victim", stranger.port)).await;
        assert_eq!(answer["allowed"], stranger.has(TOKEN) || answer["warnings"].is_array());
        stranger.has(TOKEN).then_some(())
    })
    .await;
    let refused = asked(&api_server, &cluster("cls-other", closed)).await;
    assert!(refused.to_string().contains("connect-refused"), "{refused}");

    // Not even an API server has the credential sent for a new object under the name of the stored one.
    let second = Stranger::start().await;
    hub.create(&cluster("cls-victim", stranger.port));
    poll("the stored one is known", async || {
        let answer = asked(&api_server, &cluster("cls-victim", second.port)).await;
        answer["warnings"].to_string().contains("is stored already").then_some(())
    })
    .await;
    let before = second.connections();
    asked(&api_server, &cluster("cls-victim", second.port)).await;
    assert_eq!(second.connections(), before);
    // Without a client certificate no request is answered.
    let anonymous = caller(&hub, port, false).await;
    let request = http::Request::post("/validate").body(b"{}".to_vec()).unwrap();
    assert!(anonymous.request::<Value>(request).await.is_err());
}

const MACHINES: usize = 1_000;
const REVIEWS: usize = 250;
/// A copy of the Machines for each review would take some 250 MB.
const MOST: u64 = 96 * 1024 * 1024;

/// rule:the-network-is-asked-with-care
#[tokio::test(flavor = "multi_thread")]
async fn many_reviews_at_once_share_the_machines_that_they_are_judged_by() {
    let hub = hub().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": "cls-1"},
        "spec": {"tenantID": "t", "type": "Imported", "addresses": [
            {"type": "Real", "host": "127.0.0.1", "port": port}]},
    }));
    let machines: Vec<_> = (0..MACHINES)
        .map(|count| {
            let mut stored = machine(&format!("10.0.{}.{}", count / 250, count % 250 + 1), 22);
            stored["metadata"]["name"] = json!(format!("mc-{count}"));
            stored
        })
        .collect();
    hub.create_all(&machines);
    let (manager, listens) = product(&hub, true).await;
    let api_server = caller(&hub, listens, true).await;
    // The control: a review is judged by all of them.
    let last = machines[MACHINES - 1]["spec"]["ip"].as_str().unwrap();
    poll("the last Machine is known", async || {
        let answer = asked(&api_server, &machine(last, 22)).await;
        answer.to_string().contains("Duplicate value").then_some(())
    })
    .await;
    let before = usage::of(manager.pid()).unwrap().peak_rss_bytes;
    // Each waits for a greeting that does not come.
    let reviews = (0..REVIEWS).map(|count| {
        let machine = machine(&format!("127.1.0.{}", count % 250 + 1), port);
        let api_server = &api_server;
        async move { try_asked(api_server, &machine).await }
    });
    let answers = join_all(reviews).await;
    let grown = usage::of(manager.pid()).unwrap().peak_rss_bytes.saturating_sub(before);
    let judged = answers.iter().filter(|answer| answer.is_ok()).count();
    println!("{judged} reviews by {MACHINES} Machines at once: {} KiB more", grown / 1024);
    assert!(judged > REVIEWS / 4, "{judged}: the others found no turn at the network");
    assert!(grown < MOST, "{grown}");
}
