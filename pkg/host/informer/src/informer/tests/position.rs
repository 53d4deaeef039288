//! How far a cache has got, and whether its watch was ever interrupted since the last list.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::history::LISTS_APART;
use crate::informer::Position;
use crate::informer::tests::{Fixture, start};
use crate::testing::{Wire, node};

const SILENCE: Duration = Duration::from_secs(2);

/// An informer that has seen version 10, and lists again whenever it is broken.
async fn at_ten() -> (Fixture, Wire, AbortOnDropHandle<()>) {
    let mut run = start();
    assert!(!run.informer.position().is_unbroken, "there is no list yet");
    let followed = run.informer.clone();
    let following = tokio::spawn(async move { match followed.keep_unbroken().await {} });
    let wire = run.server.serve_list(10, &[node("a", 5)]).await;
    run.informer.synced().await;
    assert_eq!(run.informer.position(), position(10, true));
    (run, wire, AbortOnDropHandle::new(following))
}

fn position(version: u64, is_unbroken: bool) -> Position {
    Position { version, history: 0, is_unbroken }
}

/// The informer lists again, and is unbroken then.
async fn lists_again(run: &mut Fixture) {
    assert!(!run.informer.position().is_unbroken);
    let mut watches = Vec::new();
    let _wire = loop {
        let call = run.server.call().await;
        match (call.get("sendInitialEvents"), call.get("watch")) {
            (Some(_), _) => {
                let wire = call.stream();
                wire.event("ADDED", &node("a", 15));
                wire.end_of_list(20);
                break wire;
            }
            (None, Some(_)) => watches.push(call.stream()),
            // The newest version is not told.
            (None, None) => {}
        }
    };
    assert_eq!(run.informer.reaches(20, position(10, true)).await, position(20, true));
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_opened_at_the_first_try_break_nothing() {
    let (mut run, wire, _following) = at_ten().await;
    sleep(5 * SILENCE).await;
    drop(wire);
    let wire = run.server.watch_from("10").await.stream();
    wire.event("MODIFIED", &node("a", 11));
    assert_eq!(run.informer.reaches(11, position(10, true)).await, position(11, true));
    sleep(SILENCE / 2).await;
    wire.break_off();
    let _wire = run.server.watch_from("11").await.stream();
    run.server.newest_version().await.page(11, "", &[]);
    sleep(5 * SILENCE).await;
    assert_eq!(run.informer.position(), position(11, true));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_throttles_is_not_asked_for_a_list_within_five_minutes_of_the_last_one() {
    let (mut run, wire, _following) = at_ten().await;
    let begun = Instant::now();
    sleep(SILENCE / 2).await;
    drop(wire);
    run.server.watch_from("10").await.refuse(429, "TooManyRequests");
    sleep(Duration::from_millis(1)).await;
    lists_again(&mut run).await;
    let took = begun.elapsed();
    assert!(took + SILENCE >= LISTS_APART && took <= LISTS_APART + SILENCE, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_calls_for_a_list() {
    for (code, reason) in [(503, "ServiceUnavailable"), (429, "TooManyRequests"), (410, "Expired")]
    {
        let (mut run, wire, _following) = at_ten().await;
        sleep(SILENCE / 2).await;
        drop(wire);
        run.server.watch_from("10").await.refuse(code, reason);
        sleep(Duration::from_millis(1)).await;
        lists_again(&mut run).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_silence_calls_for_a_list() {
    let (mut run, wire, _following) = at_ten().await;
    sleep(SILENCE).await;
    wire.break_off();
    sleep(Duration::from_millis(1)).await;
    lists_again(&mut run).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_opened_late_after_a_loss_calls_for_a_list() {
    let (mut run, wire, _following) = at_ten().await;
    sleep(SILENCE / 2 + SILENCE / 8).await;
    wire.break_off();
    let late = run.server.watch_from("10").await;
    sleep(SILENCE / 2).await;
    assert!(run.informer.position().is_unbroken);
    let _wire = late.stream();
    sleep(Duration::from_millis(1)).await;
    lists_again(&mut run).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_sought_is_reached_by_short_watches() {
    let (mut run, _wire, _following) = at_ten().await;
    run.informer.seek(30);
    for bookmark in [20, 30] {
        let watch = run.server.call().await;
        assert_eq!(watch.get("timeoutSeconds"), Some("3"));
        let wire = watch.stream();
        sleep(Duration::from_secs(1)).await;
        wire.bookmark(bookmark);
        sleep(Duration::from_secs(2)).await;
    }
    let reached = run.informer.reaches(30, position(10, true)).await;
    assert_eq!(reached, position(30, true));
    let watch = run.server.watch_from("30").await;
    assert_ne!(watch.get("timeoutSeconds"), Some("3"), "nothing is sought any more");
}

/// The connection may be dead: another server may take the next watch.
#[tokio::test(start_paused = true)]
async fn a_version_that_is_sought_after_silence_calls_for_a_list() {
    let (mut run, _wire, _following) = at_ten().await;
    sleep(SILENCE).await;
    run.informer.seek(20);
    sleep(Duration::from_millis(1)).await;
    lists_again(&mut run).await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_version_ends_with_the_history() {
    let (mut run, wire, _following) = at_ten().await;
    let from = run.informer.position();
    let unreached = timeout(Duration::from_secs(60), run.informer.reaches(11, from)).await;
    assert!(unreached.is_err());
    wire.error(410, "Expired");
    for _ in 0..3 {
        drop(run.server.serve_list(7, &[node("a", 5)]).await);
    }
    let now = run.informer.reaches(11, from).await;
    assert_eq!(now, Position { version: 7, history: 1, is_unbroken: true });
}
