//! The check on a paused clock.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::testing::{Reply, client};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A server that can be switched off and on, and the check that asks it.
fn asked(code: u16) -> (Arc<AtomicBool>, Reachability) {
    let up = Arc::new(AtomicBool::new(false));
    let switch = up.clone();
    let server = client(move |request| {
        assert_eq!(request.uri().path(), "/livez");
        if switch.load(Ordering::Relaxed) { Reply::Json(code, json!({})) } else { Reply::Refused }
    });
    let reachability = Reachability::default();
    tokio::spawn(reachability.clone().run(server, CancellationToken::new()));
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
async fn a_server_that_refuses_is_reachable() {
    for code in [401, 403, 404, 429, 500] {
        let (up, reachability) = asked(code);
        up.store(true, Ordering::Relaxed);
        sleep(EVERY + secs(1)).await;
        assert_eq!(reachability.check(), Ok(()), "{code}");
    }
}
