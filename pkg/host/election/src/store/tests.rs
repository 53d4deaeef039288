//! The leases of two replicas on a server that keeps what it is sent.

use std::sync::atomic::{AtomicBool, Ordering};

use api_server_double::{ApiServer, Reply, Store};
use http::Method;

use super::*;

fn group() -> ReplicaGroup {
    ReplicaGroup {
        namespace: "kube-system".to_owned(),
        label: ("example/replica-of", "work"),
        annotation: "example/says",
        term: Duration::from_secs(30),
        request_timeout: Duration::from_secs(5),
    }
}

/// A server that, if asked to, leaves the first PUT without an answer.
fn server_that(drops_a_put: bool) -> ApiServer {
    let (store, drops) = (Store::default(), AtomicBool::new(drops_a_put));
    ApiServer::new(move |asked| match *asked.method() {
        Method::PUT if drops.swap(false, Ordering::Relaxed) => Reply::Silence,
        _ => store.answer(asked),
    })
}

fn server() -> ApiServer {
    server_that(false)
}

fn replica(server: &ApiServer, identity: &str) -> ReplicaLeases {
    ReplicaLeases::new(server.client(), group(), identity.to_owned(), format!("work-{identity}"))
}

/// rule:each-replica-writes-its-own-lease
#[tokio::test]
async fn each_replica_reads_what_the_others_say_and_sees_each_renewal() {
    let server = server();
    let (a, b) = (replica(&server, "a"), replica(&server, "b"));
    a.renew("me").await.unwrap();
    b.renew("both").await.unwrap();
    let seen = b.list().await.unwrap();
    let said: Vec<_> = seen.iter().map(|it| (it.identity.as_str(), it.says.as_str())).collect();
    assert_eq!(said, [("a", "me"), ("b", "both")]);
    a.renew("both").await.unwrap();
    let renewed = b.list().await.unwrap();
    assert_ne!(renewed[0].renewal, seen[0].renewal);
    assert_eq!(renewed[1].renewal, seen[1].renewal);
    let asked = server.asked();
    assert_eq!(asked[4].query(), "&labelSelector=example%2Freplica-of%3Dwork");
    let methods: Vec<_> = asked.iter().map(|asked| asked.method().clone()).collect();
    let expected = ["GET", "POST", "GET", "POST", "GET", "PUT", "GET"];
    assert_eq!(methods, expected, "a renewal is one request");
}

/// rule:each-replica-writes-its-own-lease
#[tokio::test]
async fn a_released_lease_says_so_and_an_expired_lease_is_removed_unless_it_was_renewed() {
    let server = server();
    let (a, b) = (replica(&server, "a"), replica(&server, "b"));
    a.renew("me").await.unwrap();
    let ran_out = b.list().await.unwrap().remove(0);
    a.renew("me").await.unwrap();
    assert_eq!(b.release_for(&ran_out, "a").await, Err(StoreError::Conflict));
    b.release_for(&b.list().await.unwrap()[0], "a").await.unwrap();
    let released = b.list().await.unwrap().remove(0);
    assert_eq!((released.identity.as_str(), released.says.as_str()), ("", "a"));
    assert_eq!(a.renew("me").await, Err(StoreError::Conflict), "it was released for us");
    a.renew("me").await.unwrap();
    assert_eq!(b.remove(&ran_out).await, Err(StoreError::Conflict));
    b.remove(&b.list().await.unwrap()[0]).await.unwrap();
    b.remove(&ran_out).await.expect("one that is gone is no failure");
    let deleted = a.renew("me").await.unwrap_err();
    assert!(matches!(deleted, StoreError::Missing(_)), "it was deleted under us: {deleted}");
    a.renew("me").await.unwrap();
    assert_eq!(b.list().await.unwrap().len(), 1, "and made again");
    a.release("a, for the last time").await.unwrap();
    b.renew("me").await.unwrap();
    let left = b.list().await.unwrap();
    let said: Vec<_> = left.iter().map(|it| (it.identity.as_str(), it.says.as_str())).collect();
    assert_eq!(said, [("", "a, for the last time"), ("b", "me")]);
}

/// rule:each-replica-writes-its-own-lease
#[tokio::test]
async fn a_lease_that_lost_its_label_has_it_again_after_a_renewal() {
    let server = server();
    let a = replica(&server, "a");
    a.renew("me").await.unwrap();
    let labels = |lease: &Lease| lease.metadata.labels.clone().unwrap_or_default();
    let expected = [("example/replica-of".to_owned(), "work".to_owned())].into();
    assert_eq!(labels(a.written.lock().as_ref().unwrap()), expected);
    // Somebody takes it off; the next renewal rests on what is there now.
    a.written.lock().as_mut().unwrap().metadata.labels = None;
    a.renew("me").await.unwrap();
    assert_eq!(labels(a.written.lock().as_ref().unwrap()), expected);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_ends_and_the_next_one_reads_the_lease_first() {
    let server = server_that(true);
    let a = replica(&server, "a");
    a.renew("me").await.unwrap();
    assert_eq!(a.renew("both").await, Err(StoreError::Timeout));
    a.renew("both").await.unwrap();
    let methods: Vec<_> = server.asked().iter().map(|asked| asked.method().clone()).collect();
    assert_eq!(methods, ["GET", "POST", "PUT", "GET", "PUT"]);
}
