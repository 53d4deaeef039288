//! Every fault of the proxy does what it says, on HTTP/2, which the product speaks, and HTTP/1.1.

use std::path::Path;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tests::control_plane::ADMIN_GROUP;
use tests::fault_proxy::{Canned, Outcome};
use tests::nodes::names;
use tests::{Cluster, Cut, Fault, FaultProxy, Match, cluster, create_nodes, delete_nodes, mk_node};
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder};

/// The start of each test: a proxy, the nodes `n-0` to `n-3`, and a client through it.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) proxy: FaultProxy,
    pub(crate) direct: Client,
    pub(crate) client: Client,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Http {
    One,
    Two,
}

impl Scene {
    pub(crate) async fn set(http: Http) -> Self {
        let cluster = cluster().await;
        let direct = cluster.client().await;
        create_nodes(&direct, names("n", 4).map(mk_node)).await;
        let proxy = FaultProxy::start(&cluster, "admin", &[ADMIN_GROUP]).await;
        let client = client(proxy.kubeconfig(), http).await;
        Self { cluster, proxy, direct, client }
    }

    /// The CIDR of the Node, from the API server.
    async fn cidr(&self, node: &str) -> Option<String> {
        let (_, node) = get(&self.direct, &format!("/api/v1/nodes/{node}")).await.unwrap();
        node["spec"]["podCIDR"].as_str().map(str::to_owned)
    }
}

/// A client without retries, so that each fault is seen.
async fn client(kubeconfig: &Path, http: Http) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config().unwrap())
        .https_only();
    let connector = match http {
        Http::One => connector.enable_http1().build(),
        Http::Two => connector.enable_http2().build(),
    };
    let hyper: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .http2_only(http == Http::Two)
        .retry_canceled_requests(false)
        .build(connector);
    let service =
        ServiceBuilder::new().layer(config.base_uri_layer()).map_err(BoxError::from).service(hyper);
    Client::new(service, config.default_namespace)
}

type Answered = kube::Result<(http::response::Parts, Value)>;

async fn send(client: &Client, request: Request<Body>) -> Answered {
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.collect_bytes().await.map_err(|error| kube::Error::Service(error.into()))?;
    Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
}

pub(crate) async fn get(client: &Client, path: &str) -> Answered {
    send(client, Request::get(path).body(Body::empty()).unwrap()).await
}

