//! The retry table, row by row, on a paused clock.

use bytes::Bytes;
use http_body_util::Full;
use tower::service_fn;

use super::*;
use crate::request::AttemptTimeout;
use crate::testing::{Log, Reply, metrics, reply, reply_after, request, sample};

/// Sends one request through the layer to a service that gives `outcomes` in turn, the last one for
/// ever. Returns what the caller got, the number of attempts, and the time.
async fn run(
    enabled: bool,
    method: Method,
    outcomes: impl Fn(usize) -> Result<Reply, CallError> + Send + Sync + 'static,
) -> (Result<Reply, CallError>, usize, Duration) {
    let attempts: Log<Request<Body>> = Log::default();
    let outcomes = Arc::new(outcomes);
    let inner = service_fn({
        let attempts = Arc::clone(&attempts);
        move |request: Request<Body>| {
            let n = {
                let mut attempts = attempts.lock();
                attempts.push(request);
                attempts.len()
            };
            let outcome = outcomes(n);
            async move { outcome }
        }
    });
    let started = Instant::now();
    let outcome = Retry::new(inner, enabled, metrics().0).oneshot(request(method, "/a")).await;
    let attempts = attempts.lock().len();
    (outcome, attempts, started.elapsed())
}

fn lost() -> CallError {
    CallError::Transport("connection reset".into())
}

#[tokio::test(start_paused = true)]
async fn each_row_of_the_table_is_repeated_or_not() {
    type Outcome = fn() -> Result<Reply, CallError>;
    let rows: [(&str, Outcome, bool, bool); 10] = [
        ("429 with Retry-After", || Ok(reply_after(429, "2")), true, true),
        ("503 with Retry-After", || Ok(reply_after(503, "2")), true, true),
        ("500 with Retry-After", || Ok(reply_after(500, "2")), true, true),
        ("429 without", || Ok(reply(429)), true, false),
        ("504 without", || Ok(reply(504)), false, false),
        ("409 with Retry-After", || Ok(reply_after(409, "2")), false, false),
        ("connection lost", || Err(lost()), true, false),
        ("nothing sent", || Err(CallError::NotSent("refused".into())), false, false),
        ("no answer in time", || Err(CallError::Timeout), false, false),
        ("fenced", || Err(CallError::Fenced), false, false),
    ];
    for (what, outcome, for_reads, for_writes) in rows {
        let rules =
            [(Method::GET, for_reads), (Method::POST, for_writes), (Method::PATCH, for_writes)];
        for (method, repeated) in rules {
            let script = move |n| if n == 1 { outcome() } else { Ok(reply(200)) };
            let (_, attempts, _) = run(true, method.clone(), script).await;
            assert_eq!(attempts, 1 + usize::from(repeated), "{method} after {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_servers_time_is_kept_to_and_a_second_where_it_gives_none() {
    let script = |n| Ok(if n == 1 { reply_after(429, "7") } else { reply(200) });
    assert_eq!(run(true, Method::POST, script).await.2, Duration::from_secs(7));
    let script = |n| if n == 1 { Err(lost()) } else { Ok(reply(200)) };
    assert_eq!(run(true, Method::GET, script).await.2, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn after_ten_repetitions_the_caller_gets_the_last_answer() {
    let (outcome, attempts, _) = run(true, Method::GET, |_| Ok(reply_after(503, "1"))).await;
    assert_eq!(outcome.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(attempts, 11);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_layer_never_repeats() {
    let (outcome, attempts, time) = run(false, Method::PATCH, |_| Ok(reply_after(429, "1"))).await;
    assert_eq!(outcome.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!((attempts, time), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_repetition_carries_the_same_headers_body_and_limits() {
    let seen: Log<(Option<Bytes>, bool, bool)> = Log::default();
    let inner = service_fn({
        let seen = Arc::clone(&seen);
        move |request: Request<Body>| {
            let seen = Arc::clone(&seen);
            async move {
                let header = request.headers().contains_key("accept");
                let limit = request.extensions().get::<AttemptTimeout>().is_some();
                let body = request.into_body().collect_bytes().await.ok();
                seen.lock().push((body, header, limit));
                Ok::<_, CallError>(reply_after(429, "1"))
            }
        }
    });
    let mut request = request(Method::PATCH, "/a");
    request.headers_mut().insert("accept", http::HeaderValue::from_static("application/json"));
    request.extensions_mut().insert(AttemptTimeout(Duration::from_secs(5)));
    Retry::new(inner, true, metrics().0).oneshot(request).await.unwrap();
    let seen = seen.lock();
    assert_eq!(seen.len(), 11);
    assert!(seen.iter().all(|s| *s == (Some(Bytes::from_static(b"{}")), true, true)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_whole_request_is_measured_and_repetitions_are_counted_by_their_answer() {
    let (metrics, registry) = metrics();
    let count = Arc::new(parking_lot::Mutex::new(0));
    let inner = service_fn(move |_: Request<Body>| {
        *count.lock() += 1;
        let n = *count.lock();
        async move {
            Ok::<Response<Full<Bytes>>, CallError>(if n < 3 {
                reply_after(503, "2")
            } else {
                reply(200)
            })
        }
    });
    let retry = Retry::new(inner, true, metrics);
    retry.clone().oneshot(request(Method::PUT, "/a")).await.unwrap();
    retry.oneshot(request(Method::GET, "/a?watch=true")).await.unwrap();
    for (series, expected) in [
        ("rest_client_request_retries_total{code=\"503\",host=\"api:6443\",verb=\"PUT\"}", 1.0),
        ("rest_client_request_retries_total{code=\"200\",host=\"api:6443\",verb=\"PUT\"}", 1.0),
        ("rest_client_request_duration_seconds_sum{host=\"api:6443\",verb=\"PUT\"}", 4.0),
        ("rest_client_request_duration_seconds_count{host=\"api:6443\",verb=\"GET\"}", 0.0),
    ] {
        assert!((sample(&registry, series) - expected).abs() < 0.01, "{series}");
    }
}
