//! Candidates against each other under random faults: never two leaders, and always one again.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Histories tried; each is some minutes of virtual time.
const SEEDS: u64 = 100;
const HISTORY: Duration = Duration::from_secs(180);

fn random_fault(rng: &mut StdRng) -> Fault {
    let delay = |rng: &mut StdRng| match rng.random_range(0..20) {
        0 => rng.random_range(0..6_000), // longer than a lease: lands when it is no longer awaited
        1..4 => rng.random_range(0..900),
        _ => rng.random_range(0..20),
    };
    Fault {
        before: MS * delay(rng),
        after: MS * delay(rng),
        request_lost: rng.random_bool(0.05),
        answer_lost: rng.random_bool(0.05),
    }
}

fn candidate(identity: &str, server: &Server, seed: u64) -> Running {
    let mut rng = StdRng::seed_from_u64(seed);
    let jitter = Mutex::new(StdRng::seed_from_u64(!seed));
    let store = server.store(move |_| random_fault(&mut rng));
    Running::start_with(
        config(identity),
        store,
        move || jitter.lock().unwrap().random(),
        || Ok(false),
    )
}

/// Follows one candidate's published state; panics when it leads while another one does.
async fn referee(mut status: watch::Receiver<Leadership>, leaders: Arc<AtomicUsize>) -> u32 {
    let (mut leading, mut terms) = (false, 0);
    loop {
        let now = matches!(*status.borrow_and_update(), Leadership::Leading);
        if now && !leading {
            assert_eq!(leaders.fetch_add(1, Ordering::Relaxed), 0, "two candidates lead");
            terms += 1;
        } else if leading && !now {
            leaders.fetch_sub(1, Ordering::Relaxed);
        }
        leading = now;
        if status.changed().await.is_err() {
            leaders.fetch_sub(usize::from(leading), Ordering::Relaxed);
            return terms;
        }
    }
}

/// One life of a candidate: until it loses, is killed, or leaves politely.
async fn life(identity: String, server: Server, seed: u64, leaders: Arc<AtomicUsize>) -> u32 {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    let mut running = candidate(&identity, &server, seed);
    let referee = tokio::spawn(referee(running.status.clone(), leaders));
    let limit = Instant::now() + MS * rng.random_range(1_000..60_000);
    let lost = running.status.wait_for(|s| matches!(s, Leadership::Lost { .. }));
    let gone = timeout_at(limit, lost).await.is_ok();
    if !gone && rng.random_bool(0.5) {
        let (reply, outcome) = oneshot::channel();
        let (unused, _) = oneshot::channel();
        drop(std::mem::replace(&mut running.orders, unused).send(Order::Release(reply)));
        drop(outcome.await);
    }
    drop(running);
    referee.await.unwrap()
}

async fn history(seed: u64) -> u32 {
    let (server, leaders) = (Server::default(), Arc::new(AtomicUsize::new(0)));
    let end = Instant::now() + HISTORY;
    let places = ["a", "b", "c"].map(|place| {
        let (server, leaders) = (server.clone(), Arc::clone(&leaders));
        tokio::spawn(async move {
            let (mut terms, mut lives) = (0, 0);
            while Instant::now() < end {
                lives += 1;
                let identity = format!("{place}{lives}");
                let seed = seed * 10_007 + u64::from(place.as_bytes()[0]) * 101 + lives;
                terms += life(identity, server.clone(), seed, Arc::clone(&leaders)).await;
            }
            terms
        })
    });
    let mut terms = 0;
    for place in places {
        terms += place.await.unwrap();
    }
    terms
}

#[test]
fn two_candidates_never_lead_at_once_and_somebody_always_leads_again() {
    for seed in 0..SEEDS {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let terms = runtime.block_on(history(seed));
        assert!(terms >= 5, "seed {seed}: {terms} terms of leadership in {HISTORY:?}");
    }
}
