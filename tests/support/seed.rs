//! Seeds of tests that draw at random: each is printed, and can be set.

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// Numbers from the seed in this variable of the environment, or from one of their own. The seed is printed, and
/// shown when the test fails.
///
/// # Panics
/// The variable holds something else than a number.
pub fn random(variable: &str) -> StdRng {
    let set = std::env::var(variable).ok();
    let seed = set.map_or_else(rand::random, |text| text.parse().expect("a seed is a number"));
    eprintln!("{variable}={seed}");
    StdRng::seed_from_u64(seed)
}
