//! Reactions to each answer to a PATCH, and how the last outcomes are settled at a stop; on a
//! paused clock, with a server that answers as it is told.

use std::sync::atomic::{AtomicUsize, Ordering};

use client::SendCheck;

use super::*;

/// How the server answers.
#[derive(Clone)]
struct Answer {
    status: u16,
    retry_after: Option<u64>,
    body: Value,
}

fn status(code: u16) -> Answer {
    Answer { status: code, retry_after: None, body: json!({"kind": "Status"}) }
}

fn found(node: Value) -> Answer {
    Answer { status: 200, retry_after: None, body: node }
}

/// The API server's word that this Node does not exist.
fn not_found(name: &str) -> Answer {
    let details = json!({"name": name, "kind": "nodes"});
    let body = json!({"kind": "Status", "reason": "NotFound", "details": details});
    Answer { status: 404, retry_after: None, body }
}

/// Answers PATCHes in turn, then with the last answer, and every GET in the same way.
fn server(patches: Vec<Answer>, get: Answer) -> ApiServer {
    let earlier = AtomicUsize::new(0);
    ApiServer::new(move |asked| {
        // As the client does when a request leaves.
        let leaves = asked.head.extensions.get().is_none_or(|SendCheck(check)| check());
        assert!(leaves, "withdrawn");
        let answer = match *asked.method() {
            Method::GET => &get,
            _ => {
                let next = earlier.fetch_add(1, Ordering::Relaxed);
                &patches[next.min(patches.len() - 1)]
            }
        };
        let (status, body) = (answer.status, answer.body.clone());
        match answer.retry_after {
            Some(seconds) => Reply::RetryAfter(status, seconds, body),
            None => Reply::Json(status, body),
        }
    })
}

fn count(server: &ApiServer, method: &Method) -> usize {
    server.asked().iter().filter(|asked| asked.method() == method).count()
}

async fn bench(patches: Vec<Answer>, get: Answer) -> (Bench, ApiServer) {
    let server = server(patches, get);
    let api = NodeApi::new(server.client(), ms(5000));
    let (events, _) = audience();
    (Bench::new(api, events, 26, two_nodes()).await, server)
}

async fn reconcile(bench: &Bench) -> Result<Next, Retry> {
    bench.reconciler.reconcile(&"a".into()).await
}

/// `rule:first-starved-first-served`
#[tokio::test(start_paused = true)]
async fn a_node_that_is_throttled_comes_back_when_the_server_says_and_is_then_served() {
    for (retry_after, pause) in [(None, 1), (Some(0), 1), (Some(1), 1), (Some(6), 6)] {
        let busy = Answer { retry_after, ..status(429) };
        let (bench, server) = bench(vec![busy, found(node("a", &[]))], status(500)).await;
        let retry = reconcile(&bench).await.unwrap_err();
        assert!(retry.is_throttled(), "{retry_after:?}: {retry:?}");
        assert_eq!(retry.pause(), Duration::from_secs(pause), "{retry_after:?}");
        assert_eq!(bench.unresolved(), 0, "it was not written");
        assert_eq!(reconcile(&bench).await.unwrap(), Next::Done);
        assert_eq!((count(&server, &Method::PATCH), count(&server, &Method::GET)), (2, 0));
        assert!((bench.patched("throttled") - 1.0).abs() < 0.1);
        assert!((bench.patched("done") - 1.0).abs() < 0.1);
    }
}

