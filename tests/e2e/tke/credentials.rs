//! Conditions of Clusters for each kind of credential, and after changes of the credentials.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::kubectl::{FEDERATION, table};
use tests::member::{Account, member};
use tests::{poll, ports};

use crate::scene::{Scene, address, condition, pair, port};

/// Name, fields of the credential, phase, part of the message, CredentialValid and its reason.
type Row = (&'static str, Value, &'static str, &'static str, (&'static str, &'static str));

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Status of a valid credential, without a reason.
const VALID: (&str, &str) = ("True", "");
/// Status of a credential whose member was not reached: unknown.
const NOT_KNOWN: (&str, &str) = ("", "");

#[tokio::test(flavor = "multi_thread")]
async fn valid_old_wrong_and_powerless_credentials_differ_and_changes_take_effect() {
    let (scene, other) = futures::join!(Scene::set(), member());
    let (account, powerless) =
        futures::join!(Account::of(&scene.member), Account::of(&scene.member));
    account.empower().await;
    create_secret(&scene, &account.token);
    let by_secret = json!({"secretRef": {"namespace": FEDERATION, "name": "member"}});
    let token = json!({"token": account.token});
    let wrong_ca = json!({"token": account.token, "caCert": STANDARD.encode(other.ca_pem())});
    let rows: [Row; 7] = [
        (
            "cls-expired",
            pair(&scene.administrator(Duration::ZERO)),
            "Failed",
            "unauthorized",
            ("False", "Unauthorized"),
        ),
        ("cls-pair", pair(&scene.administrator(YEAR)), "Running", "", VALID),
        (
            "cls-powerless",
            json!({"token": powerless.token}),
            "Failed",
            "forbidden",
            ("False", "Forbidden"),
        ),
        ("cls-secret", by_secret, "Running", "", VALID),
        ("cls-token", token.clone(), "Running", "", VALID),
        ("cls-two-ways", token, "Running", "", VALID),
        ("cls-wrong-ca", wrong_ca, "Failed", "tls-verify", NOT_KNOWN),
    ];
    let (here, nowhere) = (port(scene.member.url()), ports::free_port());
    for (name, credential, ..) in &rows {
        let ways = if *name == "cls-two-ways" { vec![nowhere, here] } else { vec![here] };
        let credential = scene.credential(name, name, credential);
        scene.hub.create_all(&[Scene::cluster_at(name, &ways), credential]);
    }
    let manager = scene.start("");
    for (name, _, phase, message, (valid, why)) in &rows {
        let wanted = format!("is {phase} by {message:?}");
        let status = scene.until(name, &wanted, |it| {
            let of = condition(it, "CredentialValid");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            it["phase"] == *phase
                && text(&it["message"]).contains(message)
                && text(&of["status"]) == *valid
                && (why.is_empty() || text(&of["reason"]) == *why)
                && (*phase != "Running" || it["version"].is_string())
        });
        println!("{name:16} {}", status.await["message"]);
    }
    let health = |it: &Value| condition(it, "HealthCheck")["message"].to_string();
    scene
        .until("cls-two-ways", "names the dead way", |it| {
            health(it).contains("1 of 2 API endpoints")
        })
        .await;
    assert_printed(&scene, &rows).await;
    change(&scene, &powerless, &other).await;
    scene.end(manager).await;
}

/// Asserts the output of kubectl.
async fn assert_printed(scene: &Scene, rows: &[Row]) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut expected =
        vec![words(&["NAME", "TYPE", "VERSION", "STATUS", "AGE", "HEALTHY", "REASON"])];
    expected.extend(rows.iter().map(|(name, _, phase, ..)| match *phase {
        "Running" => words(&[name, "Imported", "1.36.3", "Running", "AGE", "True"]),
        _ => words(&[name, "Imported", "Failed", "AGE", "False", "HealthCheckFail"]),
    }));
    // A busy machine makes a probe late now and then.
    poll("kubectl prints what is expected", async || {
        (table(&scene.hub.run("get cls -o wide")) == expected).then_some(())
    })
    .await;
}

/// Rights are given and taken, a Secret and a credential are changed, and an address.
async fn change(scene: &Scene, powerless: &Account, other: &tests::ControlPlane) {
    let fails = |it: &Value, why: &str| {
        it["phase"] == "Failed" && it["message"].as_str().unwrap_or_default().contains(why)
    };
    let runs = |it: &Value| it["phase"] == "Running";
    powerless.empower().await;
    scene.until("cls-powerless", "runs with rights", runs).await;
    powerless.disempower().await;
    scene.until("cls-powerless", "fails without rights", |it| fails(it, "forbidden")).await;

    let secret = format!("secret member -n {FEDERATION}");
    scene.hub.patch(
        &secret,
        "merge",
        &json!({"stringData": {"token": "planted-token-of-no-user"}}),
    );
    scene.until("cls-secret", "fails by its Secret", |it| fails(it, "unauthorized")).await;

    scene.hub.patch("cc cc-cls-token", "merge", &json!({"token": "planted-token-of-no-user"}));
    scene.until("cls-token", "fails by its credential", |it| fails(it, "unauthorized")).await;

    // Another API server with another CA, and home again.
    let at = |server: &tests::ControlPlane| json!({"spec": {"addresses": [address(port(server.url()))]}});
    scene.hub.patch("cls cls-pair", "merge", &at(other));
    scene.until("cls-pair", "fails elsewhere", |it| fails(it, "tls-verify")).await;
    scene.hub.patch("cls cls-pair", "merge", &at(&scene.member));
    scene.until("cls-pair", "runs at home", runs).await;
}

fn create_secret(scene: &Scene, token: &str) {
    scene.hub.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "member", "namespace": FEDERATION,
            "labels": {"infra-controller-manager/send-to-member": "true"}},
        "stringData": {"token": token, "ca.crt": scene.member.ca_pem()},
    }));
}
