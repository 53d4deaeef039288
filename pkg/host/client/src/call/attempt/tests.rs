//! Time limits on a paused clock, and what is counted.

use super::*;
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus::Registry;
use resilience::Fenced;

use crate::call::request::AttemptTimeout;
use crate::call::throttle_layer::ThrottleLayer;
use crate::testing::{Reply, metrics, page, reply, request, sample};
use crate::{Throttle, ThrottleMetrics};

/// A server that takes the body and never answers.
async fn silent(request: Request<Body>) -> Result<Reply, BoxError> {
    let progress = request.extensions().get::<Arc<Progress>>().cloned();
    if let Some(progress) = progress {
        assert!(progress.take_body(Duration::from_secs(1)));
    }
    std::future::pending().await
}

/// How long `request` may take, and what it ends with.
async fn limit_of(request: Request<Body>) -> (Duration, CallError) {
    let started = Instant::now();
    let outcome = AttemptLayer::new(silent, metrics().0).send(request).await;
    (started.elapsed(), outcome.err().unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_30_s_a_list_after_60_s_and_an_explicit_limit_wins() {
    let (time, error) = limit_of(request(Method::PATCH, "/a")).await;
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    assert_eq!(time.as_secs(), 30);

    let mut list = request(Method::GET, "/nodes");
    list.extensions_mut().insert("list");
    assert_eq!(limit_of(list).await.0.as_secs(), 60);

    let mut lease = request(Method::PUT, "/lease");
    lease.extensions_mut().insert(AttemptTimeout(Duration::from_secs(5)));
    assert_eq!(limit_of(lease).await.0.as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_wait_for_ever() {
    let watch = limit_of(request(Method::GET, "/nodes?watch=true"));
    let a_day = Duration::from_secs(86_400);
    assert!(tokio::time::timeout(a_day, watch).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_token_is_no_part_of_the_limit() {
    let m = ThrottleMetrics::new(&Registry::new()).unwrap();
    let throttle = Throttle::new("work", 0.01, 1, &m).unwrap();
    let answering = |_: Request<Body>| async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Ok::<_, BoxError>(reply(200))
    };
    let gate = ThrottleLayer::new(AttemptLayer::new(answering, metrics().0), throttle, metrics().0);
    let started = Instant::now();
    for _ in 0..2 {
        let mut request = request(Method::PATCH, "/a");
        request.extensions_mut().insert(AttemptTimeout(Duration::from_secs(5)));
        gate.send(request).await.unwrap();
    }
    assert_eq!(started.elapsed().as_secs(), 104, "100 s for the token, 4 s for the answer");
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_body_was_never_taken_is_known_not_to_be_written() {
    let connecting = |_: Request<Body>| std::future::pending::<Result<Reply, BoxError>>();
    let attempt = AttemptLayer::new(connecting, metrics().0);
    let error = attempt.send(request(Method::PATCH, "/a")).await.err().unwrap();
    assert!(matches!(error, CallError::NotSent(_)), "{error}");

    // A request without a body may have left unseen.
    let error = attempt.send(request(Method::GET, "/a")).await.err().unwrap();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_counted_by_its_answer_and_watches_have_no_duration() {
    let (metrics, registry) = metrics();
    let answer = |outcome: fn() -> Result<Reply, BoxError>| {
        AttemptLayer::new(move |_: Request<Body>| async move { outcome() }, Arc::clone(&metrics))
    };
    answer(|| Ok(reply(200))).send(request(Method::PATCH, "/a")).await.unwrap();
    answer(|| Ok(reply(409))).send(request(Method::PATCH, "/b")).await.unwrap();
    answer(|| Err(Fenced.into())).send(request(Method::PATCH, "/c")).await.err().unwrap();
    answer(|| Ok(reply(200))).send(request(Method::GET, "/d?watch=true")).await.unwrap();

    for (code, method) in [("200", "PATCH"), ("409", "PATCH"), ("<error>", "PATCH"), ("200", "GET")]
    {
        let series = format!(
            "rest_client_requests_total{{code=\"{code}\",host=\"api:6443\",method=\"{method}\"}}"
        );
        assert!((sample(&registry, &series) - 1.0).abs() < 1e-9, "{series}");
    }
    assert!((sample(&registry, "icm_fenced_requests_total") - 1.0).abs() < 1e-9);
    let timed = |verb| {
        sample(
            &registry,
            &format!(
                "icm_server_request_duration_seconds_count{{client=\"work\",verb=\"{verb}\"}}"
            ),
        )
    };
    assert!((timed("PATCH") - 3.0).abs() < 1e-9);
    assert!(timed("GET").abs() < 1e-9);
    assert!(!page(&registry).contains("/a"), "a path is never a label");
}

#[tokio::test]
async fn sizes_of_bodies_are_measured_in_both_directions() {
    use http_body_util::BodyExt as _;
    let (metrics, registry) = metrics();
    let big = |_: Request<Body>| async {
        Ok::<_, BoxError>(Response::new(http_body_util::Full::new(Bytes::from(vec![b'x'; 3000]))))
    };
    let attempt = AttemptLayer::new(big, Arc::clone(&metrics));
    let response = attempt.send(request(Method::PATCH, "/a")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 3000);
    for (series, expected) in [
        ("rest_client_request_size_bytes_sum{host=\"api:6443\",verb=\"PATCH\"}", 2.0),
        ("rest_client_response_size_bytes_sum{host=\"api:6443\",verb=\"PATCH\"}", 3000.0),
    ] {
        assert!((sample(&registry, series) - expected).abs() < 1e-9, "{series}");
    }
}

mod warnings {
    use http::HeaderValue;

    use super::super::*;

    #[test]
    fn the_text_is_what_is_quoted() {
        for (header, expected) in [
            (r#"299 - "v1 Endpoints is deprecated""#, Some("v1 Endpoints is deprecated")),
            (r#"299 kube "unknown field \"spec.x\"" "date""#, Some("unknown field \"spec.x\"")),
            (r#"199 - "something else""#, None),
            (r#"299 - "without an end"#, None),
            ("299 -", None),
            ("", None),
        ] {
            assert_eq!(text(header).as_deref(), expected, "{header}");
        }
        let long = format!("299 - \"{}\"", "x".repeat(100_000));
        assert_eq!(text(&long).unwrap().len(), LENGTH);
    }

    #[test]
    fn each_text_is_reported_once_and_only_so_many() {
        let warnings = ServerWarnings::new();
        let log = log_capture::Capture::begin();
        let mut headers = HeaderMap::new();
        for text in ["one", "two", "one"] {
            let value = HeaderValue::from_str(&format!("299 - {text:?}")).unwrap();
            headers.append(WARNING, value);
        }
        warnings.tell(&headers);
        warnings.tell(&headers);
        let told = log.with("The API server warns");
        assert_eq!(told.len(), 2, "{told:?}");
        for number in 0..2 * KINDS {
            warnings.is_new(&number.to_string());
        }
        assert_eq!(warnings.0.lock().len(), KINDS);
    }
}
