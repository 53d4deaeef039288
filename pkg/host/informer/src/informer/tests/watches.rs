//! Watches: which events count, and from where the next watch goes on.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::informer::tests::start;
use crate::testing::{node, node_with_uid};

#[tokio::test(start_paused = true)]
async fn changes_are_delivered_in_order() {
    let mut run = start();
    let wire = run.server.serve_list(1, &[]).await;
    for (kind, version) in [("ADDED", 2), ("MODIFIED", 3), ("MODIFIED", 4), ("DELETED", 5)] {
        wire.event(kind, &node("a", version));
    }
    let want = ["added a@2", "updated a@2-3", "updated a@3-4", "deleted a@5"];
    assert_eq!(run.deltas.next(4).await, want);
    assert!(run.informer.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reused_name_is_a_deletion_and_an_addition() {
    let mut run = start();
    let wire = run.server.serve_list(1, &[node("a", 1)]).await;
    wire.event("MODIFIED", &node_with_uid("a", "another", 2));
    assert_eq!(run.deltas.next(3).await, ["added a@1", "deleted a@1", "added a@2"]);
    assert_eq!(&*run.informer.get("a").unwrap().uid, "another");
}

#[tokio::test(start_paused = true)]
async fn a_closed_watch_is_opened_again_at_once_from_the_last_version() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.event("ADDED", &node("a", 12));
    run.deltas.next(1).await;
    let closed = Instant::now();
    drop(wire);
    let call = run.server.watch_from("12").await;
    assert_eq!(call.at, closed);
    assert_eq!(call.get("allowWatchBookmarks"), Some("true"));
    call.stream().event("DELETED", &node("a", 13));
    assert_eq!(run.deltas.next(1).await, ["deleted a@13"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_the_version_and_breaks_the_silence() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    run.informer.synced().await;
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(run.informer.silent_for().as_secs(), 60);
    wire.bookmark(500);
    drop(wire);
    let _call = run.server.watch_from("500").await;
    assert_eq!(run.informer.silent_for().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn lines_may_be_cut_anywhere_by_the_wire() {
    let mut run = start();
    let wire = run.server.serve_list(1, &[]).await;
    let added = json!({"type": "ADDED", "object": node("a", 2)});
    let deleted = json!({"type": "DELETED", "object": node("a", 3)});
    for chunk in format!("{added}\n{deleted}\n").as_bytes().chunks(7) {
        wire.raw(chunk.to_vec());
    }
    assert_eq!(run.deltas.next(2).await, ["added a@2", "deleted a@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_line_cut_off_by_the_end_of_the_stream_is_not_an_event() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.bookmark(11);
    wire.raw("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na");
    drop(wire);
    run.server.watch_from("11").await.stream().event("ADDED", &node("a", 12));
    assert_eq!(run.deltas.next(1).await, ["added a@12"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_silent_is_given_up_ten_seconds_after_its_time_for_a_list() {
    let mut run = start();
    let call = run.server.streamed_list().await;
    let lifetime: u64 = call.get("timeoutSeconds").unwrap().parse().unwrap();
    let opened = call.at;
    let wire = call.stream();
    wire.end_of_list(10);
    let mut asked = 0;
    let next = loop {
        let call = run.server.call().await;
        if call.get("watch").is_some() {
            break call;
        }
        assert_eq!(call.get("limit"), Some("1"), "the newest version is asked for");
        asked += 1;
        call.page(10, "", &[]);
    };
    // The server may have been started again behind a connection that was dead for minutes.
    assert_eq!(next.get("sendInitialEvents"), Some("true"));
    // On a busy machine the paused clock may run ahead of an answer.
    let due = (lifetime + 10) / 120;
    assert!((due - 1..=due).contains(&asked), "{asked}, not once every two minutes: {due}");
    assert_eq!((next.at - opened).as_secs(), lifetime + 10);
    assert!(wire.is_abandoned());
    run.assert_metric("icm_informer_watch_errors_total{reason=\"silent\",resource=\"nodes\"} 1");
}

/// A proxy that cuts every connection within a second is no reason to list everything each time.
#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_soon_after_an_event_goes_on_from_there_after_a_wait() {
    let mut run = start();
    let mut wire = run.server.serve_list(10, &[]).await;
    for version in 11..20 {
        wire.event("MODIFIED", &node("a", version));
        run.deltas.next(1).await;
        let broken = Instant::now();
        wire.break_off();
        let call = run.server.watch_from(&version.to_string()).await;
        assert!(call.at - broken >= Duration::from_millis(100), "{:?}", call.at - broken);
        wire = call.stream();
        run.server.newest_version().await.page(version, "", &[]);
    }
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}
