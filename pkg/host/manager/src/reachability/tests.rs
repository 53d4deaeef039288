//! The check on a paused clock.

use std::sync::atomic::{AtomicBool, Ordering};

use api_server_double::{Reply, client};
use log_capture::Capture;
use serde_json::json;
use tokio::time::sleep;

use super::*;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A server that can be switched off and on, and the check that asks it.
fn asked(code: u16) -> (Arc<AtomicBool>, Reachability) {
    let up = Arc::new(AtomicBool::new(false));
    let switch = up.clone();
    let server = client(move |asked| {
        assert_eq!(asked.path(), "/lease");
        if switch.load(Ordering::Relaxed) { Reply::Json(code, json!({})) } else { Reply::Refused }
    });
    let reachability = Reachability::default();
    tokio::spawn(reachability.clone().run(server, "/lease".into(), CancellationToken::new()));
    (up, reachability)
}

#[tokio::test(start_paused = true)]
async fn a_server_never_heard_of_is_not_reachable() {
    let (up, reachability) = asked(200);
    assert_eq!(reachability.check(), Err("no answer yet".into()));
    sleep(secs(60)).await;
    assert_eq!(reachability.check(), Err("no answer yet".into()));
    up.store(true, Ordering::Relaxed);
    sleep(EVERY).await;
    assert_eq!(reachability.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn one_missed_answer_is_forgiven_and_two_are_not() {
    let (up, reachability) = asked(200);
    up.store(true, Ordering::Relaxed);
    sleep(secs(15)).await;
    up.store(false, Ordering::Relaxed);
    sleep(secs(14)).await; // asked at 20 s
    assert_eq!(reachability.check(), Ok(()));
    sleep(secs(12)).await; // asked at 30 s and 40 s
    assert_eq!(reachability.check(), Err("no answer for 31 s".into()));
    up.store(true, Ordering::Relaxed);
    sleep(EVERY).await;
    assert_eq!(reachability.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn any_answer_of_a_server_that_knows_us_will_do() {
    for code in [200, 404, 429, 500] {
        let (up, reachability) = asked(code);
        up.store(true, Ordering::Relaxed);
        sleep(EVERY + secs(1)).await;
        assert_eq!(reachability.check(), Ok(()), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_without_servers_is_no_server_and_a_server_that_is_busy_is_one() {
    for code in [502, 503, 504] {
        let (up, reachability) = asked(code);
        up.store(true, Ordering::Relaxed);
        sleep(EVERY + secs(1)).await;
        assert_eq!(reachability.check(), Err("no answer yet".into()), "{code}");
    }
    let status = json!({"kind": "Status", "code": 503, "message": "etcd has no leader"});
    let server = client(move |_| Reply::Json(503, status.clone()));
    let reachability = Reachability::default();
    tokio::spawn(reachability.clone().run(server, "/lease".into(), CancellationToken::new()));
    sleep(secs(1)).await;
    assert_eq!(reachability.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_the_server_refuses_is_not_ready_and_says_what_to_do() {
    for (code, advice) in [(401, "renew the credentials"), (403, "RBAC")] {
        let (up, reachability) = asked(code);
        up.store(true, Ordering::Relaxed);
        sleep(EVERY + secs(1)).await;
        let error = reachability.check().unwrap_err();
        assert!(error.contains(&code.to_string()) && error.contains(advice), "{error}");
        assert!(error.contains("GET /lease"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_every_minute_while_it_lasts_and_its_end_once() {
    let captured = Capture::begin();
    let refuses = Arc::new(AtomicBool::new(true));
    let switch = refuses.clone();
    let server = client(move |_| {
        Reply::Json(if switch.load(Ordering::Relaxed) { 401 } else { 200 }, json!({}))
    });
    let reachability = Reachability::default();
    tokio::spawn(reachability.clone().run(server, "/lease".into(), CancellationToken::new()));
    sleep(secs(175)).await;
    assert_eq!(captured.with("API server refuses requests that this process needs").len(), 3);
    refuses.store(false, Ordering::Relaxed);
    sleep(secs(60)).await;
    assert_eq!(reachability.check(), Ok(()));
    assert_eq!(captured.with("no longer refuses").len(), 1);
}
