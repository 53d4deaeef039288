//! Access to the serving port, as the real API server authorizes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::client::Body;
use kube::config::AuthInfo;
use serde_json::Value;
use tests::control_plane::{ADMIN_GROUP, Identity};
use tests::kubectl::Shell;
use tests::{ControlPlane, Fault, Match, Process, Stopwatch, poll, process};

use crate::scene::{AT_ONCE, Scene, until_readyz};

/// A path that needs an RBAC permission, unlike `/version`, which every user may read.
const CHECK: &str = "/readyz/ping";
/// No API server is needed to begin.
const IDLE: &str = "--leader-elect=false";

/// The product, guarded by what a kubeconfig says.
fn guarded(kubeconfig: &Path, args: &str) -> Process {
    Process::with_kubeconfig(kubeconfig)
        .guarded_by(kubeconfig)
        .args(args.split_whitespace())
        .args(["--v=2"])
        .start()
}

/// The product whose reviews go through the scene's proxy.
async fn served(scene: &Scene, args: &str) -> Process {
    let manager = guarded(scene.proxy.kubeconfig(), &format!("{IDLE} {args}"));
    until_readyz(&manager, 200).await;
    manager
}

/// A token of a new service account in kube-system.
async fn token_of(scene: &Scene, name: &str) -> AuthInfo {
    let accounts = Api::<ServiceAccount>::namespaced(scene.client.clone(), "kube-system");
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let account = ServiceAccount { metadata, ..ServiceAccount::default() };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let spec = Some(TokenRequestSpec::default());
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let issued =
        accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    with_token(&issued.status.unwrap().token.unwrap())
}

pub(crate) fn with_token(token: &str) -> AuthInfo {
    AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() }
}

pub(crate) fn with_certificate(identity: &Identity) -> AuthInfo {
    let base64 = |pem: &str| {
        let bytes = serde_json::to_value(ByteString(pem.as_bytes().to_vec())).unwrap();
        bytes.as_str().unwrap().to_owned()
    };
    AuthInfo {
        client_certificate_data: Some(base64(&identity.certificate_pem)),
        client_key_data: Some(base64(&identity.key_pem).into()),
        ..AuthInfo::default()
    }
}

fn kubectl(scene: &Scene) -> Shell {
    Shell::new(scene.cluster.admin_kubeconfig())
}

/// Lets `account` of kube-system read metrics, by the shipped role.
fn let_read_metrics(scene: &Scene, account: &str) {
    let kubectl = kubectl(scene);
    kubectl.run("apply -f config/rbac/metrics-reader.yaml");
    kubectl.run(&format!(
        "create clusterrolebinding {account} --serviceaccount=kube-system:{account} \
         --clusterrole=infra-controller-manager-metrics-reader"
    ));
}

async fn ask(manager: &Process, who: &AuthInfo, method: Method, path: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    process::ask(manager.port(), who.clone(), request).await.unwrap()
}

async fn get(manager: &Process, who: &AuthInfo, path: &str) -> u16 {
    ask(manager, who, Method::GET, path).await.0
}

