//! Objects that cannot be decoded: strict and tolerant collections, protobuf and JSON
//! (rule:strict-or-tolerant).

use std::time::Duration;

use kube_api::{Metadata, StaticKind};
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::informer::tests::{PRODUCT, metrics_of, start};
use crate::request::Format;
use crate::testing::{Server, node};
use crate::{Informer, InformerMetrics, Source};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A tolerant informer with its server and metrics.
struct Tolerant {
    server: Server,
    informer: Informer<Metadata>,
    registry: Registry,
}

fn tolerant() -> Tolerant {
    let (client, server) = Server::new();
    let registry = Registry::new();
    let metrics = InformerMetrics::new(&registry, PRODUCT).unwrap();
    let source = Source::new(crate::Server::own(client), kube_api::Node::KIND);
    let informer = Informer::<Metadata>::new(source, &metrics, Format::Protobuf);
    let running = informer.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    Tolerant { server, informer, registry }
}

impl Tolerant {
    fn store(&self) -> Vec<String> {
        self.informer.frozen(|objects| {
            let told = |object: &std::sync::Arc<Metadata>| {
                format!("{}@{}", object.key, object.resource_version)
            };
            let mut all: Vec<_> = objects.values().map(told).collect();
            all.sort();
            all
        })
    }

    fn undecodable(&self) -> String {
        let text = metrics_of(&self.registry);
        let name = "icm_informer_undecodable_objects_total{resource=\"nodes\"} ";
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("absent").to_owned()
    }

    /// Everything that was sent has been taken in.
    async fn settled(&self) {
        sleep(Duration::from_millis(10)).await;
    }
}

/// A Node whose labels are not text.
fn broken(name: &str, version: u64) -> Value {
    let mut node = node(name, version);
    node["metadata"]["labels"] = json!({"tier": 7});
    node
}

#[tokio::test(start_paused = true)]
async fn a_tolerant_streamed_list_skips_what_it_cannot_read_and_counts_it() {
    let mut run = tolerant();
    let _wire = run.server.serve_list(5, &[node("a", 1), broken("b", 2), node("c", 3)]).await;
    run.informer.synced().await;
    assert_eq!(run.store(), ["a@1", "c@3"]);
    assert_eq!(run.undecodable(), "1");
    assert_eq!(run.informer.blocked(), None);
}

#[tokio::test(start_paused = true)]
async fn a_tolerant_page_skips_what_it_cannot_read() {
    let mut run = tolerant();
    run.server.streamed_list().await.refuse(400, "BadRequest");
    run.server.page().await.page(5, "", &[node("a", 1), broken("b", 2), node("c", 3)]);
    run.informer.synced().await;
    assert_eq!((run.store(), run.undecodable()), (vec!["a@1".into(), "c@3".into()], "1".into()));
}

