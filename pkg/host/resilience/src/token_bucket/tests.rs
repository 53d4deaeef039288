use super::*;

const RATE: Rate = Rate { per_second: 5.0, burst: 20 };

/// Takes as many tokens as there are within `seconds`, and counts them.
fn drain(bucket: &mut TokenBucket, from: Instant, seconds: u64) -> u32 {
    let (mut now, mut taken) = (from, 0);
    let end = from + Duration::from_secs(seconds);
    while now <= end {
        match bucket.take(now) {
            Ok(()) => taken += 1,
            Err(wait) => now += wait,
        }
    }
    taken
}

#[test]
fn a_burst_passes_at_once_and_then_so_many_in_a_second() {
    let now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    assert_eq!(drain(&mut bucket, now, 0), 20);
    assert!(bucket.take(now).is_err());
    let later = drain(&mut bucket, now, 10);
    assert!((48..=50).contains(&later), "{later}");
}

#[test]
fn a_pause_gives_no_more_than_the_burst() {
    let now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    drain(&mut bucket, now, 0);
    assert_eq!(drain(&mut bucket, now + Duration::from_secs(3600), 0), 20);
}

#[test]
fn a_throttle_takes_what_is_left_and_halves_the_rate_for_a_minute() {
    let now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    bucket.throttled(now);
    assert!(bucket.take(now).is_err());
    let slow = drain(&mut bucket, now, 58);
    assert!((135..=146).contains(&slow), "half of 5 in a second: {slow}");
}

#[test]
fn answers_to_calls_sent_together_count_once() {
    let now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    for millis in [0, 50, 900] {
        bucket.throttled(now + Duration::from_millis(millis));
    }
    let slow = drain(&mut bucket, now + Duration::from_secs(1), 40);
    assert!((92..=102).contains(&slow), "half, not an eighth: {slow}");
}

#[test]
fn the_full_rate_comes_back_step_by_step() {
    let now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    bucket.throttled(now);
    let at = |seconds: u64| now + Duration::from_secs(seconds);
    let factors = [30, 59, 75, 85, 120, 300].map(|seconds| bucket.factor(at(seconds)));
    let wanted = [0.5, 0.5, 0.6, 0.7, 1.0, 1.0];
    for (factor, wanted) in factors.iter().zip(wanted) {
        assert!((factor - wanted).abs() < 1e-9, "{factors:?}");
    }
}

#[test]
fn throttles_without_end_leave_a_trickle() {
    let mut now = Instant::now();
    let mut bucket = TokenBucket::new(RATE, now);
    for _ in 0..50 {
        bucket.throttled(now);
        now += Duration::from_secs(5);
    }
    assert!((bucket.factor(now) - SLOWEST).abs() < 1e-9);
    let wait = bucket.take(now + Duration::from_secs(4));
    assert!(wait.is_ok(), "a token every 3.2 s");
}

#[test]
fn a_token_is_there_when_the_wait_for_it_is_over() {
    let start = Instant::now();
    let mut bucket = TokenBucket::new(Rate { per_second: 50.0, burst: 3 }, start);
    let (mut now, mut passed) = (start, Vec::new());
    for _ in 0..6 {
        while let Err(wait) = bucket.take(now) {
            now += wait;
        }
        passed.push((now - start).as_millis());
    }
    assert_eq!(passed, [0, 0, 0, 20, 40, 60]);
    for per_second in [0.3, 7.0, 33.0, 123.4, 999.0] {
        let mut bucket = TokenBucket::new(Rate { per_second, burst: 1 }, start);
        let mut now = start;
        for _ in 0..1_000 {
            bucket.take(now).unwrap();
            now += bucket.take(now).unwrap_err();
        }
    }
}

#[test]
fn the_utilization_falls_while_tokens_come_back() {
    let start = Instant::now();
    let mut bucket = TokenBucket::new(Rate { per_second: 1.0, burst: 4 }, start);
    assert_eq!([0; 4].map(|_| bucket.take(start)), [Ok(()); 4]);
    let at = |seconds| bucket.utilization(start + Duration::from_secs(seconds));
    for (seconds, expected) in [(0, 1.0), (2, 0.5), (4, 0.0), (9, 0.0)] {
        assert!((at(seconds) - expected).abs() < 1e-9, "{}", at(seconds));
    }
}

#[test]
fn a_rate_of_nothing_lets_one_call_pass() {
    for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(Rate { per_second, burst: 0 }, now);
        assert_eq!(bucket.take(now), Ok(()));
        assert!(bucket.take(now).is_err());
        assert_eq!(bucket.take(now + Duration::from_secs(86_400)), Ok(()));
    }
}
