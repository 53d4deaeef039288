//! Tests of the requests that take a token, and of those that a 429 stops; on a paused clock.

mod log;

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use prometheus::Registry;
use tokio::time::Instant;

use crate::ThrottleMetrics;
use crate::testing::{Log, Reply, metrics, reply, reply_after, request, sample};

/// The number of refusals that is more than half of the window.
const MOST: usize = 33;
const UID: &str = "d0b5f1f2-7d0e-4f5c-9a3b-0c6f4f0a1b2c";

fn throttle(qps: f64) -> Option<Throttle> {
    Throttle::new("work", qps, 1, &ThrottleMetrics::new(&Registry::new()).unwrap()).unwrap()
}

/// Attempts that give `answers` in turn, then 200; notes when each began.
fn attempts(
    answers: Vec<Reply>,
) -> (impl Sender<Answer = Full<Bytes>, Error = CallError> + Clone, Log<Duration>) {
    let times: Log<Duration> = Log::default();
    let started = Instant::now();
    let service = {
        let times = Arc::clone(&times);
        move |_: Request<Body>| {
            times.lock().push(started.elapsed());
            let n = times.lock().len();
            let answer = answers.get(n - 1).cloned().unwrap_or_else(|| reply(200));
            async move { Ok(answer) }
        }
    };
    (service, times)
}

fn seconds(times: &Log<Duration>) -> Vec<u64> {
    times.lock().iter().map(Duration::as_secs).collect()
}

/// When those began that came after the refusal which made them most.
fn seconds_after_most(times: &Log<Duration>) -> Vec<u64> {
    let seconds = seconds(times);
    assert_eq!(seconds[..MOST], [0; MOST]);
    seconds[MOST..].to_vec()
}

