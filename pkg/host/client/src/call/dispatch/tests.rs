//! The fence at its two places, and the verdicts on what a real connection does.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, header};
use tokio::net::{TcpListener, TcpSocket};

use crate::call::request::Reach;
use crate::testing::{Conduct, Server, clients, profile, reply, request, sample};
use crate::{CallError, Profile, SendCheck, Throttle, ThrottleMetrics, answer, applicable_for};

/// For what is never answered; what leaves or comes at all does so sooner on any machine.
const SHORT: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(30);

fn guarded(fence: &Fence) -> (GuardedBody, Arc<Progress>) {
    let request = request(Method::PATCH, "/a");
    let progress = Arc::new(Progress::new(&request, None));
    let (fence, attempt) = (Some(fence.clone()), Some(Arc::clone(&progress)));
    let timeout = Duration::from_secs(5);
    (GuardedBody::new(request.into_body(), fence, attempt, timeout), progress)
}

fn poll(body: &mut GuardedBody) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn a_body_is_given_out_while_the_fence_is_open_and_refused_once_it_closed() {
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let (mut body, progress) = guarded(&fence);
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Ok(_)))));
    assert!(matches!(progress.end(), Reach::MayHaveLeft(Some(_))));

    let (mut body, progress) = guarded(&fence);
    fence.close();
    match poll(&mut body) {
        Poll::Ready(Some(Err(error))) => assert!(error.is::<Fenced>(), "{error}"),
        _ => panic!("the body left"),
    }
    fence.open_for(fence.read_clocks(), LONG);
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))), "not a second time either");
    assert_eq!(progress.end(), Reach::Refused);
}

#[test]
fn a_write_without_a_body_is_asked_for_it_all_the_same() {
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let bare = || {
        let request = Request::delete("/a").body(Body::empty()).unwrap();
        let progress = Arc::new(Progress::new(&request, None));
        let (fence, attempt) = (Some(fence.clone()), Some(Arc::clone(&progress)));
        let timeout = Duration::from_secs(5);
        (GuardedBody::new(request.into_body(), fence, attempt, timeout), progress)
    };
    let (mut body, progress) = bare();
    assert!(!body.is_end_stream() && body.size_hint().exact().is_none(), "it would not be asked");
    assert!(matches!(poll(&mut body), Poll::Ready(None)));
    assert!(body.is_end_stream());
    assert!(matches!(progress.end(), Reach::MayHaveLeft(Some(_))));

    let (mut body, progress) = bare();
    assert_eq!(progress.end(), Reach::NotSent);
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))), "it left");

    let (mut body, progress) = bare();
    fence.close();
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))), "it left");
    assert_eq!(progress.end(), Reach::Refused);
}

#[test]
fn a_body_is_never_sent_after_its_caller_got_not_sent() {
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let (mut body, progress) = guarded(&fence);
    assert!(matches!(CallError::timed_out(&progress), CallError::NotSent(_)));
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))), "the body left");

    let (mut body, progress) = guarded(&fence);
    let error = CallError::judge("a layer failed".into(), &progress);
    assert!(matches!(error, CallError::NotSent(_)), "{error}");
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))), "the body left");
    assert_eq!(progress.settled_at(), None);
}

#[test]
fn either_the_connection_has_the_body_or_the_caller_gets_not_sent() {
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    for _ in 0..2_000 {
        let (mut body, progress) = guarded(&fence);
        let start = std::sync::Barrier::new(2);
        let (reach, left) = std::thread::scope(|scope| {
            let connection = scope.spawn(|| {
                start.wait();
                matches!(poll(&mut body), Poll::Ready(Some(Ok(_))))
            });
            start.wait();
            (progress.end(), connection.join().unwrap())
        });
        match reach {
            Reach::NotSent => assert!(!left),
            Reach::MayHaveLeft(settled_at) => assert!(left && settled_at.is_some()),
            Reach::Refused => panic!("the fence is open"),
        }
    }
}

