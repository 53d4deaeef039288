//! Watches that break their contract: events doubled, out of order, or skipped.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::Session;
use crate::comparison::ALL_APART;
use crate::informer::tests::{Fixture, start};
use crate::testing::{Call, Wire, node};

/// An informer that has seen version 20, with Nodes `a` and `b`.
async fn at_twenty() -> (Fixture, Wire) {
    let mut run = start();
    let wire = run.server.serve_list(20, &[node("a", 10), node("b", 20)]).await;
    assert_eq!(run.deltas.next(2).await, ["added a@10", "added b@20"]);
    (run, wire)
}

/// Lists again; the cache then shows what the server has.
async fn lists_once(run: &mut Fixture, version: u64, objects: &[Value]) -> Wire {
    let wire = run.server.streamed_list().await;
    assert!(run.informer.is_doubted(), "what others must not get is not given out meanwhile");
    let wire = serve(wire, version, objects);
    let informer = run.informer.clone();
    let trusted = async move {
        while informer.is_doubted() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(9), trusted).await.expect("one list must do");
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 2");
    run.assert_metric("icm_informer_relist_total{cause=\"untrusted\",resource=\"nodes\"} 1");
    wire
}

fn serve(call: Call, version: u64, objects: &[Value]) -> Wire {
    let wire = call.stream();
    for object in objects {
        wire.event("ADDED", object);
    }
    wire.end_of_list(version);
    wire
}

/// Answers a comparison of numbers.
fn count(call: Call, version: u64, objects: u64) {
    assert_eq!((call.get("limit"), call.get("resourceVersion")), (Some("1"), Some("30")));
    let metadata = json!({"resourceVersion": version.to_string(), "continue": "more",
        "remainingItemCount": objects - 1});
    call.json(200, &json!({"metadata": metadata, "items": [node("a", 10)]}));
}

/// Answers a comparison of all objects, which follows another number than expected.
async fn show(run: &mut Fixture, objects: &[Value]) {
    let call = run.server.comparison().await;
    assert_eq!((call.get("limit"), call.get("resourceVersion")), (Some("500"), Some("30")));
    call.page(30, "", objects);
}

