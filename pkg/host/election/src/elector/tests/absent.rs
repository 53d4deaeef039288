//! A Lease that does not exist, perhaps because it was deleted while its holder leads
//! (rule:lease-absent-is-not-free).

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::term::Won;

#[tokio::test(start_paused = true)]
async fn a_fresh_candidate_waits_a_lease_duration_where_a_leader_may_believe_in_a_deleted_lease() {
    let server = Server::default();
    let mut a = Running::start_after(|| Ok(true), server.store(well));
    let start = Instant::now();
    a.leads().await;
    assert_eq!(start.elapsed(), 4_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_living_leader_gets_its_deleted_lease_back_and_the_fresh_candidate_follows() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    tokio::time::sleep(1_010 * MS).await; // just renewed: its next write is 490 ms away
    server.delete();
    let mut b = Running::start_with(config("b"), server.store(well), || 0.0, || Ok(true));
    b.until(|s| *s == Leadership::Standby { holder: Some("a".into()) }).await;
    tokio::time::sleep(20_000 * MS).await;
    assert!(a.is_leading() && !b.is_leading());
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_stuck_leader_is_not_created_while_its_fence_may_be_open() {
    let server = Server::default();
    let mut looked = false;
    let plan = move |verb| {
        let goes_well = !std::mem::replace(&mut looked, true) || verb == Verb::Create;
        if goes_well { Fault::default() } else { STUCK }
    };
    let mut a = Running::start("a", server.store(plan));
    a.leads().await;
    tokio::time::sleep(510 * MS).await; // its renewal is on its way and stays there
    server.delete();
    let left = Instant::now();
    let mut b = Running::start_with(config("b"), server.store(well), || 0.0, || Ok(true));
    b.leads().await;
    assert!(left.elapsed() >= 4_000 * MS, "{:?}", left.elapsed());
    assert!(!a.is_leading());
}

const STUCK: Fault = Fault {
    before: Duration::from_secs(600),
    after: Duration::ZERO,
    request_lost: false,
    answer_lost: false,
};

#[tokio::test(start_paused = true)]
async fn what_cannot_be_found_out_is_waited_for_and_asked_again() {
    let server = Server::default();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let third_time_no = move || match count.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err("nodes is forbidden".to_owned()),
        _ => Ok(false),
    };
    let mut a = Running::start_after(third_time_no, server.store(well));
    let start = Instant::now();
    a.leads().await;
    assert_eq!(start.elapsed(), 500 * MS, "two pauses");
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn predecessors_are_not_checked_where_there_is_a_lease() {
    let asked = || panic!("there is a holder");
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let mut a = Running::start_after(asked, server.store(well));
    a.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_goes_back_or_vanishes_is_remembered() {
    let won = |a: &Running| a.term.won();
    for how in ["follows", "goes back", "vanishes"] {
        let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
        server.edit(|_| {});
        let mut a = Running::start("a", server.store(well));
        a.until(|s| *s == Leadership::Standby { holder: Some("ghost".into()) }).await;
        assert_eq!(won(&a), Won { transitions: 7, lease_went_back: false }, "{how}");
        match how {
            "goes back" => server.restore(1),
            "vanishes" => server.delete(),
            _ => {}
        }
        a.leads().await;
        let transitions = if how == "vanishes" { 0 } else { 8 };
        let lease_went_back = how != "follows";
        assert_eq!(won(&a), Won { transitions, lease_went_back }, "{how}");
    }
}