#[tokio::test]
async fn a_closed_fence_stops_the_four_writing_methods_and_lets_reads_pass() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, registry) = clients(&server.url()).await;
    let fence = Fence::closed();
    let client = clients.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let error = answer(&client, request(method.clone(), "/a"), LONG).await.unwrap_err();
        assert!(matches!(error, CallError::Fenced), "{method}: {error}");
    }
    // Nothing of it would be seen a second time.
    let bare = Request::delete("/a").body(Body::empty()).unwrap();
    assert!(matches!(answer(&client, bare, LONG).await, Err(CallError::Fenced)));
    assert!(server.seen().is_empty());
    assert!((sample(&registry, "icm_fenced_requests_total") - 5.0).abs() < 1e-9);

    answer(&client, request(Method::GET, "/a"), LONG).await.unwrap();
    fence.open_for(fence.read_clocks(), LONG);
    answer(&client, request(Method::PATCH, "/a"), LONG).await.unwrap();
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn the_fence_is_asked_after_the_wait_in_the_throttle() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, registry) = clients(&server.url()).await;
    let m = ThrottleMetrics::new(&registry).unwrap();
    let throttle = Throttle::new("work", 5.0, 1, &m).unwrap().unwrap();
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let profile =
        Profile { fence: Some(fence.clone()), throttle: Some(throttle.clone()), ..profile() };
    let client = clients.build(profile).unwrap();

    throttle.acquire(tokio::time::Instant::now()).await;
    let writing =
        tokio::spawn(async move { answer(&client, request(Method::PATCH, "/a"), LONG).await });
    while throttle.in_line() == 0 {
        tokio::task::yield_now().await;
    }
    fence.close();
    assert!(matches!(writing.await.unwrap(), Err(CallError::Fenced)));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_request_that_its_caller_withdraws_during_the_wait_in_the_throttle_is_not_sent() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, registry) = clients(&server.url()).await;
    let m = ThrottleMetrics::new(&registry).unwrap();
    let throttle = Throttle::new("work", 5.0, 1, &m).unwrap().unwrap();
    let client = clients.build(Profile { throttle: Some(throttle), ..profile() }).unwrap();

    let wanted = Arc::new(AtomicBool::new(true));
    let send = || {
        let (client, wanted) = (client.clone(), Arc::clone(&wanted));
        let mut request = request(Method::PATCH, "/a");
        let check = SendCheck(Arc::new(move || wanted.load(Ordering::Relaxed)));
        request.extensions_mut().insert(check);
        async move { answer(&client, request, LONG).await }
    };
    send().await.unwrap();
    let mut second = Box::pin(send());
    assert!(futures::poll!(&mut second).is_pending());
    wanted.store(false, Ordering::Relaxed);
    let error = second.await.unwrap_err();
    assert!(matches!(error, CallError::Withdrawn), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_fence_that_closes_while_the_connection_opens_still_stops_the_write() {
    // Accepts only when time_limit to; until then the kernel holds the connection and nothing is read.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), LONG);
    let (clients, _) = clients(&address).await;
    let client = clients.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();

    let bare = Request::delete("/a").body(Body::empty()).unwrap();
    for request in [request(Method::PATCH, "/a"), bare] {
        fence.open_for(fence.read_clocks(), LONG);
        let mut writing = Box::pin(answer(&client, request, LONG));
        // One poll takes the request past the first look at the fence and into the pool.
        assert!(futures::poll!(&mut writing).is_pending());
        tokio::task::yield_now().await;
        assert!(futures::poll!(&mut writing).is_pending());
        fence.close();
        let error = writing.await.unwrap_err();
        assert!(matches!(error, CallError::Fenced), "{error}");
    }
}

#[tokio::test]
async fn a_write_without_a_body_arrives_as_one() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _) = clients(&server.url()).await;
    let client = clients.build(profile()).unwrap();
    for path in ["/a", "/b"] {
        let bare = Request::delete(path).body(Body::empty()).unwrap();
        answer(&client, bare, LONG).await.unwrap();
    }
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].body.len()), (2, 0));
    assert_eq!(seen[0].connection, seen[1].connection, "its connection is kept");
}

#[tokio::test]
async fn a_refused_connection_means_nothing_was_sent() {
    // Bound, so that no other process listens there.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", taken.local_addr().unwrap());
    let (clients, _) = clients(&address).await;
    let client = clients.build(profile()).unwrap();
    for method in [Method::PATCH, Method::GET] {
        let error = answer(&client, request(method, "/a"), LONG).await.unwrap_err();
        assert!(matches!(error, CallError::NotSent(_)), "{error}");
        assert!(error.to_string().contains("onnection refused"), "{error}");
    }
}

