//! Watches through the proxy: unbuffered, ended in every way a server ends them, stalled, and
//! begun in the past.

use std::time::Duration;

use bytes::BytesMut;
use futures::{Stream, StreamExt as _};
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tests::fault_proxy::Canned;
use tests::{Fault, Match, delete_nodes, mk_node};
use tokio::time::timeout;

use crate::faults::{Http, Scene, get};

const LIMIT: Duration = tests::PATIENCE;

/// Events of a watch, one by one; `None` at a clean end, an error at any other.
struct Watch {
    body: std::pin::Pin<Box<dyn Stream<Item = anyhow::Result<bytes::Bytes>> + Send>>,
    buffer: BytesMut,
}

impl Watch {
    async fn open(client: &Client, query: &str) -> Self {
        let path = format!("/api/v1/nodes?watch=true&{query}");
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        assert!(response.status().is_success());
        let body = http_body_util::BodyStream::new(response.into_body())
            .map(|frame| Ok(frame.map_err(anyhow::Error::from)?.into_data().unwrap_or_default()));
        Self { body: Box::pin(body), buffer: BytesMut::new() }
    }

    /// Starts a watch that begins now.
    async fn from_now(scene: &Scene) -> Self {
        let (_, list) = get(&scene.direct, "/api/v1/nodes?limit=1").await.unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        Self::open(&scene.client, &format!("resourceVersion={version}")).await
    }

    async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(serde_json::from_slice(&self.buffer.split_to(end + 1))?));
            }
            match timeout(LIMIT, self.body.next()).await? {
                Some(data) => self.buffer.extend_from_slice(&data?),
                None => return Ok(None),
            }
        }
    }

    /// Type and node name of the next event.
    async fn next_name(&mut self) -> (String, String) {
        let event = self.next().await.unwrap().expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

fn added(name: &str) -> (String, String) {
    ("ADDED".to_owned(), name.to_owned())
}

#[tokio::test]
async fn events_pass_one_by_one_and_closing_is_a_clean_end() {
    for http in [Http::One, Http::Two] {
        let scene = Scene::set(http).await;
        let mut watch = Watch::from_now(&scene).await;
        for name in ["a", "b"] {
            mk_node(name).create(&scene.direct).await;
            assert_eq!(watch.next_name().await, added(name));
        }
        assert_eq!(scene.proxy.watches("/api/v1/nodes").count(), 1);
        assert_eq!(scene.proxy.watches("/api/v1/pods").count(), 0);
        scene.proxy.close_watches();
        assert!(watch.next().await.unwrap().is_none());
        assert_eq!(scene.proxy.watches("").count(), 0);
    }
}

#[tokio::test]
async fn a_cut_watch_ends_with_an_error() {
    for http in [Http::One, Http::Two] {
        let scene = Scene::set(http).await;
        let mut watch = Watch::from_now(&scene).await;
        scene.proxy.watches("").cut();
        assert!(watch.next().await.is_err());
    }
}

#[tokio::test]
async fn an_expired_watch_says_410_and_ends() {
    let scene = Scene::set(Http::Two).await;
    let mut watch = Watch::from_now(&scene).await;
    scene.proxy.watches("").expire();
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(watch.next().await.unwrap().is_none());

    scene.proxy.on(Match::node_watches()).times(1).then(Fault::status(410));
    let (head, status) =
        get(&scene.client, "/api/v1/nodes?watch=true&resourceVersion=1").await.unwrap();
    assert_eq!((head.status.as_u16(), &status["reason"]), (410, &json!("Expired")));
}

/// The server's own words, against which the product's decoder is proven.
#[tokio::test]
async fn a_made_up_status_in_protobuf_is_byte_for_byte_what_the_server_would_send() {
    let scene = Scene::set(Http::Two).await;
    let ask = async || {
        let request = Request::get("/api/v1/nodes/none")
            .header("accept", "application/vnd.kubernetes.protobuf")
            .body(Body::empty());
        let answer = scene.client.send(request.unwrap()).await.unwrap();
        let kind = answer.headers()["content-type"].clone();
        (kind, answer.into_body().collect_bytes().await.unwrap())
    };
    let real = ask().await;
    let made_up = Canned::status(404)
        .because("NotFound", "nodes \"none\" not found")
        .details(json!({"name": "none", "kind": "nodes"}));
    scene.proxy.on(Match::node_gets()).times(1).then(Fault::Answer(made_up));
    assert_eq!(ask().await, real);
}

#[tokio::test]
async fn a_stalled_watch_delivers_its_events_later() {
    let scene = Scene::set(Http::Two).await;
    let mut watch = Watch::from_now(&scene).await;
    let stalled = scene.proxy.watches("/api/v1/nodes");
    stalled.stall();
    let mut other = Watch::from_now(&scene).await; // opened later: goes on
    mk_node("a").create(&scene.direct).await;
    assert_eq!(other.next_name().await, added("a"));
    let silent = timeout(Duration::from_millis(200), watch.next()).await;
    assert!(silent.is_err(), "a stalled watch has spoken");
    stalled.resume();
    assert_eq!(watch.next_name().await, added("a"));
}

#[tokio::test]
async fn a_watch_from_the_past_begins_there_and_catches_up() {
    let scene = Scene::set(Http::Two).await;
    let past = scene.proxy.snapshot("/api/v1/nodes").await;
    delete_nodes(&scene.direct, ["n-0"]).await;
    mk_node("later").create(&scene.direct).await;
    scene.proxy.on(Match::node_lists()).times(1).then(Fault::Past(past));

    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::open(&scene.client, query).await;
    for name in ["n-0", "n-1", "n-2", "n-3"] {
        assert_eq!(watch.next_name().await, added(name));
    }
    let mark = watch.next().await.unwrap().unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["kind"], "Node");
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(watch.next_name().await, ("DELETED".to_owned(), "n-0".to_owned()));
    assert_eq!(watch.next_name().await, added("later"));
}
