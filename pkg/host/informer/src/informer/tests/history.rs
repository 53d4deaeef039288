//! A server whose resource versions go back (rule:history-that-goes-back).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::Session;
use crate::informer::tests::{Deltas, Fixture, start};
use crate::testing::{Wire, node};

/// Serves the lists of an etcd that was restored at version 20, after 90 was seen.
async fn serve_restored(run: &mut Fixture) -> Wire {
    for _ in 0..2 {
        drop(run.server.serve_list(20, &[node("a", 10), node("c", 15)]).await);
    }
    run.server.serve_list(20, &[node("a", 10), node("c", 15)]).await
}

/// Waits until the sessions of all users have ended.
async fn listed_again(run: &Fixture) {
    let session = Session::new();
    let _told = run.informer.in_session(session.clone()).subscribe(|_| {});
    session.ended().await;
}

/// An informer that has seen version 90.
async fn at_ninety() -> (Fixture, Wire) {
    let mut run = start();
    let wire = run.server.serve_list(80, &[node("a", 10), node("b", 60)]).await;
    wire.event("MODIFIED", &node("a", 90));
    run.deltas.next(3).await;
    (run, wire)
}

#[tokio::test(start_paused = true)]
async fn three_lists_that_agree_begin_a_new_history_and_end_every_session() {
    let (mut run, wire) = at_ninety().await;
    let session = Session::new();
    let user = run.informer.in_session(session.clone());
    let _told = user.subscribe(|delta| assert!(!matches!(delta, crate::Delta::Deleted(_))));
    wire.error(410, "Expired");
    let wire = serve_restored(&mut run).await;
    let cause = session.ended().await.to_owned();
    assert!(cause.contains("went back from 90 to 20"), "{cause}");
    assert_eq!(run.store(), ["a@10", "c@15"]);
    assert!(run.deltas.is_empty(), "no difference between two histories is delivered");
    // The user starts again on the same informer.
    let mut again = Deltas::of(&run.informer);
    assert_eq!(again.next(2).await, ["added a@10", "added c@15"]);
    wire.event("MODIFIED", &node("a", 21));
    assert_eq!(again.next(1).await, ["updated a@10-21"]);
    drop(wire);
    run.server.watch_from("21").await;
}