#[tokio::test]
async fn whatever_fails_after_the_request_left_may_have_been_written() {
    let rows = [(0, false), (1, false), (2, false), (3, false), (1, true)];
    let all = rows.map(|(conduct, own_connection)| async move {
        let server = Server::plain(move |_| match conduct {
            0 => Conduct::Silence,
            1 => Conduct::HangUp,
            2 => Conduct::StallInBody,
            _ => Conduct::HangUpInBody,
        })
        .await;
        let (clients, _) = clients(&server.url()).await;
        let client = clients.build(Profile { own_connection, ..profile() }).unwrap();
        let error = answer(&client, request(Method::PATCH, "/a"), SHORT).await.unwrap_err();
        let in_time = matches!(conduct, 1 | 3);
        assert_eq!(matches!(error, CallError::Transport { .. }), in_time, "{conduct}: {error}");
        assert_eq!(matches!(error, CallError::Timeout { .. }), !in_time, "{conduct}: {error}");
        assert_eq!(server.seen().len(), 1);
    });
    futures::future::join_all(all).await;
}

#[tokio::test]
async fn the_leases_client_starts_on_a_fresh_connection_after_every_failure() {
    let server = Server::plain(|seen| match seen.path() {
        "/silence" => Conduct::Silence,
        _ => Conduct::Answer(reply(200)),
    })
    .await;
    let (clients, _) = clients(&server.url()).await;
    let client = clients.build(Profile { own_connection: true, ..profile() }).unwrap();
    for path in ["/a", "/b", "/silence", "/c"] {
        answer(&client, request(Method::PUT, path), SHORT).await.ok();
    }
    let ports: Vec<_> = server.seen().iter().map(|s| s.connection).collect();
    assert_eq!(ports[0], ports[1], "kept while all is well");
    assert_eq!(ports[1], ports[2]);
    assert_ne!(ports[2], ports[3], "a new connection after the failure");
}

#[tokio::test]
async fn the_callers_headers_and_body_arrive_with_the_clients_user_agent() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _) = clients(&server.url()).await;
    let client = clients.build(profile()).unwrap();
    let mut patch = request(Method::PATCH, "/api/v1/nodes/a?fieldManager=x");
    let kind = http::HeaderValue::from_static("application/strategic-merge-patch+json");
    patch.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer(&client, patch, LONG).await.unwrap();
    let seen = server.seen().remove(0);
    assert!(seen.head.uri.query().unwrap().starts_with("fieldManager=x&timeout="));
    assert_eq!(seen.header("content-type"), Some("application/strategic-merge-patch+json"));
    assert_eq!(seen.body, "{}");
    let agent = seen.header("user-agent").unwrap();
    assert!(agent.starts_with("infra-controller-manager/v0.1.0 (linux/"), "{agent}");
    assert!(agent.ends_with(") kubernetes/0123456/work"), "{agent}");
    assert_eq!(seen.header("accept-encoding"), None);
}

/// The time limit in the query of a request, in milliseconds.
fn time_limit(seen: &crate::testing::Seen) -> Option<u64> {
    let query = seen.head.uri.query()?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    value.strip_suffix("ms")?.parse().ok()
}

#[tokio::test]
async fn a_write_shows_the_server_to_give_up_when_the_attempt_does_and_a_read_does_not() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _) = clients(&server.url()).await;
    let client = clients.build(profile()).unwrap();
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let before = tokio::time::Instant::now();
        let limit = LONG;
        let answer = answer(&client, request(method.clone(), "/a"), limit).await.unwrap();
        let time_limit = time_limit(&server.seen.lock().pop().unwrap()).unwrap();
        assert!((15_000..=30_000).contains(&time_limit), "{method}: {time_limit}");
        let settled_at = answer.settled_at.unwrap();
        assert!(settled_at >= before + Duration::from_millis(time_limit), "{method}");
        // The time limit is in whole milliseconds.
        let time_limit = Duration::from_millis(time_limit + 1);
        assert!(settled_at <= tokio::time::Instant::now() + applicable_for(time_limit), "{method}");
    }
    let answer = answer(&client, request(Method::GET, "/a"), LONG).await.unwrap();
    assert_eq!(answer.settled_at, None);
    assert_eq!(time_limit(&server.seen.lock().pop().unwrap()), None);
}

