//! Release and abandonment.

use std::sync::mpsc;

use super::*;
use crate::thread::{Exit, start_watchdog};

fn abandon(running: &mut Running) {
    let (unused, _) = oneshot::channel();
    assert!(std::mem::replace(&mut running.orders, unused).send(Order::Abandon).is_ok());
}

async fn release(running: &mut Running) -> Released {
    let (reply, outcome) = oneshot::channel();
    let (unused, _) = oneshot::channel();
    assert!(std::mem::replace(&mut running.orders, unused).send(Order::Release(reply)).is_ok());
    outcome.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_has_no_holder_and_the_next_candidate_leads_at_its_next_try() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    let mut b = Running::start("b", server.store(well));
    advance_by(&mut a, 1_100).await;
    server.forget_calls();
    assert_eq!(release(&mut a).await, Released::Freed);
    let record = server.record();
    assert_eq!((record.holder.as_str(), record.lease_seconds), ("", Some(1)));
    assert_eq!((record.transitions, record.acquired), (0, record.renewed));
    assert_eq!(server.calls().len(), 1, "one PUT is enough");
    assert!(a.fence.check().is_err());
    assert!(!a.term.is_limited(), "the watchdog kills no process after a release");
    assert_eq!(*a.status.borrow(), Leadership::Standby { holder: None });
    assert_eq!(a.event_messages(), ["a became leader", "a stopped leading"]);
    let start = Instant::now();
    assert_eq!(b.leads().await, Leadership::Leading);
    assert!(start.elapsed() <= 500 * MS);
    assert_eq!(server.record().transitions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_lands_during_the_release_does_not_stop_it() {
    let server = Server::default();
    let late = Fault { before: 50 * MS, after: 200 * MS, ..Fault::default() };
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 2, late)));
    a.leads().await;
    tokio::time::sleep(1_010 * MS).await; // the second renewal has left and not landed
    assert_eq!(server.calls().last().unwrap().1, Verb::Replace);
    tokio::time::sleep(45 * MS).await; // landed, not answered: the version remembered is old
    assert_eq!(release(&mut a).await, Released::Freed);
    assert_eq!(server.record().holder, "");
    tokio::time::sleep(10_000 * MS).await;
    assert_eq!(server.record().holder, "", "nothing may renew a released lease");
}

#[tokio::test(start_paused = true)]
async fn releasing_retries_for_the_renew_deadline_and_then_lets_the_lease_expire() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    server.freeze(60_000 * MS);
    let start = Instant::now();
    assert!(matches!(release(&mut a).await, Released::LeftToExpire { .. }));
    assert!(start.elapsed() <= 3_000 * MS, "{:?}", start.elapsed());
    assert!(a.fence.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_connection_breaks_once_still_frees_the_lease() {
    let reset = Fault { request_lost: true, ..Fault::default() };
    let server = Server::default();
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 1, reset)));
    a.leads().await;
    assert_eq!(release(&mut a).await, Released::Freed);
    assert_eq!(server.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_standby_has_nothing_to_release_and_sends_no_request() {
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let mut a = Running::start("a", server.store(well));
    a.until(|s| matches!(s, Leadership::Standby { holder: Some(_) })).await;
    server.forget_calls();
    assert_eq!(release(&mut a).await, Released::NotHeld);
    assert_eq!(server.calls(), []);
    assert_eq!(a.event_messages(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_takeover_is_under_way_releases_what_it_may_have_taken() {
    let server = Server::default();
    let slow = Fault { after: 1_000 * MS, ..Fault::default() };
    let mut a = Running::start("a", server.store(nth(Verb::Create, 1, slow)));
    tokio::time::sleep(500 * MS).await; // created on the server, not yet known here
    assert!(!a.is_leading());
    assert_eq!(server.record().holder, "a");
    assert_eq!(release(&mut a).await, Released::Freed);
    assert_eq!(server.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_loser_does_not_release_what_may_be_anothers() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    server.freeze(4_000 * MS);
    a.loses().await;
    assert_eq!(release(&mut a).await, Released::NotHeld);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_lease_is_fenced_and_left_to_expire() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    abandon(&mut a);
    a.until(|s| *s == Leadership::Standby { holder: None }).await;
    server.forget_calls();
    assert!(a.fence.check().is_err());
    let mut b = Running::start("b", server.store(well));
    let start = Instant::now();
    assert_eq!(b.leads().await, Leadership::Leading);
    assert!(start.elapsed() >= 4_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_lets_a_process_finish_that_abandoned_its_lease() {
    let mut a = Running::start("a", Server::default().store(well));
    a.leads().await;
    let (kill, killed) = mpsc::channel();
    let exit: Exit = Arc::new(move |code| kill.send(code).unwrap());
    let watchdog = start_watchdog(Arc::clone(&a.term), exit).unwrap();
    abandon(&mut a);
    (&mut a.task).await.unwrap();
    assert!(a.fence.check().is_err());
    drop(a);
    // It watches for as long as there is a limit, past which it kills.
    watchdog.join().unwrap();
    assert!(killed.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_loser_that_is_abandoned_still_has_to_be_gone_in_time() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    server.freeze(4_000 * MS);
    a.loses().await;
    abandon(&mut a);
    (&mut a.task).await.unwrap();
    assert!(a.term.is_limited());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_orders_abandons() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    let (unused, _) = oneshot::channel();
    drop(std::mem::replace(&mut a.orders, unused));
    a.until(|s| *s == Leadership::Standby { holder: None }).await;
    assert_eq!(server.record().holder, "a");
}