/// `rule:first-starved-first-served`
#[tokio::test(start_paused = true)]
async fn a_throttled_node_that_has_waited_once_comes_back_sooner_while_others_are_served() {
    let busy = || Answer { retry_after: Some(1), ..status(429) };
    let accepted = || found(node("b", &[]));
    let answers = vec![busy(), busy(), accepted(), busy(), busy(), found(node("a", &[]))];
    let (bench, _) = bench(answers, status(500)).await;
    let pause = async |bench: &Bench| reconcile(bench).await.unwrap_err().pause();
    assert_eq!(pause(&bench).await, ms(1000));
    sleep(ms(1000)).await;
    assert_eq!(pause(&bench).await, ms(1000), "no PATCH of another Node was accepted");
    assert_eq!(bench.reconciler.reconcile(&"b".into()).await.unwrap(), Next::Done);
    sleep(ms(900)).await;
    assert_eq!(pause(&bench).await, ms(100), "one was, while it waited");
    sleep(ms(100)).await;
    assert_eq!(pause(&bench).await, ms(1000), "that was a second ago");
    assert_eq!(reconcile(&bench).await.unwrap(), Next::Done);
}

/// `rule:first-starved-first-served`
#[tokio::test(start_paused = true)]
async fn the_first_refusal_of_a_node_that_has_waited_in_the_queue_counts_in_full() {
    let busy = || Answer { retry_after: Some(1), ..status(429) };
    let answers = vec![found(node("b", &[])), busy(), busy()];
    let (bench, _) = bench(answers, status(500)).await;
    sleep(ms(5000)).await;
    assert_eq!(bench.reconciler.reconcile(&"b".into()).await.unwrap(), Next::Done);
    let pause = async |bench: &Bench| reconcile(bench).await.unwrap_err().pause();
    assert_eq!(pause(&bench).await, ms(1000), "the server has not asked this Node to wait before");
    sleep(ms(900)).await;
    assert_eq!(pause(&bench).await, ms(1000), "it has not waited that long");
}

