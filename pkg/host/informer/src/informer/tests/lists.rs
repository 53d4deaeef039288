//! Lists: what they ask for, when they are applied, and when they are not.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::informer::tests::{Deltas, start};
use crate::testing::{Call, Wire, node, node_with_uid};

#[tokio::test(start_paused = true)]
async fn the_first_list_is_streamed_and_consistent() {
    let mut run = start();
    let call = run.server.call().await;
    assert_eq!(call.path(), "/api/v1/nodes");
    for (parameter, value) in [
        ("watch", Some("true")),
        ("sendInitialEvents", Some("true")),
        ("resourceVersionMatch", Some("NotOlderThan")),
        ("allowWatchBookmarks", Some("true")),
        ("resourceVersion", None),
    ] {
        assert_eq!(call.get(parameter), value, "{parameter}");
    }
    let lifetime: u64 = call.get("timeoutSeconds").unwrap().parse().unwrap();
    assert!((300..=600).contains(&lifetime), "{lifetime}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_delivered_before_the_list_is_complete() {
    let mut run = start();
    let wire = run.server.streamed_list().await.stream();
    wire.event("ADDED", &node("a", 1));
    wire.event("ADDED", &node("b", 2));
    wire.bookmark(2);
    sleep(Duration::from_secs(10)).await;
    assert!(run.deltas.is_empty() && run.informer.is_empty() && !run.informer.is_synced());
    wire.end_of_list(5);
    assert_eq!(run.deltas.next_sorted(2).await, ["added a@1", "added b@2"]);
    run.informer.synced().await;
    assert!(run.informer.is_synced());
}

/// cilium#21482
#[tokio::test(start_paused = true)]
async fn a_list_counts_only_when_every_handler_has_handled_all_of_it() {
    let mut run = start();
    let (informer, handled) = (run.informer.clone(), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&handled);
    let _second = run.informer.subscribe(move |_| log.lock().push(informer.is_synced()));
    let _wire = run.server.serve_list(5, &[node("a", 1), node("b", 2)]).await;
    run.informer.synced().await;
    assert_eq!(*handled.lock(), [false; 4], "the start, two Nodes, and the end of the list");
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_streamed_list_are_part_of_it() {
    let mut run = start();
    let wire = run.server.streamed_list().await.stream();
    wire.event("ADDED", &node("a", 1));
    wire.event("ADDED", &node("b", 2));
    wire.event("MODIFIED", &node("a", 3));
    wire.event("DELETED", &node("b", 4));
    wire.end_of_list(5);
    assert_eq!(run.deltas.next(1).await, ["added a@3"]);
    run.informer.synced().await;
    assert_eq!(run.store(), ["a@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_subscriber_sees_everything_and_then_each_change() {
    let mut run = start();
    let wire = run.server.serve_list(2, &[node("a", 1), node("b", 2)]).await;
    run.deltas.next(2).await;
    wire.event("DELETED", &node("b", 3));
    run.deltas.next(1).await;
    let mut late = Deltas::of(&run.informer);
    assert_eq!(late.next(1).await, ["added a@1"]);
    wire.event("MODIFIED", &node("a", 4));
    wire.event("DELETED", &node("a", 5));
    assert_eq!(late.next(2).await, ["updated a@1-4", "deleted a@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_what_vanished_changed_and_came() {
    let mut run = start();
    let first = [node("same", 1), node("changed", 2), node("gone", 3), node("reborn", 4)];
    let wire = run.server.serve_list(9, &first).await;
    run.deltas.next(4).await;
    let before = run.informer.get("same").unwrap();
    wire.error(410, "Expired");
    let reborn = node_with_uid("reborn", "another", 12);
    let second = [node("same", 1), node("changed", 10), node("new", 11), reborn];
    let _wire = run.server.serve_list(20, &second).await;
    let deltas = run.deltas.next(5).await;
    assert_eq!(deltas[0], "deleted gone@3", "deletions free what additions may need");
    let at = |wanted: &str| deltas.iter().position(|found| found == wanted).expect(wanted);
    assert_eq!(at("added reborn@12"), at("deleted reborn@4") + 1);
    at("updated changed@2-10");
    at("added new@11");
    assert_eq!(run.store(), ["changed@10", "new@11", "reborn@12", "same@1"]);
    let after = run.informer.get("same").unwrap();
    assert!(Arc::ptr_eq(&before, &after), "an unchanged object is held once");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_from_the_past_is_never_applied() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[node("a", 1)]).await;
    wire.event("ADDED", &node("b", 15));
    run.deltas.next(2).await;
    wire.error(410, "Expired");
    // A lagging server knows nothing of b yet; applied, that would be its deletion.
    for _ in 0..2 {
        drop(run.server.serve_list(14, &[node("a", 1)]).await);
    }
    drop(run.server.serve_list(16, &[node("a", 1), node("b", 15), node("c", 16)]).await);
    assert_eq!(run.deltas.next(1).await, ["added c@16"]);
    assert_eq!(run.store(), ["a@1", "b@15", "c@16"]);
    run.assert_metric("icm_informer_watch_errors_total{reason=\"past\",resource=\"nodes\"} 2");
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_from_the_past_is_never_applied() {
    let mut run = start();
    run.server.streamed_list().await.refuse(400, "BadRequest");
    run.server.call().await.page(10, "", &[node("a", 1), node("b", 2)]);
    run.deltas.next(2).await;
    run.server.watch_from("10").await.refuse(410, "Expired");
    run.server.call().await.page(9, "", &[node("a", 1)]);
    run.server.call().await.page(11, "", &[node("a", 1)]);
    assert_eq!(run.deltas.next(1).await, ["deleted b@2"]);
    run.assert_metric("icm_informer_watch_errors_total{reason=\"past\",resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_read_in_pages_from_then_on() {
    let mut run = start();
    run.server.streamed_list().await.refuse(422, "Invalid");
    let first = run.server.call().await;
    for (parameter, value) in
        [("limit", Some("500")), ("continue", None), ("resourceVersion", None), ("watch", None)]
    {
        assert_eq!(first.get(parameter), value, "{parameter}");
    }
    first.page(10, "a+b/c=", &[node("a", 1)]);
    let second = run.server.call().await;
    assert_eq!(second.get("continue"), Some("a+b/c="));
    assert_eq!(second.get("limit"), Some("500"));
    second.page(10, "", &[node("b", 2)]);
    assert_eq!(run.deltas.next_sorted(2).await, ["added a@1", "added b@2"]);
    run.server.watch_from("10").await.refuse(410, "Gone");
    let again = run.server.call().await;
    assert_eq!(again.get("limit"), Some("500"), "the refusal must be remembered");
}

#[tokio::test(start_paused = true)]
async fn an_internal_error_turns_one_list_to_pages() {
    for inside in [true, false] {
        let mut run = start();
        let call = run.server.streamed_list().await;
        if inside {
            let wire = call.stream();
            wire.event("ADDED", &node("half", 1));
            wire.error(500, "InternalError");
        } else {
            call.refuse(500, "InternalError");
        }
        let refused = Instant::now();
        let page = run.server.call().await;
        assert_eq!((page.at, page.get("limit")), (refused, Some("500")), "at once");
        page.page(10, "", &[node("a", 1)]);
        assert_eq!(run.deltas.next(1).await, ["added a@1"]);
        run.server.watch_from("10").await.refuse(410, "Expired");
        run.server.streamed_list().await;
    }
}

type Break = fn(Call) -> Option<Wire>;

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_breaks_in_whatever_way_is_followed_by_pages_at_once() {
    let ways: [(&str, Break); 7] = [
        ("no answer", |call| {
            drop(call);
            None
        }),
        ("500", |call| {
            call.refuse(500, "InternalError");
            None
        }),
        ("504", |call| {
            call.refuse(504, "Timeout");
            None
        }),
        ("an end without an end of the list", |call| {
            call.stream().event("ADDED", &node("half", 1));
            None
        }),
        ("a reset", |call| {
            call.stream().break_off();
            None
        }),
        ("an expired version", |call| {
            let wire = call.stream();
            wire.error(410, "Expired");
            Some(wire)
        }),
        ("silence", |call| Some(call.stream())),
    ];
    for (way, break_it) in ways {
        let mut run = start();
        let call = run.server.streamed_list().await;
        let asked = call.at;
        let wire = break_it(call);
        let page = run.server.page().await;
        let patience = if way == "silence" { 15 } else { 0 };
        assert_eq!((page.at - asked).as_secs(), patience, "{way}");
        page.page(10, "", &[node("a", 1)]);
        assert_eq!(run.deltas.next(1).await, ["added a@1"], "{way}");
        drop(wire);
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_is_throttled_or_denied_is_not_followed_by_pages() {
    for (code, reason) in [(429, "TooManyRequests"), (403, "Forbidden"), (401, "Unauthorized")] {
        let mut run = start();
        run.server.streamed_list().await.refuse(code, reason);
        run.server.streamed_list().await;
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_halfway_are_read_again_from_the_first() {
    let mut run = start();
    run.server.streamed_list().await.refuse(400, "BadRequest");
    run.server.call().await.page(10, "next", &[node("a", 1)]);
    run.server.call().await.refuse(410, "Expired");
    let again = run.server.call().await;
    assert_eq!(again.get("continue"), None);
    assert!(run.deltas.is_empty() && !run.informer.is_synced());
    again.page(12, "", &[node("b", 11)]);
    assert_eq!(run.deltas.next(1).await, ["added b@11"]);
    assert_eq!(run.store(), ["b@11"]);
}