async fn until(manager: &Process, who: &AuthInfo, path: &str, status: u16) {
    let what = format!("{path} is {status}");
    poll(&what, async || (get(manager, who, path).await == status).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_see_health_and_nothing_else_and_bad_tokens_not_even_that() {
    let scene = Scene::set().await;
    let manager = served(&scene, "").await;
    let anonymous = AuthInfo::default();
    for path in ["/livez", "/readyz", "/healthz?verbose"] {
        assert_eq!(get(&manager, &anonymous, path).await, 200, "{path}");
    }
    for path in ["/metrics", CHECK, "/nothing"] {
        let (status, body) = ask(&manager, &anonymous, Method::GET, path).await;
        let refusal: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &refusal["code"]), (403, &Value::from(403)), "{path}");
        let message = format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\"");
        assert_eq!(refusal["message"], message);
    }
    let bad = with_token("not.a.token");
    for path in ["/livez", "/metrics"] {
        let (status, body) = ask(&manager, &bad, Method::GET, path).await;
        let refusal: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &refusal["message"]), (401, &Value::from("Unauthorized")), "{path}");
    }
    assert!(!manager.has_said("not.a.token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scraper_reads_metrics_with_the_shipped_role_and_its_token() {
    let scene = Scene::set().await;
    let manager = served(&scene, "--authorization-webhook-cache-unauthorized-ttl=1s").await;
    let scraper = token_of(&scene, "scraper").await;
    assert_eq!(get(&manager, &scraper, "/metrics").await, 403, "not yet");
    let_read_metrics(&scene, "scraper");
    until(&manager, &scraper, "/metrics", 200).await;
    until(&manager, &scraper, "/metrics/slis", 200).await;
    assert_eq!(get(&manager, &scraper, CHECK).await, 403);
    assert_eq!(ask(&manager, &scraper, Method::DELETE, "/metrics/slis").await.0, 403);
    let (_, page) = ask(&manager, &scraper, Method::GET, "/metrics").await;
    for series in [
        "apiserver_delegated_authn_request_total{code=\"201\"}",
        "apiserver_delegated_authz_request_total{code=\"201\"}",
        "authentication_attempts{result=\"success\"}",
    ] {
        assert!(page.contains(series), "{series} is missing in {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_certificates_are_judged_by_the_cas_that_the_cluster_publishes() {
    let scene = Scene::set().await;
    let manager = served(&scene, "").await;
    let hour = Duration::from_secs(3600);
    let of = |user, groups: &[&str]| {
        with_certificate(&scene.cluster.client_certificate(user, groups, hour).unwrap())
    };
    until(&manager, &of("root", &[ADMIN_GROUP]), CHECK, 200).await;
    assert_eq!(get(&manager, &of("ada", &["system:monitoring"]), "/metrics").await, 200);
    assert_eq!(get(&manager, &of("ada", &["system:monitoring"]), "/nothing").await, 403);
    assert_eq!(get(&manager, &of("eve", &[]), "/metrics").await, 403);
    let elsewhere = ControlPlane::foreign_certificate("root", &[ADMIN_GROUP]).unwrap();
    for path in ["/livez", "/metrics"] {
        assert_eq!(get(&manager, &with_certificate(&elsewhere), path).await, 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_frozen_known_readers_keep_metrics_and_others_get_nothing() {
    let scene = Scene::set().await;
    let manager = served(&scene, "").await;
    let reader = token_of(&scene, "reader").await;
    let_read_metrics(&scene, "reader");
    until(&manager, &reader, "/metrics", 200).await;
    let late = token_of(&scene, "late").await;

    scene.proxy.freeze();
    let frozen = Stopwatch::start();
    let mut slowest = Duration::ZERO;
    // Longer than answers are reused without a question.
    while frozen.elapsed() < Duration::from_secs(16) {
        let asked = Stopwatch::start();
        let (status, page) = ask(&manager, &reader, Method::GET, "/metrics").await;
        assert_eq!(status, 200, "{page}");
        slowest = slowest.max(asked.elapsed());
        assert_eq!(get(&manager, &AuthInfo::default(), "/livez").await, 200);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    let (_, page) = ask(&manager, &reader, Method::GET, "/metrics").await;
    let stale = "icm_delegated_auth_stale_total{review=\"authn\"} ";
    let times = page.lines().find_map(|line| line.strip_prefix(stale)).unwrap();
    assert_ne!(times, "0");
    let (status, body) = ask(&manager, &late, Method::GET, "/metrics").await;
    assert_eq!(status, 401);
    assert!(!body.contains("https://"), "{body}");

    scene.proxy.thaw();
    let_read_metrics(&scene, "late");
    until(&manager, &late, "/metrics", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named_readers_of_metrics_need_no_review_of_access() {
    let scene = Scene::set().await;
    let named = "system:serviceaccount:kube-system:named";
    let manager = served(&scene, &format!("--metrics-allowed-users={named}")).await;
    let reader = token_of(&scene, "named").await;
    assert_eq!(get(&manager, &reader, "/metrics").await, 200);
    assert_eq!(get(&manager, &reader, CHECK).await, 403);
    let reviews = Match::any()
        .and(|request| request.path.ends_with("/subjectaccessreviews"))
        .body_contains("/metrics");
    assert!(scene.proxy.requests_like(&reviews).is_empty());
}

/// An identity that may do nothing.
fn without_rights(scene: &Scene) -> PathBuf {
    scene.cluster.kubeconfig("without-rights", &[]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_to_review_is_one_line_and_health_is_answered() {
    let scene = Scene::set().await;
    let without = without_rights(&scene);
    let manager = guarded(&without, &format!("{IDLE} --authentication-skip-lookup"));
    let token = token_of(&scene, "anybody").await;
    for _ in 0..5 {
        poll("it serves", async || {
            process::get(manager.port(), "/livez").await.is_ok_and(|(s, _)| s == 200).then_some(())
        })
        .await;
        assert_eq!(get(&manager, &token, "/metrics").await, 401);
        assert_eq!(get(&manager, &AuthInfo::default(), "/metrics").await, 503);
    }
    for (task, resource) in
        [("review bearer tokens", "tokenreviews"), ("review the access", "subjectaccessreviews")]
    {
        let line = manager.line(&format!("Cannot {task}")).await;
        for part in [resource, "system:auth-delegator", "-kubeconfig"] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
        let reported = manager.lines().iter().filter(|line| line.contains(task)).count();
        assert_eq!(reported, 1, "{:#?}", manager.lines());
    }
    assert!(manager.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_lookup_of_the_cas_ends_the_start_unless_it_is_tolerated() {
    let scene = Scene::set().await;
    let without = without_rights(&scene);
    let manager = guarded(&without, IDLE);
    assert_eq!(manager.exit(AT_ONCE).await.code(), Some(1));
    let reported = manager.line("cannot look up the CAs of clients").await;
    for part in ["extension-apiserver-authentication-reader", "tolerate-lookup-failure"] {
        assert!(reported.contains(part), "{part} is missing in {reported}");
    }
    let manager =
        guarded(&without, &format!("{IDLE} --authentication-tolerate-lookup-failure=true"));
    manager.line("cannot look up the CAs of clients").await;
    poll("it serves", async || {
        process::get(manager.port(), "/livez").await.is_ok_and(|(s, _)| s == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_does_not_answer_is_waited_for() {
    let scene = Scene::set().await;
    let lookups = Match::any()
        .path("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication");
    let refused = scene.proxy.on(lookups).times(1).then(Fault::status(503));
    let manager = served(&scene, "").await;
    refused.hit(1).await;
    let hour = Duration::from_secs(3600);
    let root = scene.cluster.client_certificate("root", &[ADMIN_GROUP], hour).unwrap();
    until(&manager, &with_certificate(&root), CHECK, 200).await;
}