/// `rule:first-starved-first-served`
#[tokio::test(start_paused = true)]
async fn a_throttled_read_is_no_failure_of_the_node_either() {
    let busy = Answer { retry_after: Some(2), ..status(429) };
    let (bench, _) = bench(vec![status(500)], busy).await;
    assert!(!reconcile(&bench).await.unwrap_err().is_throttled());
    let retry = reconcile(&bench).await.unwrap_err();
    assert!(retry.is_throttled(), "{retry:?}");
    assert_eq!(retry.pause(), Duration::from_secs(2));
    assert_eq!(bench.unresolved(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_finds_a_successor_of_the_name_ends_the_claim_and_nothing_is_sent_to_it() {
    let mut successor = node("a", &[]);
    successor["metadata"]["uid"] = json!("uid-of-the-successor");
    let (bench, server) = bench(vec![status(500)], found(successor)).await;
    assert!(reconcile(&bench).await.is_err());
    assert_eq!(reconcile(&bench).await.unwrap(), Next::Done);
    assert_eq!((count(&server, &Method::PATCH), count(&server, &Method::GET)), (1, 1));
    assert_eq!(bench.reconciler.allocator.lock().snapshot().pools[0].used, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_read_comes_again_no_sooner_than_the_server_asks() {
    let busy = Answer { retry_after: Some(7), ..status(503) };
    let (bench, _) = bench(vec![status(500)], busy).await;
    assert!(reconcile(&bench).await.is_err());
    let retry = reconcile(&bench).await.unwrap_err();
    assert_eq!((retry.is_throttled(), retry.pause()), (false, Duration::from_secs(7)));
}

/// `rule:unknown-outcome-ends`
#[tokio::test(start_paused = true)]
async fn a_contested_node_is_looked_at_again_when_the_server_can_no_longer_apply_its_patch() {
    let (bench, server) = bench(vec![status(500)], found(node("a", &[]))).await;
    assert!(reconcile(&bench).await.is_err());
    let theirs = Node {
        name: "theirs".into(),
        uid: "theirs".into(),
        resource_version: 1,
        deleting: false,
        is_selected: true,
        pod_cidrs: ["10.0.0.0/26"].into_iter().collect(),
    };
    drop(bench.reconciler.allocator.lock().observe(&theirs, Instant::now()));
    let Next::After(wait) = reconcile(&bench).await.unwrap() else { panic!("it is to wait") };
    assert_eq!(wait, bench.reconciler.api.applicable_for());
    sleep(wait).await;
    let Next::After(aftermath) = reconcile(&bench).await.unwrap() else { panic!("once more") };
    sleep(aftermath).await;
    let Next::After(at_once) = reconcile(&bench).await.unwrap() else { panic!("and once more") };
    assert_eq!(at_once, Duration::ZERO);
    assert_eq!(reconcile(&bench).await.unwrap(), Next::Done, "woken for another block");
    assert_eq!((bench.unresolved(), count(&server, &Method::PATCH)), (0, 1));
}

/// `rule:stop-settles-outcomes`
#[tokio::test(start_paused = true)]
async fn at_the_stop_a_node_is_read_again_when_the_server_can_no_longer_apply_its_patch() {
    let (bench, server) = bench(vec![status(500)], found(node("a", &[]))).await;
    assert!(reconcile(&bench).await.is_err());
    let applicable = bench.reconciler.api.applicable_for();
    let stop = Instant::now();
    assert_eq!(bench.reconciler.settle_outcomes(stop + 2 * applicable).await, 0);
    let reads: Vec<_> = server.asked()[1..].iter().map(|asked| asked.at - stop).collect();
    assert_eq!(reads.len(), 4, "one at once and three after");
    let second = applicable + ms(1_000);
    for (read, due) in reads.into_iter().zip([ms(0), applicable, second, second]) {
        assert!(read >= due && read < due + ms(20), "{read:?}");
    }
}

/// `rule:stop-settles-outcomes`
#[tokio::test(start_paused = true)]
async fn at_the_stop_one_read_is_enough_where_it_shows_what_became_of_the_patch() {
    for get in [found(node("a", &["10.0.0.0/26"])), not_found("a")] {
        let (bench, server) = bench(vec![status(500)], get).await;
        assert!(reconcile(&bench).await.is_err());
        let began = Instant::now();
        assert_eq!(bench.reconciler.settle_outcomes(began + ms(8000)).await, 0);
        assert!(began.elapsed() < ms(10));
        assert_eq!(count(&server, &Method::GET), 1);
    }
}

/// `rule:stop-settles-outcomes`
#[tokio::test(start_paused = true)]
async fn what_no_read_can_settle_before_the_end_of_the_stop_stays_unknown() {
    for get in [status(500), status(404), not_found("another")] {
        let (bench, server) = bench(vec![status(500)], get).await;
        assert!(reconcile(&bench).await.is_err());
        let began = Instant::now();
        assert_eq!(bench.reconciler.settle_outcomes(began + ms(8000)).await, 1);
        assert!(began.elapsed() >= ms(8000) && began.elapsed() < ms(8010));
        assert!(count(&server, &Method::GET) > 10, "it is tried again and again");
    }
}

/// `rule:no-block-is-lost`
#[tokio::test(start_paused = true)]
async fn the_audit_mends_what_differs_from_the_cache_and_wakes_who_has_no_cidr() {
    let (bench, _) = bench(vec![status(500)], status(500)).await;
    let reconciler = &bench.reconciler;
    let taken = reconciler.queue.next().await.unwrap();
    let also = reconciler.queue.next().await.unwrap();
    assert_eq!([&**taken, &**also], ["a", "b"], "both are known since the list");
    drop((taken, also));
    // One Node is forgotten, and one is remembered that never was.
    let ghost = Node {
        name: "ghost".into(),
        uid: "ghost".into(),
        resource_version: 1,
        deleting: false,
        is_selected: true,
        pod_cidrs: ["10.0.0.0/26"].into_iter().collect(),
    };
    {
        let mut allocator = reconciler.allocator.lock();
        drop(allocator.gone("uid-a", Instant::now()));
        drop(allocator.observe(&ghost, Instant::now()));
        let state = allocator.snapshot();
        assert_eq!((state.pending, state.pools[0].used), (1, 1));
    }
    crate::node_work::audit(&reconciler.nodes, reconciler);
    let state = reconciler.allocator.lock().snapshot();
    assert_eq!((state.pending, state.pools[0].used), (2, 0));
    assert_eq!(reconciler.queue.len(), 2);
}
