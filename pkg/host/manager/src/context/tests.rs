//! Clients for other purposes, and what a failed write means to its key.

use std::time::Duration;

use client::CallError;
use http::Request;
use kube::client::Body;
use prometheus::Registry;

use super::*;
use crate::testing::clients;

#[tokio::test]
async fn no_write_for_another_purpose_leaves_without_the_lease() {
    let registry = Registry::new();
    let throttles = ThrottleMetrics::new(&registry).unwrap();
    let clients = clients(&registry).await;
    let source = ClientSource::new(clients, "tester", false, Fence::closed(), throttles);
    let client = source.for_purpose("work", (-1.0, 1)).unwrap();
    let request = Request::delete("/api/v1/nodes/a").body(Body::empty()).unwrap();
    let answer = client::answer(&client, request, Duration::from_secs(30)).await;
    assert!(matches!(answer, Err(CallError::Fenced)), "{answer:?}");
}

fn retried(why: Why) -> Retry {
    retry(objects::Error { verb: "change", object: "widgets ns/a".into(), why })
}

#[test]
fn the_servers_wish_to_wait_is_no_failure_of_the_key() {
    let asked = Some(Duration::from_secs(7));
    let throttled = retried(Why::Throttled { retry_after: asked });
    assert!(throttled.is_throttled());
    assert_eq!(throttled.pause(), Duration::from_secs(7));
    for nothing in [None, Some(Duration::ZERO)] {
        let throttled = retried(Why::Throttled { retry_after: nothing });
        assert_eq!(throttled.pause(), Duration::from_secs(1), "not at once without end");
    }
}

#[test]
fn an_open_attempt_is_a_failure_that_still_waits_as_the_server_asked() {
    let last = Box::new(Why::Throttled { retry_after: Some(Duration::from_secs(7)) });
    let open = retried(Why::Open { last, settled_at: None });
    assert!(!open.is_throttled());
    assert_eq!(open.pause(), Duration::from_secs(7));
}