#[tokio::test(start_paused = true)]
async fn copies_of_the_old_history_are_not_used_again() {
    let (mut run, wire) = at_ninety().await;
    let before = run.informer.get("b").unwrap();
    wire.error(410, "Expired");
    // The same version and UID, and yet another object: the number was given twice.
    let b = [node("b", 60)];
    for _ in 0..2 {
        drop(run.server.serve_list(70, &b).await);
    }
    let _wire = run.server.serve_list(70, &b).await;
    listed_again(&run).await;
    assert!(!std::sync::Arc::ptr_eq(&before, &run.informer.get("b").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn the_newest_version_is_asked_for_when_the_connection_broke() {
    let (mut run, wire) = at_ninety().await;
    sleep(Duration::from_secs(2)).await;
    wire.break_off();
    let broken = Instant::now();
    // Such a server keeps the watch open, and silent, until it gets to that version again.
    let silent = run.server.watch_from("90").await.stream();
    let asked = run.server.newest_version().await;
    assert_eq!(asked.at, broken);
    asked.page(20, "", &[]);
    let _wire = serve_restored(&mut run).await;
    listed_again(&run).await;
    assert_eq!(run.store(), ["a@10", "c@15"]);
    assert!(broken.elapsed() < Duration::from_secs(15), "{:?}", broken.elapsed());
    assert!(silent.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn the_newest_version_is_asked_for_after_two_minutes_without_a_word() {
    let (mut run, wire) = at_ninety().await;
    let heard = Instant::now();
    let asked = run.server.newest_version().await;
    assert_eq!((asked.at - heard).as_secs(), 120);
    // A failure to answer proves nothing, and neither does a newer version.
    asked.refuse(500, "InternalError");
    let asked = run.server.newest_version().await;
    assert_eq!((asked.at - heard).as_secs(), 240);
    asked.page(500, "", &[]);
    wire.event("MODIFIED", &node("a", 501));
    assert_eq!(run.deltas.next(1).await, ["updated a@90-501"]);
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_merely_lags_is_waited_for() {
    let (mut run, wire) = at_ninety().await;
    wire.error(410, "Expired");
    drop(run.server.serve_list(20, &[]).await);
    drop(run.server.serve_list(21, &[]).await);
    let _wire = run.server.serve_list(91, &[node("a", 91), node("b", 60)]).await;
    assert_eq!(run.deltas.next(1).await, ["updated a@90-91"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_own_write_ends_with_the_history_it_belongs_to() {
    let (mut run, wire) = at_ninety().await;
    let informer = run.informer.clone();
    let waiting = tokio::spawn(async move {
        informer.shows("a", &kube_api::OwnWrite::version(95)).await;
    });
    wire.error(410, "Expired");
    let _wire = serve_restored(&mut run).await;
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_own_write_is_shown_by_its_event_or_by_any_later_word() {
    let (run, wire) = at_ninety().await;
    let showing = |key: &'static str, version| {
        let informer = run.informer.clone();
        tokio::spawn(
            async move { informer.shows(key, &kube_api::OwnWrite::version(version)).await },
        )
    };
    showing("a", 90).await.unwrap();
    let by_event = showing("a", 95);
    let by_bookmark = showing("elsewhere", 97);
    sleep(Duration::from_secs(1)).await;
    assert!(!by_event.is_finished() && !by_bookmark.is_finished());
    wire.event("MODIFIED", &node("a", 95));
    by_event.await.unwrap();
    assert!(!by_bookmark.is_finished());
    wire.bookmark(97);
    by_bookmark.await.unwrap();
}

/// Breaks the connection and lets every opening fail until a list is asked for.
async fn fails_to_open(run: &mut Fixture, wire: Wire) -> crate::testing::Call {
    sleep(Duration::from_secs(1)).await;
    wire.break_off();
    loop {
        let call = run.server.call().await;
        assert!(run.informer.is_doubted());
        if call.get("sendInitialEvents").is_some() {
            return call;
        }
    }
}

fn serve(call: crate::testing::Call, version: u64, objects: &[serde_json::Value]) -> Wire {
    let wire = call.stream();
    for object in objects {
        wire.event("ADDED", object);
    }
    wire.end_of_list(version);
    wire
}

#[tokio::test(start_paused = true)]
async fn a_history_that_went_back_and_has_passed_the_known_version_is_found_by_a_list() {
    // An object that lost its last write; one that came back; one that was made in between.
    for other in [node("a", 85), node("ghost", 70), node("new", 90)] {
        let (mut run, wire) = at_ninety().await;
        let session = Session::new();
        let user = run.informer.in_session(session.clone());
        let _told = user.subscribe(|delta| assert!(!matches!(delta, crate::Delta::Deleted(_))));
        let call = fails_to_open(&mut run, wire).await;
        let _wire = serve(call, 120, &[node("b", 60), other]);
        let cause = session.ended().await;
        assert!(cause.contains("up to resource version 90 has changed"), "{cause}");
        while run.informer.is_doubted() {
            tokio::task::yield_now().await;
        }
        assert!(run.deltas.is_empty(), "no difference between two histories is delivered");
        assert_eq!(run.store().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_that_went_on_is_delivered_as_changes_after_the_list() {
    let (mut run, wire) = at_ninety().await;
    let session = Session::new();
    let user = run.informer.in_session(session.clone());
    let _told = user.subscribe(|_| {});
    let call = fails_to_open(&mut run, wire).await;
    let _wire = serve(call, 120, &[node("a", 90), node("c", 110)]);
    assert_eq!(run.deltas.next(2).await, ["deleted b@60", "added c@110"]);
    run.informer.synced().await;
    assert!(!session.has_ended());
    while run.informer.is_doubted() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_contradicts_the_store_is_made_once_more_without_its_copies() {
    let (mut run, wire) = at_ninety().await;
    let before = run.informer.get("b").unwrap();
    // The new server does not know the version that is watched from.
    wire.error(410, "Expired");
    let objects = [node("a", 85), node("b", 60)];
    drop(run.server.serve_list(120, &objects).await);
    let call = run.server.streamed_list().await;
    assert!(run.informer.is_doubted());
    let _wire = serve(call, 120, &objects);
    listed_again(&run).await;
    assert_eq!(run.store(), ["a@85", "b@60"]);
    assert!(!std::sync::Arc::ptr_eq(&before, &run.informer.get("b").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_doubted_until_the_newest_version_is_known() {
    let (mut run, wire) = at_ninety().await;
    assert!(!run.informer.is_doubted());
    wire.break_off();
    let opened = run.server.watch_from("90").await;
    assert!(run.informer.is_doubted());
    let _wire = opened.stream();
    let asked = run.server.newest_version().await;
    let first = asked.at;
    asked.refuse(500, "InternalError");
    let asked = run.server.newest_version().await;
    assert_eq!((asked.at - first).as_secs(), 1, "soon, since sends are held");
    assert!(run.informer.is_doubted());
    asked.page(90, "", &[]);
    sleep(Duration::from_millis(1)).await;
    assert!(!run.informer.is_doubted());
    run.assert_metric("icm_informer_lists_total{resource=\"nodes\"} 1");
}

/// A proxy that cuts idle connections is no reason to list everything each time.
#[tokio::test(start_paused = true)]
async fn quiet_connections_that_break_cost_a_list_every_five_minutes_at_most() {
    let (mut run, mut wire) = at_ninety().await;
    let begun = Instant::now();
    let mut lists = 0;
    while begun.elapsed() < Duration::from_secs(1500) {
        sleep(Duration::from_secs(50)).await;
        wire.break_off();
        let call = run.server.call().await;
        if call.get("sendInitialEvents").is_some() {
            lists += 1;
            wire = serve(call, 90, &[node("a", 90), node("b", 60)]);
        } else {
            wire = call.stream();
            run.server.newest_version().await.page(90, "", &[]);
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(lists, 5);
}
