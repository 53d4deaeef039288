//! Consequences of each answer: retries, drops and log lines.

use log_capture::Capture;

use super::*;

#[tokio::test(start_paused = true)]
async fn passing_failures_are_retried_five_seconds_apart_and_the_first_earlier() {
    let script = |asked: &Asked| match asked.number {
        0 => Reply::Refused,
        1 => Reply::failure(503, "ServiceUnavailable"),
        2 => Reply::failure(429, "TooManyRequests"),
        _ => Reply::stored(asked),
    };
    let server = ApiServer::new(script);
    let (recorder, _broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    let seen = server.until_asked(4).await;
    let pauses: Vec<_> = seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let about = |pause: Duration| pause >= 5 * SECOND && pause < 5 * SECOND + SECOND / 10;
    assert!(pauses[0] <= 5 * SECOND + SECOND / 10, "{pauses:?}");
    assert!(about(pauses[1]) && about(pauses[2]), "{pauses:?}");
    assert_eq!(metrics.dropped(DropReason::Unreachable), 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_for_good_are_counted_and_not_repeated() {
    let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
    let (recorder, broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.asked().len(), 1);
    assert_eq!(metrics.dropped(DropReason::Rejected), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_namespace_terminates_is_done_with() {
    let terminating = || {
        Reply::Json(
            403,
            json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "namespace is terminating",
                "details": {"causes": [{"reason": "NamespaceTerminating", "message": "terminating"}]},
            }),
        )
    };
    let server = ApiServer::new(move |_: &Asked| terminating());
    let (recorder, broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.asked().len(), 1);
    assert_eq!(metrics.dropped(DropReason::Rejected), 0);
}

/// A server that has an Event of this reporter and time already, three times counted.
fn has_it(reporter: &'static str, last: &'static str) -> ApiServer {
    ApiServer::new(move |asked: &Asked| match *asked.method() {
        Method::POST => Reply::failure(409, "AlreadyExists"),
        _ if asked.json() == json!({}) => Reply::Json(
            200,
            json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": "n.1"},
                "involvedObject": {}, "count": 3, "reportingInstance": reporter,
                "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": last,
            }),
        ),
        _ => Reply::stored(asked),
    })
}

#[tokio::test(start_paused = true)]
async fn an_event_of_the_leader_before_is_counted_on() {
    for reporter in ["host_0", "host_1"] {
        let server = has_it(reporter, "2026-01-01T00:05:00Z");
        let (recorder, broadcaster, metrics) = pipeline(&server);
        tell(&recorder, "n", "no block");
        tell(&recorder, "n", "no block");
        broadcaster.flush(100 * SECOND).await;
        let counts: Vec<_> = server.asked().iter().map(|it| it.json()["count"].as_u64()).collect();
        assert_eq!(counts, [Some(1), None, Some(4), Some(5)], "a POST, a look, two PATCHes");
        assert_eq!(metrics.dropped(DropReason::Rejected), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_given_up_after_a_minute_and_the_next_one_gets_its_turn() {
    let hangs_for_a_minute = {
        let start = Instant::now();
        move |asked: &Asked| {
            if start.elapsed() < 60 * SECOND { Reply::Silence } else { Reply::stored(asked) }
        }
    };
    let server = ApiServer::new(hangs_for_a_minute);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    let start = Instant::now();
    tell(&recorder, "n", "first");
    tell(&recorder, "n", "second");
    broadcaster.flush(200 * SECOND).await;
    assert!(start.elapsed() <= 61 * SECOND, "{:?}", start.elapsed());
    assert_eq!(metrics.dropped(DropReason::Unreachable), 1);
    let last = server.asked().pop().unwrap();
    assert_eq!(last.json()["message"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_connections_gets_twelve_tries_at_most() {
    let server = ApiServer::new(|_| Reply::Refused);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    broadcaster.flush(200 * SECOND).await;
    assert_eq!(server.asked().len(), 12);
    assert_eq!(metrics.dropped(DropReason::Unreachable), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_writing_costs_one_event_and_not_its_worker() {
    let script = |asked: &Asked| {
        assert!(asked.number > 0, "a layer of the client has a defect");
        Reply::stored(asked)
    };
    let server = ApiServer::new(script);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no room");
    broadcaster.flush(2 * SECOND).await;
    let last = server.asked().pop().unwrap();
    assert_eq!(last.json()["message"], "no room");
    assert_eq!(metrics.dropped(DropReason::Panicked), 1);
    assert_eq!(metrics.dropped(DropReason::Shutdown), 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_events_that_are_refused_make_one_line_of_the_log() {
    let captured = Capture::begin();
    let server = ApiServer::new(|_| Reply::failure(403, "Forbidden"));
    let (recorder, broadcaster, metrics) = pipeline(&server);
    for n in 0..QUEUE {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(metrics.dropped(DropReason::Rejected), QUEUE as u64);
    let lines = captured.with("Unable to write event");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("rejected") && lines[0].contains("Forbidden"), "{lines:?}");
}
