//! S4, S5, tenants: authors of objects who have other people's credentials sent to a server of their own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::Process;
use tests::kubectl::{FEDERATION, Kubectl, hub};
use tests::poll::poll;

use crate::stranger::Stranger;

const UNMARKED: &str = "victims-token-in-an-unmarked-secret";
const MARKED: &str = "victims-token-in-a-marked-secret";
const INLINE: &str = "victims-token-in-a-credential";
const ACCOUNT: &str = "victims-token-of-a-service-account";
/// A credential of the attacker, which need not be secret.
const OWN: &str = "attackers-own-token";
const LABEL: &str = "infra-controller-manager/send-to-member";

fn secret(name: &str, labels: &Value, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "stringData": data,
        "metadata": {"name": name, "namespace": FEDERATION, "labels": labels}})
}

/// A Secret like that of a service account of the management cluster.
fn account(name: &str, labels: &Value, token: &str) -> Value {
    let mut secret = secret(name, labels, &json!({"token": token}));
    secret["type"] = json!("kubernetes.io/service-account-token");
    secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "any"});
    secret
}

fn cluster(name: &str, tenant: &str, server: &Stranger, credential: Option<&str>) -> Value {
    let mut cluster = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": tenant, "type": "Imported", "addresses": [
            {"type": "Real", "host": "127.0.0.1", "port": server.port}]},
    });
    if let Some(credential) = credential {
        cluster["spec"]["clusterCredentialRef"] = json!({ "name": credential });
    }
    cluster
}

/// A ClusterCredential with the CA of a server.
fn credential(name: &str, of: (&str, &str), server: &Stranger, more: &Value) -> Value {
    let mut credential = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": name}, "clusterName": of.0, "tenantID": of.1,
        "caCert": STANDARD.encode(&server.ca_pem),
    });
    credential.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    credential
}

fn member(name: &str, secret: &str, server: &Stranger) -> Value {
    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": name, "namespace": FEDERATION},
        "spec": {"apiEndpoint": format!("https://127.0.0.1:{}", server.port),
            "caBundle": STANDARD.encode(&server.ca_pem), "secretRef": {"name": secret}}})
}

/// Waits until an object says this of itself.
async fn says(hub: &Kubectl, object: &str, words: &str) {
    poll(&format!("{object} says {words}"), async || {
        hub.object(object)["status"].to_string().contains(words).then_some(())
    })
    .await;
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[tokio::test(flavor = "multi_thread")]
async fn no_credential_of_others_reaches_a_server_of_whoever_writes_a_reference_to_it() {
    let (hub, stranger, own) = futures::join!(hub(), Stranger::start(), Stranger::start());
    let (marked, none) = (json!({LABEL: "true"}), json!({}));
    hub.create_all(&[
        secret("unmarked", &none, &json!({"token": UNMARKED, "ca.crt": own.ca_pem})),
        secret("marked", &marked, &json!({"token": MARKED, "ca.crt": own.ca_pem})),
        secret("bare", &marked, &json!({"token": MARKED})),
        account("account", &none, ACCOUNT),
        credential("cc-victim", ("cls-victim", "victim"), &own, &json!({"token": INLINE})),
        cluster("cls-victim", "victim", &own, None),
        // By a marked Secret, as its owner wants it.
        credential(
            "cc-owner",
            ("cls-owner", "victim"),
            &stranger,
            &json!({"secretRef": {"namespace": FEDERATION, "name": "marked"}}),
        ),
        cluster("cls-owner", "victim", &own, None),
    ]);
    let _manager = Process::with_kubeconfig(&hub.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health-controller", "--leader-elect=false"])
        .args(["--healthcheck-period=2s", "--cluster-health-confirm-interval=1s"])
        .args(["--cluster-health-period=2s", "--cluster-health-timeout=1s"])
        .start();
    says(&hub, "cls cls-victim", "\"Running\"").await;
    says(&hub, "cls cls-owner", "\"Running\"").await;

    let by = |secret: &str| json!({"secretRef": {"namespace": FEDERATION, "name": secret}});
    let attacker = "attacker";
    // Of those of the same second the last name counts: cc-z before cc-victim.
    hub.create_all(&[
        credential("cc-1", ("cls-unmarked", attacker), &stranger, &by("unmarked")),
        cluster("cls-unmarked", attacker, &stranger, None),
        credential("cc-2", ("cls-marked", attacker), &stranger, &by("marked")),
        cluster("cls-marked", attacker, &stranger, None),
        credential("cc-3", ("cls-bare", attacker), &stranger, &by("bare")),
        cluster("cls-bare", attacker, &stranger, None),
        cluster("cls-tenant", attacker, &stranger, Some("cc-victim")),
        cluster("cls-name", "victim", &stranger, Some("cc-victim")),
        credential("cc-z", ("cls-victim", attacker), &stranger, &json!({"token": OWN})),
        member("account", "account", &stranger),
        // The control: what the attacker may send.
        credential("cc-own", ("cls-own", attacker), &stranger, &json!({"token": OWN})),
        cluster("cls-own", attacker, &stranger, None),
    ]);
    for (object, words) in [
        ("cls cls-unmarked", "Secret kube-federation-system/unmarked is not used"),
        ("cls cls-marked", "tls-verify"),
        ("cls cls-bare", "it has no ca.crt"),
        ("cls cls-tenant", "its clusterName"),
        ("cls cls-name", "its clusterName"),
        ("cls cls-own", "\"Running\""),
    ] {
        says(&hub, object, words).await;
    }
    let account_of = format!("kubefedcluster account -n {FEDERATION}");
    says(&hub, &account_of, "service-account-token").await;
    // The newer credential of another tenant changes nothing.
    says(&hub, "cls cls-victim", "\"Running\"").await;
    let arrived: Vec<_> =
        [UNMARKED, MARKED, INLINE, ACCOUNT].into_iter().filter(|it| stranger.has(it)).collect();
    println!(
        "tokens of others that arrived: {}; connections that the stranger took: {}",
        arrived.len(),
        stranger.connections()
    );
    assert!(arrived.is_empty(), "{arrived:?}");
    assert!(!own.has(OWN), "the newer credential is used for nothing");

    // The servers write down what they are meant to hear.
    assert!(stranger.has(OWN) && own.has(INLINE) && own.has(MARKED));
    hub.run(&format!("label secret account -n {FEDERATION} {LABEL}=true"));
    poll("a token arrives that its owner marks", async || stranger.has(ACCOUNT).then_some(()))
        .await;
}
