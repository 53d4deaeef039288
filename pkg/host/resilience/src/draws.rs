//! [`draw`]: the random numbers that spread waits and periods. A simulation seeds those of its thread, so
//! that a run can be repeated.

use std::cell::RefCell;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A random number in `[0, 1)`.
pub fn draw() -> f64 {
    let seeded = SEEDED.with_borrow_mut(|seeded| Some(seeded.as_mut()?.random()));
    seeded.unwrap_or_else(rand::random)
}

/// From now on [`draw`] returns the numbers of this seed on this thread; with `None`, those of the system.
pub fn seed_draws(seed: Option<u64>) {
    SEEDED.set(seed.map(StdRng::seed_from_u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> [u64; 3] {
        [draw(), draw(), draw()].map(f64::to_bits)
    }

    #[test]
    fn a_seed_repeats_its_numbers_until_it_is_taken_away() {
        seed_draws(Some(7));
        let first = three();
        seed_draws(Some(7));
        assert_eq!(three(), first);
        seed_draws(Some(8));
        assert_ne!(three(), first);
        seed_draws(None);
        assert_ne!(three(), first);
        assert!(first.iter().all(|it| (0.0..1.0).contains(&f64::from_bits(*it))), "{first:?}");
    }
}