/// Ends a watch, which has said that the server is at version 30.
async fn ends_at_thirty(run: &mut Fixture, wire: Wire) -> Wire {
    wire.bookmark(30);
    drop(wire);
    run.server.watch_from("30").await.stream()
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_twice_at_once_is_taken_once() {
    let (mut run, wire) = at_twenty().await;
    for (kind, version) in [("MODIFIED", 21), ("DELETED", 22), ("ADDED", 23)] {
        for _ in 0..2 {
            wire.event(kind, &node("a", version));
        }
    }
    let want = ["updated a@10-21", "deleted a@22", "added a@23"];
    assert_eq!(run.deltas.next(3).await, want);
    drop(wire);
    run.server.watch_from("23").await;
    assert!(run.deltas.is_empty());
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

/// etcd#15271
#[tokio::test(start_paused = true)]
async fn watch_that_goes_back() {
    let (mut run, wire) = at_twenty().await;
    let session = Session::new();
    let _user = run.informer.in_session(session.clone()).subscribe(|_| {});
    wire.event("DELETED", &node("b", 22));
    assert_eq!(run.deltas.next(1).await, ["deleted b@22"]);
    let went_back = Instant::now();
    // The deletion came before the change that it followed.
    wire.event("MODIFIED", &node("b", 21));
    let _wire = lists_once(&mut run, 22, &[node("a", 10)]).await;
    assert!(went_back.elapsed() < Duration::from_secs(1), "{:?}", went_back.elapsed());
    assert_eq!(run.store(), ["a@10"]);
    assert!(run.deltas.is_empty(), "an object that was deleted does not come back");
    assert!(!session.has_ended());
    assert!(wire.is_abandoned());
}

/// etcd#15220
#[tokio::test(start_paused = true)]
async fn mark_ahead_of_events() {
    let (mut run, wire) = at_twenty().await;
    wire.bookmark(30);
    wire.event("ADDED", &node("c", 25));
    let _wire = lists_once(&mut run, 30, &[node("a", 10), node("b", 20), node("c", 25)]).await;
    assert_eq!(run.deltas.next(1).await, ["added c@25"]);
    assert_eq!(run.store(), ["a@10", "b@20", "c@25"]);
}

/// etcd#17529, etcd#18089, etcd#19179
#[tokio::test(start_paused = true)]
async fn skipped_delete_is_found() {
    let (mut run, wire) = at_twenty().await;
    let session = Session::new();
    let _user = run.informer.in_session(session.clone()).subscribe(|_| {});
    let _next = ends_at_thirty(&mut run, wire).await;
    count(run.server.comparison().await, 30, 1);
    show(&mut run, &[node("a", 10)]).await;
    let _wire = lists_once(&mut run, 31, &[node("a", 10)]).await;
    assert_eq!(run.deltas.next(1).await, ["deleted b@20"]);
    assert!(!session.has_ended());
}

#[tokio::test(start_paused = true)]
async fn an_addition_that_was_skipped_is_found_at_the_end_of_the_watch() {
    let (mut run, wire) = at_twenty().await;
    let session = Session::new();
    let _user = run.informer.in_session(session.clone()).subscribe(|_| {});
    let _next = ends_at_thirty(&mut run, wire).await;
    count(run.server.comparison().await, 30, 3);
    show(&mut run, &[node("a", 10), node("b", 20), node("c", 25)]).await;
    let _wire = lists_once(&mut run, 30, &[node("a", 10), node("b", 20), node("c", 25)]).await;
    assert_eq!(run.deltas.next(1).await, ["added c@25"]);
    assert!(!session.has_ended(), "a skipped event is no other history");
}

/// A list that lacks a version which was shown is not explained by a skipped event.
#[tokio::test(start_paused = true)]
async fn a_list_that_takes_back_what_an_untrusted_watch_showed_is_another_history() {
    let (mut run, wire) = at_twenty().await;
    let session = Session::new();
    let _user = run.informer.in_session(session.clone()).subscribe(|_| {});
    wire.event("MODIFIED", &node("b", 22));
    run.deltas.next(1).await;
    wire.event("MODIFIED", &node("b", 21));
    for _ in 0..2 {
        let call = run.server.streamed_list().await;
        let _wire = serve(call, 40, &[node("a", 10), node("b", 20)]);
        sleep(Duration::from_millis(1)).await;
    }
    timeout(Duration::from_secs(9), session.ended()).await.expect("sessions must end");
    assert_eq!(run.store(), ["a@10", "b@20"]);
}

/// The number is a hint: no answer, or an answer for another version, decides nothing.
#[tokio::test(start_paused = true)]
async fn an_equal_or_unknown_number_of_objects_is_no_reason_to_list() {
    let (mut run, mut wire) = at_twenty().await;
    for answer in 0..4 {
        wire = ends_at_thirty(&mut run, wire).await;
        let call = run.server.comparison().await;
        match answer {
            0 => count(call, 30, 2),
            1 => count(call, 31, 3),
            2 => call.page(30, "more", &[node("a", 10)]),
            _ => call.refuse(410, "Expired"),
        }
        sleep(Duration::from_millis(1)).await;
    }
    wire.event("ADDED", &node("c", 31));
    assert_eq!(run.deltas.next(1).await, ["added c@31"]);
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

/// kine#271: a server that counts two objects in any collection.
#[tokio::test(start_paused = true)]
async fn a_wrong_number_with_equal_objects_is_no_reason_to_list() {
    let (mut run, wire) = at_twenty().await;
    let wire = ends_at_thirty(&mut run, wire).await;
    count(run.server.comparison().await, 30, 7);
    show(&mut run, &[node("a", 10), node("b", 20)]).await;
    sleep(Duration::from_millis(1)).await;
    wire.event("ADDED", &node("c", 31));
    assert_eq!(run.deltas.next(1).await, ["added c@31"]);
    assert!(!run.informer.is_doubted());
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

/// Ends watches every ten minutes until all objects are compared.
async fn compares_all(run: &mut Fixture, mut wire: Wire) -> (Call, Wire) {
    loop {
        advance(Duration::from_secs(600)).await;
        wire = ends_at_thirty(run, wire).await;
        let call = run.server.comparison().await;
        if call.get("limit") == Some("500") {
            return (call, wire);
        }
        count(call, 30, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_comparison_of_all_objects_that_fails_is_repeated_as_late_as_one_that_succeeds() {
    let (mut run, wire) = at_twenty().await;
    let (call, wire) = compares_all(&mut run, wire).await;
    let begun = Instant::now();
    call.refuse(429, "TooManyRequests");
    let (_call, _wire) = compares_all(&mut run, wire).await;
    assert!(begun.elapsed() >= ALL_APART, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_skipped_is_found_within_an_hour() {
    let (mut run, wire) = at_twenty().await;
    let begun = Instant::now();
    let (call, _next) = compares_all(&mut run, wire).await;
    assert!(begun.elapsed() <= Duration::from_secs(3600), "{:?}", begun.elapsed());
    assert!(call.accept().contains("as=PartialObjectMetadataList"));
    call.page(30, "token", &[node("a", 10)]);
    let page = run.server.page().await;
    assert_eq!((page.get("continue"), page.get("resourceVersion")), (Some("token"), None));
    page.page(30, "", &[node("b", 25)]);
    let _wire = lists_once(&mut run, 30, &[node("a", 10), node("b", 25)]).await;
    assert_eq!(run.deltas.next(1).await, ["updated b@20-25"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_equals_the_server_is_compared_once_an_hour_without_a_list() {
    let (mut run, mut wire) = at_twenty().await;
    for _ in 0..2 {
        let begun = Instant::now();
        let (call, next) = compares_all(&mut run, wire).await;
        assert!(begun.elapsed() >= Duration::from_secs(3000), "{:?}", begun.elapsed());
        call.page(30, "", &[node("b", 20), node("a", 10)]);
        wire = next;
        sleep(Duration::from_millis(1)).await;
    }
    assert!(!run.informer.is_doubted() && run.deltas.is_empty());
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}
