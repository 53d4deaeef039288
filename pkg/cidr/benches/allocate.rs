//! Cost of one allocation and one release among 10,000 claims, as one JSON line:
//! `cargo bench -p cidr`. The limit is 10 µs (`rule:cost-follows-claims`).

#![allow(clippy::print_stdout, reason = "the line is the result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cidr::{Exhausted, Ledger, Pool};

const CLAIMS: u32 = 10_000;
const ROUNDS: u32 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut ledger = Ledger::new(pools()?);
    let started = Instant::now();
    for number in 0..CLAIMS {
        ledger.allocate(&owner(number))?;
    }
    let filled = started.elapsed();
    let (allocate, release) = churn(&mut ledger)?;
    println!(
        r#"{{"bench":"cidr/allocate","claims":{CLAIMS},"pools":2,"fill_ns":{},"allocate_ns":{},"release_ns":{}}}"#,
        filled.as_nanos() / u128::from(CLAIMS),
        allocate.as_nanos() / u128::from(ROUNDS),
        release.as_nanos() / u128::from(ROUNDS),
    );
    Ok(())
}

fn pools() -> Result<Vec<Pool>, Box<dyn std::error::Error>> {
    let v4 = Pool::new(cidr::parse("10.0.0.0/8")?, 24, 16)?;
    let v6 = Pool::new(cidr::parse("fd00::/48")?, 64, 16)?;
    Ok(vec![v4, v6])
}

/// Owners shaped like Node UIDs.
fn owner(number: u32) -> Arc<str> {
    format!("{:08x}-5a3c-4c1e-9d2f-{number:012x}", number.wrapping_mul(0x9e37_79b9)).into()
}

/// Replaces one owner after the other, far apart, so that the claims stay at 10,000 and the used
/// blocks in many runs.
fn churn(ledger: &mut Ledger<Arc<str>>) -> Result<(Duration, Duration), Exhausted> {
    let (mut allocate, mut release) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        let gone = owner(round.wrapping_mul(7919) % CLAIMS);
        let started = Instant::now();
        ledger.release(&gone);
        let released = Instant::now();
        ledger.allocate(&gone)?;
        release += released - started;
        allocate += released.elapsed();
    }
    Ok((allocate, release))
}
