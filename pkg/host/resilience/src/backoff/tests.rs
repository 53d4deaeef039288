//! Growth, cap and jitter of one wait, and the waits of a series.

use proptest::prelude::*;

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const S: fn(u64) -> Duration = Duration::from_secs;
const STEADY: Backoff = Backoff {
    first: Duration::from_millis(10),
    factor: 2.0,
    cap: Duration::from_secs(1),
    jitter: Jitter::None,
};

#[test]
fn each_failure_multiplies_the_wait_up_to_the_cap() {
    let waits: Vec<Duration> = (0..9).map(|failures| STEADY.delay(failures)).collect();
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000].map(MS));
    let thrice = Backoff { factor: 3.0, ..STEADY };
    assert_eq!([0, 1, 2].map(|failures| thrice.delay(failures)), [10, 30, 90].map(MS));
    let constant = Backoff { factor: 1.0, ..STEADY };
    assert_eq!(constant.delay(100), MS(10));
}

#[test]
fn the_short_form_doubles() {
    assert_eq!(Backoff::doubling(MS(10), Duration::from_secs(1), Jitter::None), STEADY);
}

#[test]
fn any_number_of_failures_and_any_length_stay_within_what_a_duration_holds() {
    assert_eq!(STEADY.delay(u32::MAX), STEADY.cap);
    assert_eq!(Backoff { first: Duration::ZERO, ..STEADY }.delay(u32::MAX), Duration::ZERO);
    let endless = Backoff { cap: Duration::MAX, jitter: Jitter::Above(5.0), ..STEADY };
    assert_eq!(endless.delay_drawn(u32::MAX, 0.9), Duration::MAX);
    let shrinking = Backoff { factor: 0.5, ..STEADY };
    assert_eq!(shrinking.delay(10), MS(10), "waits never shrink");
}

#[test]
fn jitter_spans_its_fraction_to_the_sides_it_names() {
    let around = Backoff { jitter: Jitter::Around(0.5), ..STEADY };
    assert_eq!([0.0, 0.5, 1.0].map(|draw| around.delay_drawn(1, draw)), [10, 20, 30].map(MS));
    let above = Backoff { jitter: Jitter::Above(0.5), ..STEADY };
    assert_eq!([0.0, 0.5, 1.0].map(|draw| above.delay_drawn(1, draw)), [20, 25, 30].map(MS));
    let absurd = Backoff { jitter: Jitter::Around(7.0), ..STEADY };
    assert_eq!([0.0, 1.0].map(|draw| absurd.delay_drawn(1, draw)), [0, 40].map(MS));
    for negative in [Jitter::Around(-1.0), Jitter::Above(-1.0)] {
        assert_eq!(Backoff { jitter: negative, ..STEADY }.delay_drawn(1, 0.9), MS(20));
    }
}

#[test]
fn the_draw_is_random() {
    let around = Backoff { jitter: Jitter::Around(1.0), ..STEADY };
    let waits: std::collections::HashSet<Duration> = (0..100).map(|_| around.delay(3)).collect();
    assert!(waits.len() > 50, "{} different waits in 100", waits.len());
}

fn series() -> Series {
    Series::new(Backoff::doubling(S(1), S(8), Jitter::None))
}

#[test]
fn waits_grow_with_each_failure_until_reset() {
    let (mut series, now) = (series(), Instant::now());
    assert_eq!([0; 5].map(|_| series.fail(now)), [1, 2, 4, 8, 8].map(S));
    assert_eq!(series.failures(), 5);
    series.reset();
    assert_eq!((series.failures(), series.fail(now)), (0, S(1)));
}

#[test]
fn without_a_time_to_forget_only_a_reset_ends_a_row() {
    let (mut series, now) = (series(), Instant::now());
    series.fail(now);
    assert_eq!(series.fail(now + S(1_000_000)), S(2));
}

#[test]
fn quiet_time_counts_from_the_end_of_the_wait_and_ends_the_row_when_it_is_over() {
    let (mut series, now) = (series().forget_after(S(120)), Instant::now());
    series.fail(now);
    series.fail(now + S(1));
    let wait_ends = now + S(1) + S(2);
    assert_eq!(series.clone().fail(wait_ends + S(120)), S(4));
    assert_eq!(series.fail(wait_ends + S(120) + Duration::from_nanos(1)), S(1));
    assert_eq!(series.failures(), 1);
}

proptest! {
    #[test]
    fn waits_never_shrink_and_never_pass_the_cap(
        first in 0_u64..100_000, factor in 0.0..10.0_f64, cap in 0_u64..1_000_000, failures in 0_u32..200,
    ) {
        let backoff = Backoff { first: MS(first), factor, cap: MS(cap), jitter: Jitter::None };
        let (now, next) = (backoff.delay(failures), backoff.delay(failures + 1));
        prop_assert!(now <= next && next <= backoff.cap);
    }

    #[test]
    fn jitter_keeps_to_its_fraction(fraction in 0.0..1.0_f64, draw in 0.0..1.0_f64) {
        let wait = MS(1000).as_secs_f64();
        let around = Jitter::Around(fraction).apply(MS(1000), draw).as_secs_f64();
        prop_assert!((around - wait).abs() <= wait * fraction + 1e-9);
        let above = Jitter::Above(fraction).apply(MS(1000), draw).as_secs_f64();
        prop_assert!(above >= wait - 1e-9 && above <= wait * (1.0 + fraction) + 1e-9);
    }
}

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
