//! `rule:cost-follows-claims`. How long an operation takes is measured by `cargo bench -p cidr`;
//! here pools of up to 2^64 blocks are worked on whole, which no walk over blocks would ever end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cidr::{Ledger, Pool, parse};

/// For a busy machine; a walk over 2^64 blocks takes centuries, and over 2^32 in a debug build
/// minutes, for each of the operations.
const PATIENCE: Duration = Duration::from_secs(60);

fn ledger(cidr: &str, mask: u8) -> Ledger<u32> {
    Ledger::new(vec![Pool::new(parse(cidr).unwrap(), mask, 64).unwrap()])
}

/// Fails when `work` does not end.
fn ends(name: &str, work: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        let _heard = done.send(()).is_ok();
    });
    match ended.recv_timeout(PATIENCE) {
        // Its panic is the better message.
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => worker.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: no end after {PATIENCE:?}"),
    }
}

#[test]
fn a_pool_of_any_size_is_filled_emptied_and_allocated_from_without_a_walk_over_its_blocks() {
    for (cidr, mask) in [("0.0.0.0/0", 32), ("fd00::/32", 96), ("::/0", 64)] {
        ends(cidr, move || {
            let mut ledger = ledger(cidr, mask);
            for _ in 0..100 {
                ledger.occupy(&0, &[parse(cidr).unwrap()]);
                assert!(ledger.allocate(&1).is_err());
                ledger.release(&0);
                assert!(ledger.allocate(&1).is_ok());
                ledger.release(&1);
            }
        });
    }
}

#[test]
fn a_block_is_found_behind_2_to_the_63_used_ones_without_a_walk_over_them() {
    ends("half of fd00::/64 in /128", || {
        let mut ledger = ledger("fd00::/64", 128);
        ledger.occupy(&0, &[parse("fd00::/65").unwrap()]);
        for owner in 1..=1_000 {
            let given = ledger.allocate(&owner).unwrap();
            assert_eq!(given.skipped[0], if owner == 1 { 1 << 63 } else { 0 });
        }
    });
}