#[tokio::test(start_paused = true)]
async fn every_call_pays_a_token_and_a_watch_pays_none() {
    let (inner, times) = attempts(vec![]);
    let gate = ThrottleLayer::new(inner, throttle(1.0), metrics().0);
    for uri in ["/a", "/a?watch=true", "/a?watch=1", "/a"] {
        gate.send(request(Method::GET, uri)).await.unwrap();
    }
    assert_eq!(seconds(&times), [0, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_all_stops_the_whole_client_its_other_calls_included() {
    let (inner, times) = attempts(vec![reply_after(429, "9"); MOST]);
    let gate = ThrottleLayer::new(inner, throttle(1_000.0), metrics().0);
    for _ in 0..MOST {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    gate.send(request(Method::GET, "/another")).await.unwrap();
    assert_eq!(seconds_after_most(&times), [9]);
}

/// `rule:many-429s-stop-the-bucket`
#[tokio::test(start_paused = true)]
async fn a_429_among_other_answers_stops_no_other_request() {
    let (inner, times) = attempts(vec![reply(200), reply_after(429, "9")]);
    let gate = ThrottleLayer::new(inner, throttle_with_burst(), metrics().0);
    for _ in 0..3 {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    assert_eq!(seconds(&times), [0, 0, 0]);
}

/// `rule:many-429s-stop-the-bucket`
#[tokio::test(start_paused = true)]
async fn a_429_that_is_the_first_answer_of_all_stops_no_other_request() {
    let (inner, times) = attempts(vec![reply_after(429, "9")]);
    let gate = ThrottleLayer::new(inner, throttle_with_burst(), metrics().0);
    for _ in 0..2 {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    assert_eq!(seconds(&times), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_429_that_asks_for_an_hour_stops_the_client_for_a_minute() {
    let (inner, times) = attempts(vec![reply_after(429, "3600"); MOST]);
    let gate = ThrottleLayer::new(inner, throttle(1_000.0), metrics().0);
    for _ in 0..=MOST {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    assert_eq!(seconds_after_most(&times), [60]);
}

#[tokio::test(start_paused = true)]
async fn a_429_stops_an_unlimited_client_as_well() {
    let (inner, times) = attempts(vec![reply_after(429, "9"); MOST]);
    let gate = ThrottleLayer::new(inner, Some(Throttle::unlimited("work")), metrics().0);
    for _ in 0..MOST + 2 {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    assert_eq!(seconds_after_most(&times), [9, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_429_without_time_stops_nothing_and_other_answers_neither() {
    for answer in [reply(429), reply_after(503, "9"), reply_after(200, "9")] {
        let (inner, times) = attempts(vec![answer; MOST]);
        let gate = ThrottleLayer::new(inner, throttle(1_000.0), metrics().0);
        for _ in 0..=MOST {
            gate.send(request(Method::PATCH, "/a")).await.unwrap();
        }
        assert_eq!(seconds_after_most(&times), [0]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_waits_for_nothing() {
    let (inner, times) = attempts(vec![reply_after(429, "9"); MOST]);
    let gate = ThrottleLayer::new(inner, None, metrics().0);
    for _ in 0..=MOST {
        gate.send(request(Method::PUT, "/lease")).await.unwrap();
    }
    assert_eq!(seconds_after_most(&times), [0]);
}

#[tokio::test(start_paused = true)]
async fn waits_and_the_servers_refusals_are_counted() {
    let (metrics, registry) = metrics();
    let mut refusal = reply_after(429, "1");
    refusal.headers_mut().insert(FLOW_SCHEMA, http::HeaderValue::from_static(UID));
    let (inner, _) = attempts(vec![refusal; MOST]);
    let gate = ThrottleLayer::new(inner, throttle_with_burst(), metrics);
    for _ in 0..=MOST {
        gate.send(request(Method::PATCH, "/a")).await.unwrap();
    }
    let refused =
        format!("icm_client_server_throttled_total{{client=\"work\",flow_schema=\"{UID}\"}}");
    assert!((sample(&registry, &refused) - 33.0).abs() < 1e-9);
    let waited = "rest_client_rate_limiter_duration_seconds_sum{host=\"api:6443\",verb=\"PATCH\"}";
    assert!((sample(&registry, waited) - 1.0).abs() < 0.01);
    let asked = "rest_client_rate_limiter_duration_seconds_count{host=\"api:6443\",verb=\"PATCH\"}";
    assert!((sample(&registry, asked) - 34.0).abs() < 1e-9);
}

#[test]
fn only_a_uid_becomes_a_label() {
    let long = "a".repeat(37);
    let rows = [
        (Some(UID), UID),
        (Some("unknown schema"), "unknown"),
        (Some("node-high"), "unknown"),
        (Some(&long), "unknown"),
        (Some(""), "unknown"),
        (None, "unknown"),
    ];
    for (given, label) in rows {
        let mut headers = HeaderMap::new();
        if let Some(given) = given {
            headers.insert(FLOW_SCHEMA, given.parse().unwrap());
        }
        assert_eq!(flow_schema(&headers), label, "{given:?}");
    }
}

/// The result of one caller.
#[derive(Debug)]
struct Served {
    waited: Duration,
    refusals: u32,
}

/// A server that refuses the writes whose number, counted from 0, `refuses` accepts, with
/// `Retry-After: 1`, and is quicker to refuse than to write. Callers come at these moments, in
/// milliseconds, and try until they succeed, 64 at a time; whoever is refused comes back after the
/// second.
async fn served(arrivals: &[u64], refuses: fn(u64) -> bool) -> Vec<Served> {
    served_slowly(arrivals, refuses, 5).await.0
}

/// Like [`served`], with writes that take so many milliseconds; and how long all requests together
/// waited for the bucket, in seconds.
async fn served_slowly(
    arrivals: &[u64],
    refuses: fn(u64) -> bool,
    millis: u64,
) -> (Vec<Served>, f64) {
    let asked = Arc::new(AtomicU64::new(0));
    let server = move |_: Request<Body>| {
        let refused = refuses(asked.fetch_add(1, Ordering::Relaxed));
        async move {
            tokio::time::sleep(Duration::from_millis(if refused { 1 } else { millis })).await;
            Ok(if refused { reply_after(429, "1") } else { reply(200) })
        }
    };
    let (metrics, registry) = metrics();
    let gate = Arc::new(ThrottleLayer::new(server, throttle_with_burst(), metrics));
    let workers = Arc::new(tokio::sync::Semaphore::new(64));
    let started = Instant::now();
    let callers: Vec<_> = arrivals
        .iter()
        .map(|&at| {
            let (gate, workers) = (Arc::clone(&gate), Arc::clone(&workers));
            let since = started + Duration::from_millis(at);
            tokio::spawn(async move {
                tokio::time::sleep_until(since).await;
                let mut refusals = 0;
                loop {
                    let worker = workers.acquire().await.unwrap();
                    let mut write = request(Method::PATCH, "/api/v1/nodes/a");
                    write.extensions_mut().insert(WaitingSince(since));
                    if gate.send(write).await.unwrap().status().is_success() {
                        return Served { waited: since.elapsed(), refusals };
                    }
                    drop(worker);
                    refusals += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.push(caller.await.unwrap());
    }
    let waited = "rest_client_rate_limiter_duration_seconds_sum{host=\"api:6443\",verb=\"PATCH\"}";
    (all, sample(&registry, waited))
}

fn throttle_with_burst() -> Option<Throttle> {
    Throttle::new("work", 500.0, 1_000, &ThrottleMetrics::new(&Registry::new()).unwrap()).unwrap()
}

/// `rule:the-oldest-goes-first`
#[tokio::test(start_paused = true)]
async fn of_sixty_writes_of_which_every_third_is_refused_for_a_second_none_waits_longer_than_five()
{
    let all = served(&[0; 60], |n| n % 3 == 2).await;
    let longest = all.iter().map(|served| served.waited).max().unwrap();
    assert!(longest <= Duration::from_secs(5), "{longest:?}");
}

/// `rule:many-429s-stop-the-bucket`
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_at_once_and_writes_slowly_does_not_stop_the_client() {
    let (all, waited) = served_slowly(&[0; 400], |n| n % 3 == 2, 400).await;
    assert!(all.iter().map(|one| one.refusals).sum::<u32>() >= 150);
    assert!(waited < 0.1, "requests waited for {waited} seconds");
}

/// `rule:the-oldest-goes-first`
#[tokio::test(start_paused = true)]
async fn in_a_steady_flow_a_request_waits_for_its_own_refusals_and_at_most_one_of_others() {
    // One in three at random, the same each time.
    let one_in_three = |n: u64| {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33).is_multiple_of(3)
    };
    let twenty_per_second: Vec<u64> = (0..600).map(|n| n * 50).collect();
    let all = served(&twenty_per_second, one_in_three).await;
    for one in &all {
        let limit = Duration::from_millis(1_010) * (one.refusals + 1);
        assert!(one.waited <= limit, "{one:?}");
    }
    assert!(all.iter().any(|one| one.refusals >= 3), "some are refused several times");
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_reported_a_second_after_its_beginning_and_at_its_end() {
    let captured = log_capture::Capture::begin();
    let (log, throttle) = (WaitLog::new(), throttle(1_000.0).unwrap());
    let url = http::Uri::from_static("/a");
    throttle.pause(Duration::from_secs(30), "uid-1");
    let waiting = Waiting { throttle: &throttle, method: &Method::PATCH, url: &url };
    let mut wait = Box::pin(wait_for_token(waiting, Instant::now(), &log));
    assert!(timeout(Duration::from_millis(1_100), &mut wait).await.is_err());
    let told = captured.take();
    assert!(told.iter().any(|line| line.contains("Waiting before sending")), "{told:?}");
    wait.await;
    let told = captured.take();
    assert!(told.iter().any(|line| line.contains("Waited before sending")), "{told:?}");
}