#[tokio::test]
async fn the_end_of_the_lease_is_the_end_of_a_write_that_is_sent_under_it() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _) = clients(&server.url()).await;
    let fence = Fence::closed();
    let client = clients.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();
    fence.open_for(fence.read_clocks(), Duration::from_secs(20));
    answer(&client, request(Method::PATCH, "/a"), LONG).await.unwrap();
    let time_limit = time_limit(&server.seen().remove(0)).unwrap();
    assert!((5_000..=19_750).contains(&time_limit), "{time_limit}: 20 s minus the time to send");
}

#[tokio::test]
async fn a_write_whose_lease_leaves_the_server_no_time_is_fenced() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _) = clients(&server.url()).await;
    let fence = Fence::closed();
    let client = clients.build(Profile { fence: Some(fence.clone()), ..profile() }).unwrap();
    fence.open_for(fence.read_clocks(), Duration::from_millis(200));
    let error = answer(&client, request(Method::PATCH, "/a"), LONG).await.unwrap_err();
    assert!(matches!(error, CallError::Fenced), "{error}");
    assert_eq!(error.settled_at(), None);
    assert!(server.seen().is_empty());
}

#[test]
fn a_body_is_refused_when_the_lease_no_longer_covers_the_timeout_of_the_server() {
    let fence = Fence::closed();
    fence.open_for(fence.read_clocks(), Duration::from_secs(4)); // time_limit: 5 s
    let (mut body, progress) = guarded(&fence);
    match poll(&mut body) {
        Poll::Ready(Some(Err(error))) => assert!(error.is::<Fenced>(), "{error}"),
        _ => panic!("the body left"),
    }
    assert_eq!(progress.end(), Reach::Refused);
}

#[tokio::test]
async fn whatever_leaves_a_write_open_says_from_when_on_it_is_settled() {
    let server = Server::plain(|seen| match seen.path() {
        "/silence" => Conduct::Silence,
        "/hang-up" => Conduct::HangUp,
        _ => Conduct::StallInBody,
    })
    .await;
    let (clients, _) = clients(&server.url()).await;
    let client = clients.build(profile()).unwrap();
    let all = ["/silence", "/hang-up", "/stall"].map(async |path| {
        let before = tokio::time::Instant::now();
        let writing = answer(&client, request(Method::PATCH, path), SHORT);
        let reading = answer(&client, request(Method::GET, path), SHORT);
        let (written, read) = futures::join!(writing, reading);
        let error = written.unwrap_err();
        let settled_at = error.settled_at().unwrap();
        assert!(settled_at > before + SHORT, "{path}");
        assert!(settled_at <= tokio::time::Instant::now() + applicable_for(SHORT), "{path}");
        assert_eq!(read.unwrap_err().settled_at(), None, "{path}");
    });
    futures::future::join_all(all).await;
}

/// rule:dry-run-stores-nothing
#[tokio::test]
async fn writes_of_a_dry_run_say_so_whatever_their_caller_says() {
    let server = Server::plain(|_| Conduct::Answer(reply(200))).await;
    let (clients, _registry) = clients(&server.url()).await;
    let client = clients.build(Profile { dry_run: true, ..profile() }).unwrap();
    for method in [Method::GET, Method::PATCH] {
        answer(&client, request(method, "/a?dryRun="), LONG).await.unwrap();
    }
    let mut delete = request(Method::DELETE, "/a");
    *delete.body_mut() = Body::empty();
    answer(&client, delete, LONG).await.unwrap();
    // The API server would obey the options of the body.
    answer(&client, request(Method::DELETE, "/a"), LONG).await.unwrap_err();
    let queries = server.seen().into_iter().map(|seen| seen.head.uri.query().map(str::to_owned));
    let dry = queries.map(|query| query.is_some_and(|query| query.contains("dryRun=All")));
    assert_eq!(dry.collect::<Vec<_>>(), [false, true, true]);
}
