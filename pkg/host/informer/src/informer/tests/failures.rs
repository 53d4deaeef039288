//! Failures: what is listed again, what is only watched again, and how long that waits.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::informer::tests::start;
use crate::testing::node;

/// The waits that a first, second, third… failure in a row may take, in seconds.
const WAITS: [(f64, f64); 5] = [(0.1, 0.2), (0.2, 0.4), (0.4, 0.8), (0.8, 1.6), (1.6, 3.2)];

fn assert_waited(since: Instant, until: Instant, (least, most): (f64, f64)) {
    let waited = (until - since).as_secs_f64();
    // Timers of tokio have a grain of a millisecond.
    assert!((least..most + 0.002).contains(&waited), "{waited} is not in {least}..{most}");
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_asked_again_soon_and_then_every_two_seconds_until_the_first_list()
{
    let mut run = start();
    let mut last = None;
    for wait in WAITS.into_iter().chain([(2.0, 2.0); 5]) {
        let call = run.server.streamed_list().await;
        if let Some((failed, (least, most))) = last.replace((call.at, wait)) {
            assert_waited(failed, call.at, (least, most.min(2.0)));
        }
        let asked = call.at;
        drop(call);
        assert_eq!(run.server.page().await.at, asked, "pages are tried at once");
    }
    assert!(!run.informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn openings_that_fail_for_less_than_a_restart_takes_cost_no_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[node("a", 1)]).await;
    wire.bookmark(11);
    drop(wire);
    let mut last = run.server.watch_from("11").await.at;
    for (code, wait) in [(429, WAITS[0]), (503, WAITS[1])] {
        let call = run.server.watch_from("11").await;
        assert_waited(last, call.at, wait);
        last = call.at;
        call.refuse(code, "InternalError");
    }
    let wire = run.server.watch_from("11").await.stream();
    wire.event("ADDED", &node("b", 12));
    assert_eq!(run.deltas.next(2).await, ["added a@1", "added b@12"]);
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn openings_that_fail_for_longer_are_followed_by_one_list() {
    for code in [500, 503] {
        let mut run = start();
        let wire = run.server.serve_list(10, &[node("a", 1)]).await;
        wire.bookmark(11);
        let heard = Instant::now();
        drop(wire);
        let call = loop {
            let call = run.server.call().await;
            if call.get("sendInitialEvents").is_some() {
                break call;
            }
            call.refuse(code, "InternalError");
        };
        assert_waited(heard, call.at, (2.0, 6.3));
        let wire = call.stream();
        wire.event("ADDED", &node("a", 1));
        wire.event("ADDED", &node("b", 12));
        wire.end_of_list(12);
        assert_eq!(run.deltas.next(2).await, ["added a@1", "added b@12"]);
        sleep(Duration::from_secs(2)).await;
        drop(wire);
        run.server.watch_from("12").await;
        run.assert_metric(
            "icm_informer_relist_total{cause=\"connection_lost\",resource=\"nodes\"} 1",
        );
        run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 2");
    }
}

#[tokio::test(start_paused = true)]
async fn openings_that_are_throttled_cost_no_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.bookmark(11);
    drop(wire);
    for _ in 0..8 {
        run.server.watch_from("11").await.refuse(429, "TooManyRequests");
    }
    run.server.watch_from("11").await;
}

#[tokio::test(start_paused = true)]
async fn the_server_is_left_alone_as_long_as_it_asks() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.bookmark(11);
    drop(wire);
    let call = run.server.watch_from("11").await;
    let refused = call.at;
    call.refuse_for(429, 25);
    let again = run.server.watch_from("11").await;
    assert_waited(refused, again.at, (25.0, 25.0));
}

#[tokio::test(start_paused = true)]
async fn throttling_inside_a_watch_costs_no_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.error(429, "TooManyRequests");
    run.server.watch_from("10").await;
}

