mod access;
mod tokens;

use super::*;
use api_server_double::{ApiServer, Reply};
use log_capture::Capture;
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use serde_json::json;

const AWAY: Result<Value, ReviewFailure> = Err(ReviewFailure::Unreachable);
const REFUSED: Result<Value, ReviewFailure> = Err(ReviewFailure::Refused);

fn backend(server: &ApiServer, registry: &Registry) -> Backend {
    let metrics = BackendMetrics::new(registry, "authn", "authentication").unwrap();
    Backend::new(crate::api_reviews::TOKEN_REVIEWS, server.client().into(), metrics)
}

fn counted(registry: &Registry, code: &str) -> String {
    let families = registry.gather();
    let family =
        families.iter().find(|family| family.name() == "apiserver_delegated_authn_request_total");
    let series = family.into_iter().flat_map(MetricFamily::get_metric);
    let of_code = series.filter(|series| series.get_label()[0].value() == code);
    of_code.map(|series| series.get_counter().get_value().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_asked_five_times() {
    let server = ApiServer::new(|_| Reply::Refused);
    let registry = Registry::new();
    let captured = Capture::begin();
    let begun = Instant::now();
    assert_eq!(backend(&server, &registry).review::<Value>(&json!({})).await, AWAY);
    assert_eq!(server.asked().len(), 5);
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert_eq!(counted(&registry, "<error>"), "5");
    assert_eq!(captured.with("Cannot review bearer tokens").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again() {
    let server = ApiServer::new(|asked| match asked.number {
        0 => Reply::failure(429, "TooManyRequests"),
        1 => Reply::failure(503, "ServiceUnavailable"),
        _ => Reply::Json(201, json!({"well": true})),
    });
    let registry = Registry::new();
    let answer = backend(&server, &registry).review::<Value>(&json!({})).await;
    assert_eq!(answer, Ok(json!({"well": true})));
    assert_eq!([counted(&registry, "429"), counted(&registry, "201")], ["1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_one_line_a_minute_with_its_cure() {
    let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
    let captured = Capture::begin();
    let registry = Registry::new();
    let backend = backend(&server, &registry);
    for _ in 0..130 {
        assert_eq!(backend.review::<Value>(&json!({"spec": {"token": "secret"}})).await, REFUSED);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(server.asked().len(), 130, "asking again at once would not help");
    let lines = captured.with("Cannot review bearer tokens");
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for part in ["--authentication-kubeconfig", "tokenreviews", "system:auth-delegator"] {
        assert!(lines[0].contains(part), "{part} is missing in {}", lines[0]);
    }
    assert!(captured.with("secret").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_is_none() {
    let server = ApiServer::new(|_| Reply::Json(201, json!("nonsense")));
    let registry = Registry::new();
    let answer = backend(&server, &registry).review::<Vec<u8>>(&json!({})).await;
    assert_eq!((answer, server.asked().len()), (Err(ReviewFailure::Refused), 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_failure_is_reported() {
    let server = ApiServer::new(|asked| match asked.number {
        0 => Reply::failure(401, "Unauthorized"),
        _ => Reply::Json(201, json!({})),
    });
    let captured = Capture::begin();
    let registry = Registry::new();
    let backend = backend(&server, &registry);
    assert_eq!(backend.review::<Value>(&json!({})).await, REFUSED);
    for _ in 0..2 {
        assert_eq!(backend.review::<Value>(&json!({})).await, Ok(json!({})));
    }
    assert_eq!(captured.with("renew the credentials of --authentication-kubeconfig").len(), 1);
    assert_eq!(captured.with("Can review bearer tokens again").len(), 1);
}
