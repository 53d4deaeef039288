//! KubeFed's members as their objects tell of them.

use std::time::Instant;

use serde_json::{Value, json};

use tests::poll::poll;

use crate::member::Member;
use crate::scene::{Conditions, Scene};

/// Reaches the member with the token and the CA in the Secret of this name.
fn spec(member: &Member, secret: &str) -> Value {
    json!({"apiEndpoint": member.plane.url(), "secretRef": {"name": secret}})
}

fn secret(member: &Member, token: &str) -> Value {
    json!({"token": token, "ca.crt": member.plane.ca_pem()})
}

/// `rule:an-answer-proves-reachability`, `rule:both-conditions-are-published`
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_stops_stands_still_and_comes_back_is_told_as_offline_and_then_as_ready() {
    let (scene, mut member) = futures::join!(Scene::set(), Member::start());
    let token = member.token().await;
    scene.create_secret("one", &secret(&member, &token)).await;
    scene.create_cluster("one", &spec(&member, "one")).await;
    let well = scene.until("one", "ready", Conditions::is_ready).await;
    assert_eq!(well.message(), "/readyz responded with ok");
    let printed = scene.kubectl("get kubefedclusters -A -o wide");
    assert!(printed.contains("True") && printed.contains("READY"), "{printed}");

    let stopped = Instant::now();
    member.plane.stop_api_server().await;
    let down = scene.until("one", "offline", Conditions::is_offline).await;
    println!("offline after {:?}", stopped.elapsed());
    assert!(down.message().contains("connect-refused"), "{}", down.message());
    let time = |conditions: &Conditions, kind: &str| {
        conditions.of(kind)["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    assert!(time(&down, "Ready") >= time(&well, "Ready"));

    member.plane.start_api_server().await.unwrap();
    let started = Instant::now();
    scene.until("one", "ready again", Conditions::is_ready).await;
    println!("ready after {:?}", started.elapsed());

    member.plane.freeze_api_server();
    let frozen = scene.until("one", "offline when it stands still", Conditions::is_offline).await;
    assert!(frozen.message().contains("timeout"), "{}", frozen.message());
    member.plane.thaw_api_server();
    scene.until("one", "ready when it goes on", Conditions::is_ready).await;
}

/// `rule:changed-inputs-are-probed-within-a-second`, `rule:one-prober-per-uid`
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_rotated_revoked_and_replaced_without_a_restart() {
    let (scene, member) = futures::join!(Scene::set(), Member::start());
    scene.create_cluster("one", &spec(&member, "one")).await;
    let early = scene.until("one", "without Secret", Conditions::is_malformed).await;
    assert!(early.message().contains("no Secret one"), "{}", early.message());

    scene.create_secret("one", &secret(&member, "planted-bad-token")).await;
    let refused = scene.until("one", "refused", Conditions::is_not_ready).await;
    assert!(refused.message().contains("unauthorized"), "{}", refused.message());

    let token = member.token().await;
    let changed = Instant::now();
    scene.change_secret("one", &json!({ "token": token })).await;
    scene.until("one", "ready with the new token", Conditions::is_ready).await;
    println!("ready after {:?}", changed.elapsed());

    member.revoke().await;
    scene.until("one", "refused after the token was revoked", Conditions::is_not_ready).await;

    scene.delete_cluster("one").await;
    scene.create_secret("two", &secret(&member, "planted-other-token")).await;
    scene.create_cluster("one", &spec(&member, "two")).await;
    scene.until("one", "refused under the old name", Conditions::is_not_ready).await;
    assert_silent(&scene, &[&token, "planted-bad-token", "planted-other-token"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_in_a_set_up_is_told_by_its_code() {
    let (scene, member, other) = futures::join!(Scene::set(), Member::start(), Member::start());
    let token = member.token().await;
    scene.create_secret("good", &secret(&member, &token)).await;
    scene.create_secret("wrong-ca", &secret(&other, &token)).await;
    scene.create_secret("no-token", &json!({"ca.crt": member.plane.ca_pem()})).await;
    scene.create_secret("bad-ca", &json!({"token": token, "ca.crt": "planted-ca"})).await;
    let with = |changes: Value, secret: &str| {
        let mut spec = spec(&member, secret);
        spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        spec
    };
    let plain = member.plane.url().replace("https", "http");
    let proxy = "http://planted-user:planted-password@127.0.0.1:9";
    // (name, spec, code)
    let rows = [
        ("wrong-ca", with(json!({}), "wrong-ca"), Some("tls-verify")),
        ("any", with(json!({"disabledTLSValidations": ["*"]}), "wrong-ca"), None),
        ("no-token", with(json!({}), "no-token"), Some("secret-missing")),
        ("bad-ca", with(json!({}), "bad-ca"), Some("ca-parse")),
        ("plain", with(json!({"apiEndpoint": plain}), "good"), Some("bad-endpoint")),
        ("proxied", with(json!({"proxyURL": proxy}), "good"), Some("proxy")),
        ("nowhere", with(json!({"apiEndpoint": "127.0.0.1:9"}), "good"), Some("connect-refused")),
        ("good", with(json!({}), "good"), None),
    ];
    for (name, spec, _) in &rows {
        scene.create_cluster(name, spec).await;
    }
    for (name, _, code) in rows {
        match code {
            None => drop(scene.until(name, "ready", Conditions::is_ready).await),
            Some(code) => drop(
                scene
                    .until(name, code, |it| it.told().0 == "False" && it.message().contains(code))
                    .await,
            ),
        }
    }
    assert_silent(&scene, &[&token, "planted-ca", "planted-user", "planted-password"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zones_and_region_are_those_of_the_nodes() {
    let (scene, member) = futures::join!(Scene::set(), Member::start());
    let token = member.token().await;
    member.empower().await;
    for (name, zone, region) in [("n1", "z2", "r1"), ("n2", "z1", "r1"), ("n3", "z1", "r2")] {
        member.create_node(name, zone, region).await;
    }
    scene.create_secret("one", &secret(&member, &token)).await;
    scene.create_cluster("one", &spec(&member, "one")).await;
    poll("zones and region are there", async || {
        let status = scene.status("one").await;
        (status["zones"] == json!(["z1", "z2"]) && status["region"] == "r1").then_some(())
    })
    .await;
    assert!(scene.kubectl("get events -A").contains("MultipleRegions"));
}

/// No log line, metric, page, event or status has any of it (`rule:secrets-are-never-shown`).
async fn assert_silent(scene: &Scene, planted: &[&str]) {
    let mut shown = scene.manager.lines().join("\n");
    for page in ["/metrics", "/debug/controllers/cluster-health"] {
        let (status, text) = scene.manager.get(page).await.unwrap();
        assert_eq!(status, 200, "{page}: {text}");
        assert!(text.contains("kubefed"), "{page}: {text}");
        shown += &text;
    }
    shown += &scene.kubectl("get events -A -o yaml");
    let clusters = scene.kubectl("get kubefedclusters -A -o json");
    let clusters: Value = serde_json::from_str(&clusters).unwrap();
    for cluster in clusters["items"].as_array().unwrap() {
        shown += &cluster["status"].to_string();
    }
    for secret in planted {
        let at = shown.find(secret).map(|at| &shown[at.saturating_sub(200)..at]);
        assert!(at.is_none(), "{secret} is shown after {at:?}");
    }
}
