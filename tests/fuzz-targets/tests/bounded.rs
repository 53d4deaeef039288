//! Every fuzz target for a moment, on inputs from a seed: without coverage, on the compiler as it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use fuzz_targets::{Mutator, TARGETS, Target};

/// Ten times what `scripts/fuzz` allows an optimised build.
const SLOW: Duration = Duration::from_secs(1);
/// For each target.
const LENGTH: Duration = Duration::from_secs(2);

/// Shows the input when its body panics.
struct Shown<'a>(&'a str, u64, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{} with FUZZ_SEED={}: {:?}",
                self.0,
                self.1,
                self.2.escape_ascii().to_string()
            );
        }
    }
}

fn fuzz(target: &Target, seed: u64) -> (u64, Duration) {
    let (mut executions, mut slowest) = (0, Duration::ZERO);
    let mut run = |input: &[u8]| {
        let _shown = Shown(target.name, seed, input);
        let took = target.timed(input, SLOW);
        assert!(took < SLOW, "{}: an input took {took:?}", target.name);
        executions += 1;
        slowest = slowest.max(took);
    };
    run(b"");
    let seeds = (target.seeds)();
    for seed in &seeds {
        run(seed);
    }
    let (mut mutator, begun) = (Mutator::new(seed, seeds), Instant::now());
    while begun.elapsed() < LENGTH {
        run(&mutator.input());
    }
    (executions, slowest)
}

#[test]
fn no_target_panics_or_takes_a_second() {
    let text = std::env::var("FUZZ_SEED").ok();
    let seed = text.map_or(1, |text| text.parse().unwrap());
    for target in TARGETS {
        let (executions, slowest) = fuzz(target, seed);
        eprintln!(
            "{}: {executions} inputs from seed {seed}, the slowest took {slowest:?}",
            target.name
        );
    }
}