#[tokio::test(start_paused = true)]
async fn the_last_good_copy_stays_until_the_object_can_be_read_or_is_gone() {
    let mut run = tolerant();
    let wire = run.server.serve_list(5, &[node("a", 1), node("b", 2)]).await;
    wire.event("MODIFIED", &broken("a", 6));
    wire.event("MODIFIED", &broken("a", 7));
    run.settled().await;
    assert_eq!((run.store(), run.undecodable()), (vec!["a@1".into(), "b@2".into()], "2".into()));
    // Also through a list, in which it stands.
    wire.error(410, "Expired");
    let wire = run.server.serve_list(9, &[broken("a", 7), node("b", 2)]).await;
    run.settled().await;
    assert_eq!(run.store(), ["a@1", "b@2"]);
    wire.event("MODIFIED", &node("a", 10));
    run.settled().await;
    assert_eq!(run.store(), ["a@10", "b@2"]);
    wire.event("DELETED", &broken("b", 11));
    run.settled().await;
    assert_eq!(run.store(), ["a@10"], "its deletion can be understood");
    drop(wire);
    run.server.watch_from("11").await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_that_a_later_list_does_not_have_is_named_again_when_it_is_back() {
    for paged in [false, true] {
        let mut run = tolerant();
        let wire = run.server.serve_list(5, &[broken("a", 1), broken("b", 2)]).await;
        run.informer.synced().await;
        assert_eq!(run.informer.cache.shared.unreadables.named().len(), 2);
        // "b" is deleted while there is no watch.
        wire.error(410, "Expired");
        let _wire = if paged {
            run.server.streamed_list().await.refuse(400, "BadRequest");
            run.server.page().await.page(9, "", &[broken("a", 1)]);
            None
        } else {
            Some(run.server.serve_list(9, &[broken("a", 1)]).await)
        };
        run.settled().await;
        assert_eq!(run.informer.cache.shared.unreadables.named(), ["a".into()]);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_not_counted_while_one_cannot_be_read() {
    for (second, is_compared) in [(node("b", 2), true), (broken("b", 2), false)] {
        let mut run = tolerant();
        let wire = run.server.serve_list(5, &[node("a", 1), second]).await;
        assert_eq!(run.server.compares_between_watches("5", wire).await, is_compared);
    }
}

#[tokio::test(start_paused = true)]
async fn the_copy_of_a_namesake_is_not_kept() {
    let mut run = tolerant();
    let wire = run.server.serve_list(5, &[node("a", 1)]).await;
    run.informer.synced().await;
    wire.error(410, "Expired");
    let mut another = broken("a", 7);
    another["metadata"]["uid"] = json!("another");
    let _wire = run.server.serve_list(9, &[another]).await;
    run.settled().await;
    assert!(run.store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_strict_collection_waits_and_names_the_object() {
    for paged in [false, true] {
        let mut run = start();
        let mut bad = node("worker-3", 2);
        bad["spec"]["podCIDRs"] = json!([7]);
        let objects = [node("a", 1), bad];
        if paged {
            run.server.streamed_list().await.refuse(400, "BadRequest");
            run.server.page().await.page(5, "", &objects);
        } else {
            drop(run.server.serve_list(5, &objects).await);
        }
        let again = run.server.call().await;
        assert!(!run.informer.is_synced() && run.deltas.is_empty());
        let blocked = run.informer.blocked().unwrap();
        assert!(blocked.contains("cannot read object \"worker-3\""), "{blocked}");
        if paged {
            again.page(6, "", &[node("a", 1), node("worker-3", 6)]);
        } else {
            let wire = again.stream();
            wire.event("ADDED", &node("worker-3", 6));
            wire.end_of_list(6);
            run.deltas.next(1).await;
            assert_eq!(run.informer.blocked(), None);
            continue;
        }
        run.deltas.next(2).await;
        assert_eq!(run.informer.blocked(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn protobuf_that_cannot_be_read_is_asked_for_in_json_at_once_and_from_then_on() {
    let mut run = start();
    let call = run.server.streamed_list().await;
    assert!(call.accept().starts_with(PROTOBUF), "{}", call.accept());
    let wire = call.stream_of(PROTOBUF);
    let began = Instant::now();
    wire.raw(&b"\0\0\0\x03abc"[..]);
    let call = run.server.streamed_list().await;
    assert_eq!((call.at, call.accept()), (began, "application/json"));
    let wire = call.stream();
    wire.event("ADDED", &node("a", 1));
    wire.end_of_list(5);
    assert_eq!(run.deltas.next(1).await, ["added a@1"]);
    drop(wire);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(run.server.call().await.accept(), "application/json");
}

#[tokio::test(start_paused = true)]
async fn protobuf_in_answer_to_a_request_for_json_is_a_failure_that_is_waited_after() {
    let mut run = start();
    run.server.streamed_list().await.stream_of(PROTOBUF).raw(&b"\0\0\0\x03abc"[..]);
    let mut call = run.server.streamed_list().await;
    for _ in 0..3 {
        let asked = call.at;
        call.stream_of(PROTOBUF).raw(&b"\0\0\0\x03abc"[..]);
        call = run.server.streamed_list().await;
        assert_eq!(call.accept(), "application/json");
        assert!(call.at - asked >= Duration::from_millis(100), "{:?}", call.at - asked);
    }
    assert!(run.informer.blocked().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_protobuf_page_and_event_that_cannot_be_read_are_asked_for_in_json() {
    let mut run = start();
    run.server.streamed_list().await.refuse(400, "BadRequest");
    run.server.page().await.body(PROTOBUF, "nonsense");
    let page = run.server.page().await;
    assert_eq!(page.accept(), "application/json");
    page.page(5, "", &[node("a", 1)]);
    run.deltas.next(1).await;

    let mut run = start();
    let wire = run.server.serve_list(5, &[node("a", 1)]).await;
    wire.bookmark(6);
    drop(wire);
    let wire = run.server.watch_from("6").await.stream_of(PROTOBUF);
    wire.raw(&b"\0\0\0\x03abc"[..]);
    assert_eq!(run.server.streamed_list().await.accept(), "application/json");
    run.assert_metric("icm_informer_relist_total{cause=\"undecodable\",resource=\"nodes\"} 1");
}
