//! Identities of the process: the kubeconfig's identity reads and leads, a service account writes.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tests::Match;
use tests::fault_proxy::{Outcome, Request};

use crate::scene::Scene;

const AS_ACCOUNT: &str = "--use-service-account-credentials=true --leader-elect=false";
const AS_ROOT: &str = "--use-service-account-credentials=false --leader-elect=false";
const ACCOUNT: &str = "system:serviceaccount:kube-system:node-controller";
const ACCOUNTS: &str = "/api/v1/namespaces/kube-system/serviceaccounts";

fn accounts(client: &Client) -> Api<ServiceAccount> {
    Api::namespaced(client.clone(), "kube-system")
}

/// The subject of a request's bearer token. That the server believes it is for the server to say.
fn subject(request: &Request) -> Option<String> {
    let header = request.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let claims = header.strip_prefix("Bearer ")?.split('.').nth(1)?;
    let padding = "=".repeat((4 - claims.len() % 4) % 4);
    let claims = format!("{}{padding}", claims.replace('-', "+").replace('_', "/"));
    let ByteString(json) = serde_json::from_value(claims.into()).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&json).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_account_credentials_the_missing_account_is_created_and_writes_are_its_own() {
    let scene = Scene::set().await;
    assert!(accounts(&scene.client).get_opt("node-controller").await.unwrap().is_none());
    let manager = scene.start(AS_ACCOUNT).await;
    scene.serves("a").await;
    scene.serves("b").await;
    assert!(accounts(&scene.client).get_opt("node-controller").await.unwrap().is_some());
    manager.line("Created service account").await;

    // The Nodes may show their CIDRs before the answers have passed the proxy.
    let patches = tests::poll::poll("the proxy has passed both answers on", async || {
        let patches = scene.proxy.requests_like(&Match::node_patches());
        patches.iter().all(|patch| patch.outcome != Outcome::Open).then_some(patches)
    })
    .await;
    assert_eq!(patches.len(), 2);
    for patch in &patches {
        assert_eq!(subject(&patch.request).as_deref(), Some(ACCOUNT));
        assert!(patch.request.user_agent().ends_with(&format!("/{ACCOUNT}")), "{patch:?}");
        assert_eq!(patch.outcome, Outcome::Answered(200), "the server believes the token");
    }
    for seen in scene.proxy.requests() {
        // Its own rights are the account's to ask about; all else is the root identity's.
        let own = seen.request.path.ends_with("/selfsubjectaccessreviews")
            || seen.request.path.contains("/configmaps")
            || Match::node_patches().fits(&seen.request);
        assert_eq!(seen.request.has_token(), own, "{} {}", seen.request.method, seen.request.path);
    }
    let asked = scene.proxy.requests_like(&Match::any().path_prefix(ACCOUNTS));
    let asked: Vec<_> = asked
        .iter()
        .map(|seen| format!("{} {}", seen.request.method, &seen.request.path[ACCOUNTS.len()..]))
        .collect();
    assert_eq!(asked, ["GET /node-controller", "POST ", "POST /node-controller/token"]);
    let missing = manager.metric("icm_missing_permissions", &[]).await;
    assert_eq!(missing, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_exists_is_used_as_it_is() {
    let scene = Scene::set().await;
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("node-controller".into()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    let accounts = accounts(&scene.client);
    let before = accounts.create(&PostParams::default(), &account).await.unwrap();
    let _manager = scene.start(AS_ACCOUNT).await;
    scene.serves("a").await;
    let created = scene.proxy.requests_like(&Match::method(http::Method::POST).path(ACCOUNTS));
    assert!(created.is_empty(), "{created:?}");
    assert_eq!(accounts.get("node-controller").await.unwrap().metadata, before.metadata);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_account_credentials_each_missing_right_is_one_line_that_names_the_flag() {
    let scene = Scene::set().await;
    let manager = scene.start(AS_ROOT).await;
    tests::mk_node("a").create(&scene.client).await;
    let event = scene.event("a", "CIDRAssignmentFailed", |_| true).await;
    let why = event.message.unwrap_or_default();
    assert!(why.contains("system:kube-controller-manager") && why.contains("patch"), "{why}");

    manager.until_metric("icm_missing_permissions", &[], |rights| rights > 1.5).await;
    let missing = manager.metric("icm_missing_permissions", &[]).await;
    assert_eq!(missing, Some(2.0), "get and patch");
    let lines = manager.lines();
    for verb in ["get", "patch"] {
        let right = format!("verb=\"{verb}\" resource=\"nodes\"");
        let about: Vec<_> = lines
            .iter()
            .filter(|line| line.contains("Missing permission") && line.contains(&right))
            .collect();
        assert_eq!(about.len(), 1, "{verb}: {lines:#?}");
        assert!(about[0].starts_with('E'), "{}", about[0]);
        for part in ["--use-service-account-credentials=true", "kube-system/node-controller"] {
            assert!(about[0].contains(part), "{part:?} is missing in {}", about[0]);
        }
    }
    assert!(scene.proxy.requests().iter().all(|seen| !seen.request.has_token()));
    // It lives on, and goes on telling.
    tests::mk_node("b").create(&scene.client).await;
    scene.event("b", "CIDRAssignmentFailed", |_| true).await;
    assert!(manager.is_running());
    assert_eq!(manager.get("/livez").await.unwrap(), (200, "ok".into()));
}
