//! The bucket on a paused clock: rate, order, giving up, pausing, and what the metrics show.

use super::*;
use std::time::Duration;

use prometheus::Registry;
use tokio::time::Instant;

use crate::testing::{Log, sample};

fn throttle(qps: f64, burst: u32) -> Throttle {
    let m = ThrottleMetrics::new(&Registry::new()).unwrap();
    Throttle::new("work", qps, burst, &m).unwrap().unwrap()
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[tokio::test(start_paused = true)]
async fn a_full_bucket_lets_its_burst_pass_at_once_and_then_one_per_period() {
    let throttle = throttle(10.0, 3);
    let started = Instant::now();
    for (n, expected) in [0, 0, 0, 100, 200, 300].into_iter().enumerate() {
        throttle.acquire(Instant::now()).await;
        let at = started.elapsed();
        assert!(at >= ms(expected) && at <= ms(expected + 2), "request {n} passed after {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bucket_fills_again_without_requests_but_not_over_its_size() {
    let throttle = throttle(10.0, 3);
    for _ in 0..3 {
        throttle.acquire(Instant::now()).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for _ in 0..3 {
        assert_eq!(throttle.acquire(Instant::now()).await.time, Duration::ZERO);
    }
    assert!(throttle.acquire(Instant::now()).await.time >= ms(98));
}

#[tokio::test(start_paused = true)]
async fn the_rate_may_be_a_fraction() {
    let throttle = throttle(0.4, 1);
    throttle.acquire(Instant::now()).await;
    let wait = throttle.acquire(Instant::now()).await.time;
    assert!(wait >= ms(2_499) && wait <= ms(2_502), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fast_bucket_keeps_its_rate_although_sleeps_are_coarse() {
    let throttle = throttle(5_000.0, 100);
    let started = Instant::now();
    for _ in 0..5_100 {
        throttle.acquire(Instant::now()).await;
    }
    let taken = started.elapsed();
    assert!(taken >= ms(999) && taken <= ms(1_005), "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn callers_pass_in_the_order_in_which_they_came() {
    let throttle = throttle(10.0, 1);
    throttle.acquire(Instant::now()).await;
    let passed = Log::default();
    let callers: Vec<_> = (0..20)
        .map(|n| {
            let (throttle, passed) = (throttle.clone(), Arc::clone(&passed));
            tokio::spawn(async move {
                throttle.acquire(Instant::now()).await;
                passed.lock().push(n);
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*passed.lock(), (0..20).collect::<Vec<_>>());
}

/// Callers whose work began so many seconds ago wait for the same token; the order in which they
/// pass.
async fn order_of(throttle: &Throttle, ages: &[u64]) -> Vec<u64> {
    let (passed, now) = (Log::default(), Instant::now());
    let callers: Vec<_> = ages
        .iter()
        .map(|&age| {
            let (throttle, passed) = (throttle.clone(), Arc::clone(&passed));
            tokio::spawn(async move {
                throttle.acquire(now - Duration::from_secs(age)).await;
                passed.lock().push(age);
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    passed.lock().clone()
}

/// `rule:the-oldest-goes-first`
#[tokio::test(start_paused = true)]
async fn the_oldest_work_passes_first_also_when_it_comes_while_another_waits_for_the_token() {
    tokio::time::advance(Duration::from_secs(3600)).await;
    let throttle = throttle(10.0, 1);
    throttle.acquire(Instant::now()).await;
    assert_eq!(order_of(&throttle, &[3, 5, 0, 9, 1]).await, [9, 5, 3, 1, 0]);
    throttle.pause(Duration::from_secs(1), "uid-1");
    assert_eq!(order_of(&throttle, &[3, 5, 0, 9, 1]).await, [9, 5, 3, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn those_who_waited_for_the_end_of_a_pause_leave_at_one_moment() {
    let throttle = throttle(1_000.0, 100);
    throttle.pause(Duration::from_secs(1), "uid-1");
    let callers: Vec<_> = (0..60)
        .map(|_| {
            let throttle = throttle.clone();
            tokio::spawn(async move {
                let wait = throttle.acquire(Instant::now()).await;
                // The answer to the first that left.
                throttle.pause(Duration::from_secs(1), "uid-2");
                wait
            })
        })
        .collect();
    for caller in callers {
        let wait = caller.await.unwrap();
        assert!(wait.time <= ms(1_002), "{:?}", wait.time);
        assert_eq!(wait.stopped_by.as_deref(), Some("uid-1"));
    }
}

#[tokio::test(start_paused = true)]
async fn all_waiting_callers_get_the_reason_of_the_stop() {
    let throttle = throttle(1.0, 1);
    throttle.acquire(Instant::now()).await;
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let throttle = throttle.clone();
            tokio::spawn(async move { throttle.acquire(Instant::now()).await })
        })
        .collect();
    tokio::task::yield_now().await;
    throttle.pause(Duration::from_secs(5), "uid-1");
    for caller in callers {
        assert_eq!(caller.await.unwrap().stopped_by.as_deref(), Some("uid-1"));
    }
    assert_eq!(throttle.acquire(Instant::now()).await.stopped_by, None);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_at_the_head_hands_it_on() {
    let throttle = throttle(1.0, 1);
    throttle.acquire(Instant::now()).await;
    let mut head = Box::pin(throttle.acquire(Instant::now()));
    assert!(futures::poll!(&mut head).is_pending());
    let mut second = Box::pin(throttle.acquire(Instant::now()));
    let mut third = Box::pin(throttle.acquire(Instant::now()));
    assert!(futures::poll!(&mut second).is_pending());
    assert!(futures::poll!(&mut third).is_pending());
    drop(head);
    // Called to the head and gone before it hears of it.
    drop(second);
    assert!(third.await.time <= ms(1_001));
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_take_the_token_that_the_head_of_the_line_waits_for() {
    let throttle = throttle(3.0, 1);
    throttle.acquire(Instant::now()).await;
    let mut head = Box::pin(throttle.acquire(Instant::now()));
    assert!(futures::poll!(&mut head).is_pending());
    // There is a token after 333.3 ms, but the timer wakes its waiter only after 334.
    tokio::time::advance(Duration::from_micros(333_500)).await;
    let mut newcomer = Box::pin(throttle.acquire(Instant::now()));
    assert!(futures::poll!(&mut newcomer).is_pending());
    head.await;
    assert!(newcomer.await.time >= ms(333));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_takes_no_token_and_delays_no_other() {
    let throttle = throttle(1.0, 1);
    throttle.acquire(Instant::now()).await;
    let impatient: Vec<_> = (0..50)
        .map(|_| {
            let throttle = throttle.clone();
            tokio::spawn(async move {
                tokio::time::timeout(ms(500), throttle.acquire(Instant::now())).await
            })
        })
        .collect();
    tokio::time::sleep(ms(1)).await;
    let patient = throttle.acquire(Instant::now()).await;
    assert!(patient.time <= ms(1_001), "{:?}", patient.time);
    assert_eq!(patient.queue, 51);
    for caller in impatient {
        assert!(caller.await.unwrap().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_also_those_who_are_in_line() {
    let throttle = throttle(10.0, 1);
    throttle.acquire(Instant::now()).await;
    let waiter = tokio::spawn({
        let throttle = throttle.clone();
        async move { throttle.acquire(Instant::now()).await }
    });
    tokio::time::sleep(ms(50)).await;
    throttle.pause(Duration::from_secs(7), "uid-1");
    let wait = waiter.await.unwrap();
    assert!(wait.time >= ms(7_050) && wait.time <= ms(7_052), "{:?}", wait.time);
    assert_eq!(wait.stopped_by.as_deref(), Some("uid-1"));
}

#[tokio::test(start_paused = true)]
async fn a_shorter_pause_does_not_cut_a_longer_one_and_it_ends_by_itself() {
    let throttle = throttle(1_000.0, 1_000);
    throttle.pause(Duration::from_secs(5), "uid-1");
    throttle.pause(Duration::from_secs(1), "uid-2");
    let wait = throttle.acquire(Instant::now()).await;
    assert!(wait.time >= ms(4_999) && wait.time <= ms(5_002), "{:?}", wait.time);
    assert_eq!(throttle.acquire(Instant::now()).await.time, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_only_a_pause_makes_callers_wait() {
    let throttle = Throttle::unlimited("events");
    for _ in 0..10_000 {
        assert_eq!(throttle.acquire(Instant::now()).await.time, Duration::ZERO);
    }
    throttle.pause(Duration::from_secs(2), "uid-1");
    assert!(throttle.acquire(Instant::now()).await.time >= ms(1_999));
}

#[test]
fn a_negative_rate_is_no_limit_and_zero_or_nonsense_is_an_error() {
    let m = ThrottleMetrics::new(&Registry::new()).unwrap();
    assert!(Throttle::new("work", -1.0, 0, &m).unwrap().is_none());
    for (qps, burst, words) in [
        (0.0, 10, "use a number above 0, or -1 for no limit"),
        (f64::NAN, 10, "use a number above 0"),
        (10.0, 0, "the burst must be at least 1"),
        (1e-9, u32::MAX, "the burst must be at least 1"),
    ] {
        let error = Throttle::new("work", qps, burst, &m).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("\"work\""), "{error}");
    }
    Throttle::new("fast", 1e12, u32::MAX, &m).unwrap();
}

#[tokio::test]
async fn every_one_of_many_scrapes_at_once_shows_every_bucket() {
    let registry = Registry::new();
    let m = ThrottleMetrics::new(&registry).unwrap();
    let buckets = ["a", "b", "c"].map(|name| Throttle::new(name, 1.0, 1, &m).unwrap());
    let shown = || {
        let families = registry.gather();
        let levels = families.iter().find(|f| f.name() == "icm_client_bucket_utilization");
        levels.map_or(0, |family| family.get_metric().len())
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| assert_eq!(shown(), buckets.len())));
        }
    });
}

#[tokio::test(start_paused = true)]
async fn the_metrics_show_who_waits_how_long_and_how_full_the_bucket_is() {
    let registry = Registry::new();
    let m = ThrottleMetrics::new(&registry).unwrap();
    let throttle = Throttle::new("work", 1.0, 4, &m).unwrap().unwrap();
    let level = || sample(&registry, "icm_client_bucket_utilization{client=\"work\"}");
    assert!(level().abs() < 1e-9);
    for _ in 0..4 {
        throttle.acquire(Instant::now()).await;
    }
    assert!((level() - 1.0).abs() < 1e-9, "{}", level());
    assert!(sample(&registry, "icm_client_throttled_total{client=\"work\"}").abs() < 1e-9);

    throttle.acquire(Instant::now()).await;
    let one = sample(&registry, "icm_client_throttled_total{client=\"work\"}");
    assert!((one - 1.0).abs() < 1e-9);
    let waited = sample(&registry, "icm_client_throttle_wait_seconds_sum{client=\"work\"}");
    assert!((0.999..1.002).contains(&waited), "{waited}");

    // Without a request the page still shows it filling.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!((level() - 0.5).abs() < 0.01, "{}", level());
}
