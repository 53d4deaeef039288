//! Proofs of a standby on a paused clock: each condition by itself, and a simulation with random
//! faults. `WARM_SEEDS` is the number of its seeds, `WARM_SEED` the first.

mod conditions;
mod simulation;
mod world;

use std::env;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
