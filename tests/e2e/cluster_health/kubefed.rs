//! KubeFed's members as their objects tell of them, while their lives go on.

use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tests::control_plane::ControlPlane;
use tests::member::{Account, member};
use tests::poll::poll;

use crate::listeners;
use crate::scene::{Conditions, Scene};

/// Reaches the member with the token and the CA in the Secret of this name.
pub(crate) fn spec(member: &ControlPlane, secret: &str) -> Value {
    json!({"apiEndpoint": member.url(), "secretRef": {"name": secret}})
}

pub(crate) fn secret(member: &ControlPlane, token: &str) -> Value {
    json!({"token": token, "ca.crt": member.ca_pem()})
}

/// `rule:an-answer-proves-reachability`
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_stops_hangs_and_recovers_is_published_as_offline_and_then_ready() {
    let (scene, mut member) = futures::join!(Scene::set(), member());
    let account = Account::of(&member).await;
    scene.create_secret("one", &secret(&member, &account.token)).await;
    scene.create_cluster("one", &spec(&member, "one")).await;
    let well = scene.until("one", "ready", Conditions::is_ready).await;
    assert_eq!(well.message(), "/readyz responded with ok");

    let stopped = Instant::now();
    member.stop_api_server().await;
    let refused = |it: &Conditions| it.is_offline() && it.message().contains("connect-refused");
    let down = scene.until("one", "offline by connect-refused", refused).await;
    println!("offline after {:?}", stopped.elapsed());
    let time = |conditions: &Conditions, kind: &str| {
        conditions.of(kind)["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    assert!(time(&down, "Ready") >= time(&well, "Ready"));
    let record = scene.status("one").await["availability"].as_str().map(str::to_owned);
    assert!(record.is_some_and(|it| it.starts_with("v1.") && it.len() > 10), "it has no record");

    member.start_api_server().await.unwrap();
    let started = Instant::now();
    scene.until("one", "ready again", Conditions::is_ready).await;
    println!("ready after {:?}", started.elapsed());

    member.freeze_api_server();
    let silent = |it: &Conditions| it.is_offline() && it.message().contains("timeout");
    scene.until("one", "offline by timeout when it stands still", silent).await;
    member.thaw_api_server();
    scene.until("one", "ready when it goes on", Conditions::is_ready).await;
}

/// `rule:one-prober-per-uid`
#[tokio::test(flavor = "multi_thread")]
async fn credential_and_address_are_changed_and_replaced_without_a_restart() {
    let (scene, member) = futures::join!(Scene::set(), member());
    scene.create_cluster("one", &spec(&member, "one")).await;
    let early = |it: &Conditions| {
        it.is_malformed()
            && it.message().contains("Secret one")
            && it.message().contains("does not exist")
    };
    scene.until("one", "without Secret", early).await;

    scene.create_secret("one", &secret(&member, "planted-bad-token")).await;
    let refused = |it: &Conditions| it.is_not_ready() && it.message().contains("unauthorized");
    scene.until("one", "refused as unauthorized", refused).await;

    let account = Account::of(&member).await;
    let changed = Instant::now();
    scene.change_secret("one", &json!({ "token": account.token })).await;
    scene.until("one", "ready with the new token", Conditions::is_ready).await;
    println!("ready after {:?}", changed.elapsed());

    let nowhere = listeners::dropping().await;
    scene.change_cluster("one", &json!({"apiEndpoint": nowhere.url})).await;
    scene.until("one", "offline at an address without a server", Conditions::is_offline).await;
    scene.change_cluster("one", &json!({"apiEndpoint": member.url()})).await;
    scene.until("one", "ready at its own address again", Conditions::is_ready).await;

    account.delete().await;
    scene.until("one", "refused after the token was revoked", Conditions::is_not_ready).await;

    scene.delete_cluster("one").await;
    scene.create_secret("two", &secret(&member, "planted-other-token")).await;
    scene.create_cluster("one", &spec(&member, "two")).await;
    scene.until("one", "refused under the old name", Conditions::is_not_ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zones_and_region_are_those_of_the_nodes() {
    let (scene, member) = futures::join!(Scene::set(), member());
    let account = Account::of(&member).await;
    account.empower().await;
    let nodes = Api::<Node>::all(member.client().await);
    for (name, zone, region) in [("n1", "z2", "r1"), ("n2", "z1", "r1"), ("n3", "z1", "r2")] {
        let labels =
            json!({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region});
        let node = json!({"metadata": {"name": name, "labels": labels}});
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
    }
    scene.create_secret("one", &secret(&member, &account.token)).await;
    scene.create_cluster("one", &spec(&member, "one")).await;
    poll("zones and region are there", async || {
        let status = scene.status("one").await;
        (status["zones"] == json!(["z1", "z2"]) && status["region"] == "r1").then_some(())
    })
    .await;
    poll("the event is there", async || {
        scene.kubectl("get events -A").contains("MultipleRegions").then_some(())
    })
    .await;
    scene.create_cluster("two", &spec(&member, "one")).await;
    poll("an event says that both objects are the same cluster", async || {
        let reported = "the KubeFedCluster kube-federation-system/one is the same cluster";
        scene.kubectl("get events -A").contains(reported).then_some(())
    })
    .await;
}