#[tokio::test(start_paused = true)]
async fn any_other_refusal_of_a_watch_is_answered_by_a_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    wire.bookmark(11);
    drop(wire);
    let call = run.server.watch_from("11").await;
    let refused = call.at;
    call.refuse(403, "Forbidden");
    assert_waited(refused, run.server.streamed_list().await.at, WAITS[0]);
    run.assert_metric("icm_informer_watch_errors_total{reason=\"denied\",resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_answered_by_a_list_at_once() {
    for inside in [true, false] {
        let mut run = start();
        let wire = run.server.serve_list(10, &[node("a", 1)]).await;
        run.deltas.next(1).await;
        sleep(Duration::from_secs(31)).await;
        if inside {
            wire.error(410, "Expired");
        } else {
            drop(wire);
            run.server.watch_from("10").await.refuse(410, "Gone");
        }
        let expired = Instant::now();
        assert_eq!(run.server.streamed_list().await.at, expired);
        run.assert_metric("icm_informer_relist_total{cause=\"expired\",resource=\"nodes\"} 1");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_expire_as_soon_as_they_are_made_are_spaced_out() {
    let mut run = start();
    let mut last = None;
    for wait in WAITS {
        let call = run.server.streamed_list().await;
        if let Some((failed, wait)) = last.replace((call.at, wait)) {
            assert_waited(failed, call.at, wait);
        }
        let wire = call.stream();
        wire.end_of_list(10);
        wire.error(410, "Expired");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_closed_within_a_second_without_an_event_is_answered_by_a_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[]).await;
    run.informer.synced().await;
    let closed = Instant::now();
    drop(wire);
    let call = run.server.streamed_list().await;
    assert_waited(closed, call.at, WAITS[0]);
    run.assert_metric("icm_informer_relist_total{cause=\"short_watch\",resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_answered_by_a_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[node("a", 1)]).await;
    wire.event("MODIFIED", &json!({"metadata": {"name": "a"}}));
    let _wire = run.server.serve_list(12, &[node("a", 11)]).await;
    assert_eq!(run.deltas.next(2).await, ["added a@1", "updated a@1-11"]);
    run.assert_metric("icm_informer_relist_total{cause=\"undecodable\",resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_object_in_a_list_keeps_the_store_and_is_tried_again() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[node("a", 1)]).await;
    wire.error(410, "Expired");
    let mut last = Instant::now();
    for wait in &WAITS[..3] {
        let call = run.server.streamed_list().await;
        assert_waited(last, call.at, *wait);
        last = call.at;
        call.stream().raw("nonsense\n");
    }
    assert_eq!(run.store(), ["a@1"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_costs_no_list() {
    let mut run = start();
    let wire = run.server.serve_list(10, &[node("a", 1)]).await;
    run.deltas.next(1).await;
    sleep(Duration::from_secs(2)).await;
    let broken = Instant::now();
    wire.break_off();
    assert_eq!(run.server.watch_from("10").await.at, broken);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_after_thirty_seconds() {
    let mut run = start();
    let frozen = run.server.streamed_list().await;
    let pages = run.server.page().await;
    assert_waited(frozen.at, pages.at, (30.0, 30.0));
    let again = run.server.streamed_list().await;
    assert_waited(pages.at, again.at, (30.1, 30.2));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_trickles_is_given_up_ten_seconds_after_its_time() {
    let mut run = start();
    let call = run.server.streamed_list().await;
    let (asked, lifetime) = (call.at, call.get("timeoutSeconds").unwrap().parse::<u64>().unwrap());
    let wire = call.stream();
    while !wire.is_abandoned() && asked.elapsed() < Duration::from_secs(1000) {
        wire.bookmark(1);
        sleep(Duration::from_secs(1)).await;
    }
    // Looked at once a second.
    assert!((lifetime + 10..=lifetime + 11).contains(&asked.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn an_event_ends_a_row_of_failures() {
    let mut run = start();
    for _ in 0..4 {
        drop(run.server.streamed_list().await);
        drop(run.server.page().await);
    }
    let wire = run.server.serve_list(10, &[]).await;
    wire.bookmark(11);
    drop(wire);
    let refused = run.server.watch_from("11").await.at;
    let again = run.server.watch_from("11").await;
    assert_waited(refused, again.at, WAITS[0]);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_believed_for_a_minute_in_answers_and_inside_a_watch() {
    let mut run = start();
    let call = run.server.streamed_list().await;
    let refused = call.at;
    call.refuse_for(429, 3600);
    let call = run.server.streamed_list().await;
    assert_waited(refused, call.at, (60.0, 60.0));
    let wire = call.stream();
    wire.end_of_list(10);
    let throttled = Instant::now();
    let details = json!({"retryAfterSeconds": 40});
    wire.event("ERROR", &json!({"kind": "Status", "code": 429, "details": details}));
    assert_waited(throttled, run.server.watch_from("10").await.at, (40.0, 40.0));
}
