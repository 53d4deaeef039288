//! The life of a token, on a paused clock and a root client that answers from a script.

use crate::identity::*;
use std::time::SystemTime;

use http::{Response, StatusCode};
use http_body_util::Full;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use tower::service_fn;

use crate::identity::token_request::FIRST_PAUSE;
use crate::testing::{Log, reply};

type Reply = Response<Full<bytes::Bytes>>;

/// A token reply named by its number, with an hour to live.
fn token(n: usize) -> Reply {
    let end = Timestamp::try_from(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    let status =
        serde_json::json!({"token": format!("token-{n}"), "expirationTimestamp": Time(end)});
    let reply =
        serde_json::json!({"kind": "TokenRequest", "spec": {"audiences": []}, "status": status});
    Response::builder().status(201).body(Full::from(reply.to_string())).unwrap()
}

/// A service account whose root client answers by `script`, given the call (`GET name`, `POST`,
/// `POST name/token`) and the number of calls of that kind; and the log of calls.
fn account(
    script: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
) -> (Arc<ServiceAccount>, Log<String>) {
    let calls: Log<String> = Log::default();
    let script = Arc::new(script);
    let service = service_fn({
        let calls = Arc::clone(&calls);
        move |request: http::Request<Body>| {
            let place = request.uri().path().rsplit("serviceaccounts").next().unwrap_or_default();
            let call = format!("{} {}", request.method(), place.trim_start_matches('/'));
            let call = call.trim().to_owned();
            let n = {
                let mut calls = calls.lock();
                calls.push(call.clone());
                calls.iter().filter(|c| **c == call).count()
            };
            let script = Arc::clone(&script);
            async move {
                // Long enough for callers to come together.
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok::<_, tower::BoxError>(script(&call, n))
            }
        }
    });
    let root = kube::Client::new(service, "default");
    (Arc::new(ServiceAccount::new(root, "kube-system", "sa")), calls)
}

fn found(call: &str, n: usize) -> Reply {
    if call == "POST sa/token" { token(n) } else { reply(200) }
}

async fn header(account: &ServiceAccount) -> String {
    account.header(0).await.unwrap().to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_there_is_only_asked_for_a_token() {
    let (account, calls) = account(found);
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(*calls.lock(), ["GET sa", "POST sa/token"]);
    assert!(account.header(0).await.unwrap().is_sensitive(), "never shown in a log");
}

#[tokio::test(start_paused = true)]
async fn an_absent_account_is_created() {
    let (account, calls) = account(|call, n| match call {
        "GET sa" => reply(404),
        "POST" => reply(201),
        _ => token(n),
    });
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(*calls.lock(), ["GET sa", "POST", "POST sa/token"]);
}

#[tokio::test(start_paused = true)]
async fn an_account_that_another_replica_created_first_is_taken() {
    let (account, calls) = account(|call, n| match call {
        "GET sa" if n == 1 => reply(404),
        "POST" => reply(409),
        _ => found(call, n),
    });
    let started = Instant::now();
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(*calls.lock(), ["GET sa", "POST", "GET sa", "POST sa/token"]);
    assert!(started.elapsed() < FIRST_PAUSE, "within the first try");
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_waited_for() {
    let (account, _) = account(|call, n| match call {
        "GET sa" => reply(404),
        "POST" if n < 3 => reply(404),
        "POST" => reply(201),
        _ => token(n),
    });
    let started = Instant::now();
    assert_eq!(header(&account).await, "Bearer token-1");
    assert!(started.elapsed() >= Duration::from_millis(1_500), "0.5 s, then 1 s");
}

#[tokio::test(start_paused = true)]
async fn four_tries_half_a_second_apart_and_doubling_then_an_error() {
    let (account, calls) =
        account(|call, _| if call == "GET sa" { reply(200) } else { reply(500) });
    let started = Instant::now();
    let error = account.header(0).await.unwrap_err();
    assert_eq!(started.elapsed().as_millis() / 100, 35, "0.5 + 1 + 2 s");
    assert_eq!(calls.lock().iter().filter(|c| *c == "POST sa/token").count(), 4);
    let text = error.to_string();
    assert!(text.contains("service account kube-system/sa") && text.contains("500"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_reported_at_once_with_the_rule_to_grant() {
    let denied = || {
        let status = serde_json::json!({"kind": "Status", "message": "sa is forbidden: no RBAC"});
        Response::builder().status(403).body(Full::from(status.to_string())).unwrap()
    };
    let (account, calls) =
        account(move |call, _| if call == "GET sa" { reply(200) } else { denied() });
    let started = Instant::now();
    let text = account.header(0).await.unwrap_err().to_string();
    assert!(text.contains("sa is forbidden: no RBAC"), "{text}");
    assert!(text.contains("create serviceaccounts/token"), "{text}");
    assert!(started.elapsed() < Duration::from_millis(100));

    // Callers in a hurry do not become calls to the server.
    account.header(0).await.unwrap_err();
    assert_eq!(calls.lock().len(), 2);
    tokio::time::sleep(FAILURE_PAUSE).await;
    account.header(0).await.unwrap_err();
    assert_eq!(calls.lock().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn callers_that_come_together_share_one_request_and_may_give_up() {
    let (account, calls) = account(found);
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let account = Arc::clone(&account);
            tokio::spawn(async move { header(&account).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    callers[0].abort();
    for caller in callers.into_iter().skip(1) {
        assert_eq!(caller.await.unwrap(), "Bearer token-1");
    }
    assert_eq!(calls.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_at_80_percent_of_its_life_while_the_old_one_serves() {
    let (account, calls) = account(found);
    header(&account).await;
    tokio::time::sleep(Duration::from_secs(2_800)).await;
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(calls.lock().len(), 2, "not yet at 78 %");

    tokio::time::sleep(Duration::from_secs(100)).await;
    let started = Instant::now();
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(started.elapsed(), Duration::ZERO, "no request waits for the renewal");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(header(&account).await, "Bearer token-2");
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_keeps_the_old_token_until_its_end() {
    let (account, calls) = account(|call, n| match call {
        "POST sa/token" if n > 1 => reply(503),
        _ => found(call, n),
    });
    header(&account).await;
    tokio::time::sleep(Duration::from_secs(2_900)).await;
    for _ in 0..20 {
        assert_eq!(header(&account).await, "Bearer token-1");
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert!(calls.lock().len() > 20, "it is tried again and again");
    tokio::time::sleep(Duration::from_secs(200)).await;
    account.header(0).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_dropped_unless_it_is_newer_than_the_request() {
    let (account, _) = account(found);
    let before = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    header(&account).await;
    account.refused(before);
    assert_eq!(header(&account).await, "Bearer token-1", "obtained after that request started");

    tokio::time::sleep(Duration::from_secs(1)).await;
    account.refused(Instant::now());
    assert_eq!(header(&account).await, "Bearer token-2");
}

#[tokio::test(start_paused = true)]
async fn a_life_under_10_minutes_is_taken_for_a_difference_of_clocks() {
    let (account, calls) = account(|call, n| {
        if call != "POST sa/token" {
            return reply(200);
        }
        let end = "2020-01-01T00:00:00Z";
        let past = serde_json::json!({"token": format!("token-{n}"), "expirationTimestamp": end});
        let reply = serde_json::json!({"status": past}).to_string();
        Response::builder().status(StatusCode::CREATED).body(Full::from(reply)).unwrap()
    });
    header(&account).await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(header(&account).await, "Bearer token-1");
    assert_eq!(calls.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_all_refused_are_asked_for_once_a_second() {
    let (account, calls) = account(found);
    let started = Instant::now();
    let mut used = 0;
    while started.elapsed() < Duration::from_secs(10) {
        header(&account).await;
        account.refused(Instant::now());
        used += 1;
    }
    let asked = calls.lock().iter().filter(|call| *call == "POST sa/token").count();
    assert_eq!(asked, used);
    assert!((9..=11).contains(&asked), "{asked} in ten seconds");
}
