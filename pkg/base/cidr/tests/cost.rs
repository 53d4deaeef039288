//! What the ledger costs: it follows the claims, never the blocks (node-ipam.md 5.1 R10, 10).
//! Release figures come from `cargo bench -p cidr`; the bounds here are wide enough for an
//! unoptimised build on a busy machine and still far below what any walk over blocks would take.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use cidr::{Ledger, Pool, parse};

fn ledger(cidr: &str, mask: u8) -> Ledger<u32> {
    Ledger::new(vec![Pool::new(parse(cidr).unwrap(), mask, 64).unwrap()])
}

/// The quickest of some tries, since the machine may be busy with something else in others.
fn quickest(tries: u32, mut work: impl FnMut() -> Duration) -> Duration {
    (0..tries).map(|_| work()).min().unwrap()
}

#[test]
fn an_allocation_among_10_000_claims_takes_microseconds() {
    let limit = Duration::from_micros(if cfg!(debug_assertions) { 100 } else { 10 });
    let mut ledger = ledger("10.0.0.0/8", 24);
    for owner in 0..10_000 {
        ledger.allocate(&owner).unwrap();
    }
    let average = quickest(5, || {
        let started = Instant::now();
        for owner in (0..10_000).step_by(10) {
            ledger.release(&owner);
            ledger.allocate(&owner).unwrap();
        }
        started.elapsed() / 1_000
    });
    assert!(average < limit, "{average:?}");
}

#[test]
fn r10_a_pool_of_any_size_starts_and_allocates_at_once() {
    for (cidr, mask) in [("10.0.0.0/8", 32), ("0.0.0.0/0", 32), ("fd00::/32", 96), ("::/0", 64)] {
        let taken = quickest(5, || {
            let started = Instant::now();
            let mut ledger = ledger(cidr, mask);
            ledger.occupy(&0, &[parse(cidr).unwrap()]);
            assert!(ledger.allocate(&1).is_err());
            ledger.release(&0);
            assert!(ledger.allocate(&1).is_ok());
            started.elapsed()
        });
        assert!(taken < Duration::from_millis(1), "{cidr}: {taken:?}");
    }
}