/// Sends what the product sends.
async fn assign(client: &Client, node: &str, cidr: &str) -> Answered {
    let body = json!({"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}).to_string();
    let request = Request::patch(format!("/api/v1/nodes/{node}"))
        .header("content-type", "application/strategic-merge-patch+json")
        .body(Body::from(body.into_bytes()))
        .unwrap();
    send(client, request).await
}

#[tokio::test]
async fn without_a_rule_requests_pass_and_are_recorded() {
    for http in [Http::One, Http::Two] {
        let scene = Scene::set(http).await;
        let (head, node) = assign(&scene.client, "n-0", "10.0.0.0/24").await.unwrap();
        assert_eq!(head.status, StatusCode::OK);

        let patches = scene.proxy.node_patches();
        let [patch] = patches.as_slice() else { panic!("one patch, not {patches:?}") };
        assert_eq!((patch.node.as_str(), patch.upstream_status), ("n-0", Some(200)));
        assert_eq!(patch.pod_cidrs, ["10.0.0.0/24"]);
        let version = patch.resource_version.map(|version| version.to_string());
        assert_eq!(version.as_deref(), node["metadata"]["resourceVersion"].as_str());
        assert!(patch.settled.unwrap() >= patch.arrived);
        assert_eq!(scene.proxy.requests()[0].outcome, Outcome::Answered(200));
        assert_eq!(scene.proxy.requests_like(&Match::method(Method::GET)).len(), 0);
    }
}

#[tokio::test]
async fn a_lost_answer_was_applied() {
    for http in [Http::One, Http::Two] {
        for cut in [Cut::Stream, Cut::Connection] {
            let scene = Scene::set(http).await;
            let rule = scene.proxy.on(Match::node_patches()).times(1).then(Fault::LoseAnswer(cut));
            assert!(assign(&scene.client, "n-0", "10.0.0.0/24").await.is_err());
            rule.hit(1).await;
            assert_eq!(scene.cidr("n-0").await.as_deref(), Some("10.0.0.0/24"));
            let patch = &scene.proxy.requests_like(&Match::node_patches())[0];
            assert_eq!((patch.outcome, patch.upstream_status), (Outcome::Cut, Some(200)));
            // The rule is used up, and the client gets a connection again.
            assign(&scene.client, "n-0", "10.0.0.0/24").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_reset_request_was_not_applied() {
    for http in [Http::One, Http::Two] {
        for cut in [Cut::Stream, Cut::Connection] {
            let scene = Scene::set(http).await;
            scene.proxy.on(Match::node_patches()).times(1).then(Fault::Reset(cut));
            assert!(assign(&scene.client, "n-0", "10.0.0.0/24").await.is_err());
            assert_eq!(scene.cidr("n-0").await, None);
            let patch = &scene.proxy.requests_like(&Match::node_patches())[0];
            assert_eq!((patch.outcome, patch.upstream_status), (Outcome::Cut, None));
        }
    }
}

#[tokio::test]
async fn a_cut_stream_spares_its_neighbours_a_cut_connection_takes_them_along() {
    for (cut, spared) in [(Cut::Stream, true), (Cut::Connection, false)] {
        let scene = Scene::set(Http::Two).await;
        let hold = scene.proxy.on(Match::node_patches().path("/api/v1/nodes/n-1")).hold();
        let neighbour = {
            let client = scene.client.clone();
            tokio::spawn(async move { assign(&client, "n-1", "10.0.1.0/24").await })
        };
        hold.arrived(1).await;
        scene.proxy.on(Match::node_patches()).times(1).then(Fault::Reset(cut));
        assert!(assign(&scene.client, "n-0", "10.0.0.0/24").await.is_err());
        hold.release();
        assert_eq!(neighbour.await.unwrap().is_ok(), spared, "{cut:?}");
    }
}

#[tokio::test]
async fn a_made_up_answer_reaches_the_client_only() {
    let scene = Scene::set(Http::Two).await;
    let busy = Canned::status(429).retry_after(3);
    scene.proxy.on(Match::node_patches()).times(1).then(Fault::Answer(busy));
    let (head, status) = assign(&scene.client, "n-0", "10.0.0.0/24").await.unwrap();
    assert_eq!(
        (head.status, &head.headers["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &"3".parse().unwrap())
    );
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(429)));
    assert_eq!(scene.cidr("n-0").await, None);

    let late = Canned::status(504).because("ServerTimeout", "too late");
    scene.proxy.on(Match::node_patches()).times(1).then(Fault::ReplaceAnswer(late));
    let (head, status) = assign(&scene.client, "n-0", "10.0.0.0/24").await.unwrap();
    assert_eq!(
        (head.status, &status["reason"]),
        (StatusCode::GATEWAY_TIMEOUT, &json!("ServerTimeout"))
    );
    assert_eq!(scene.cidr("n-0").await.as_deref(), Some("10.0.0.0/24"));
}

#[tokio::test]
async fn rules_count_and_the_oldest_acts_first() {
    let scene = Scene::set(Http::Two).await;
    let third = scene.proxy.on(Match::node_gets()).skip(2).times(1).then(Fault::status(500));
    let rest = scene.proxy.on(Match::node_gets()).then(Fault::status(503));
    let mut codes = Vec::new();
    for _ in 0..4 {
        let (head, _) = get(&scene.client, "/api/v1/nodes/n-0").await.unwrap();
        codes.push(head.status.as_u16());
    }
    assert_eq!(codes, [503, 503, 500, 503]);
    assert_eq!((third.hits(), rest.hits()), (1, 3));
    rest.remove();
    let (head, _) = get(&scene.client, "/api/v1/nodes/n-0").await.unwrap();
    assert_eq!(head.status, StatusCode::OK);
}

#[tokio::test]
async fn a_held_request_has_not_happened_a_held_answer_has() {
    let scene = Scene::set(Http::Two).await;
    let patch = |node: &'static str, cidr: &'static str| {
        let client = scene.client.clone();
        tokio::spawn(async move { assign(&client, node, cidr).await.map(|(head, _)| head.status) })
    };
    let before = scene.proxy.on(Match::node_patches()).times(1).hold();
    let held = patch("n-0", "10.0.0.0/24");
    before.arrived(1).await;
    assert_eq!(scene.cidr("n-0").await, None);
    before.release();
    assert_eq!(held.await.unwrap().unwrap(), StatusCode::OK);

    let after = scene.proxy.on(Match::node_patches()).times(1).hold_answer();
    let held = patch("n-1", "10.0.1.0/24");
    after.arrived(1).await;
    assert_eq!(scene.cidr("n-1").await.as_deref(), Some("10.0.1.0/24"));
    assert!(!held.is_finished());
    after.release();
    assert_eq!(held.await.unwrap().unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn delays_come_before_or_after_the_deed() {
    let scene = Scene::set(Http::Two).await;
    let time = Duration::from_millis(300);
    for (fault, applied_early) in
        [(Fault::DelayBefore(time), false), (Fault::DelayAfter(time), true)]
    {
        scene.proxy.on(Match::node_patches()).times(1).then(fault);
        let node = if applied_early { "n-1" } else { "n-0" };
        let cidr = if applied_early { "10.0.1.0/24" } else { "10.0.0.0/24" };
        assign(&scene.client, node, cidr).await.unwrap();
        let answered = std::time::Instant::now();
        let patch = scene.proxy.node_patches().pop().unwrap();
        let applied = patch.settled.unwrap();
        let delayed = if applied_early { answered - applied } else { applied - patch.arrived };
        assert!(delayed >= time, "applied early: {applied_early}, delayed by {delayed:?}");
    }
}

#[tokio::test]
async fn a_frozen_proxy_answers_no_request_until_it_thaws() {
    for http in [Http::One, Http::Two] {
        let scene = Scene::set(http).await;
        get(&scene.client, "/version").await.unwrap(); // the connection is warm
        scene.proxy.freeze();
        let newcomer = client(scene.proxy.kubeconfig(), http).await;
        for client in [&scene.client, &newcomer] {
            let answer = timeout(Duration::from_millis(300), get(client, "/version")).await;
            assert!(answer.is_err(), "a frozen proxy has answered");
        }
        let seen = scene.proxy.requests().len();
        assert_eq!(seen, 1, "a frozen proxy has read a request");
        let waiting = {
            let client = scene.client.clone();
            tokio::spawn(async move { get(&client, "/version").await.is_ok() })
        };
        scene.proxy.thaw();
        assert!(waiting.await.unwrap());
        get(&newcomer, "/version").await.unwrap();
    }
}

#[tokio::test]
async fn a_list_from_the_past_shows_nodes_that_are_gone() {
    let scene = Scene::set(Http::Two).await;
    let past = scene.proxy.snapshot("/api/v1/nodes").await;
    delete_nodes(&scene.direct, ["n-0"]).await;
    mk_node("later").create(&scene.direct).await;
    scene.proxy.on(Match::node_lists()).times(1).then(Fault::Past(past.clone()));

    let (_, list) = get(&scene.client, "/api/v1/nodes?limit=500").await.unwrap();
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|node| &node["metadata"]["name"]).collect();
    assert_eq!(names, ["n-0", "n-1", "n-2", "n-3"]);
    assert_eq!(list["metadata"]["resourceVersion"], past.resource_version());
    let (_, list) = get(&scene.client, "/api/v1/nodes?limit=500").await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 4);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    assert_ne!(version, past.resource_version());
    drop(scene.cluster);
}
