//! The pipeline from [`Recorder::event`] to requests, against a scripted server on a paused clock.

use std::sync::Mutex;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    path: String,
    content_type: String,
    body: Value,
    at: Instant,
}

/// What the server does with a request.
enum Script {
    Accept,
    Refuse(u16, Value),
    Reset,
    Hang,
    Panic,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Vec<Seen>>>);

impl Server {
    /// A client of a server that answers the `n`th request (from 0) as `script` says.
    fn client(&self, script: impl Fn(usize, &Seen) -> Script + Send + Sync + 'static) -> Client {
        let (seen, script) = (Arc::clone(&self.0), Arc::new(script));
        let service = tower::service_fn(move |request: Request<Body>| {
            answer(request, Arc::clone(&seen), Arc::clone(&script))
        });
        Client::new(service, "default")
    }

    fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    /// Waits, in virtual time, until `n` requests came.
    async fn saw(&self, n: usize) -> Vec<Seen> {
        for _ in 0..100_000 {
            if self.seen().len() >= n {
                return self.seen();
            }
            sleep(SECOND / 100).await;
        }
        panic!("{} requests instead of {n}: {:?}", self.seen().len(), self.seen());
    }
}

async fn answer(
    request: Request<Body>,
    log: Arc<Mutex<Vec<Seen>>>,
    script: Arc<impl Fn(usize, &Seen) -> Script>,
) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect_bytes().await.unwrap();
    let seen = Seen {
        method: head.method,
        path: head.uri.path().to_owned(),
        content_type: head.headers[http::header::CONTENT_TYPE].to_str().unwrap().to_owned(),
        body: serde_json::from_slice(&body).unwrap(),
        at: Instant::now(),
    };
    let n = log.lock().unwrap().len();
    log.lock().unwrap().push(seen.clone());
    let (code, reply) = match script(n, &seen) {
        Script::Accept => (200, stored(&seen)),
        Script::Refuse(code, status) => (code, status),
        Script::Reset => return Err(std::io::Error::other("connection reset")),
        Script::Hang => std::future::pending().await,
        Script::Panic => panic!("a layer of the client has a defect"),
    };
    let body = Body::from(serde_json::to_vec(&reply).unwrap());
    Ok(Response::builder().status(StatusCode::from_u16(code).unwrap()).body(body).unwrap())
}

fn stored(seen: &Seen) -> Value {
    match seen.method {
        Method::POST => seen.body.clone(),
        _ => json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": { "name": "some" },
        }),
    }
}

fn refusal(code: u16, reason: &str) -> Script {
    Script::Refuse(
        code,
        json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": reason,
        }),
    )
}

fn pipeline(client: Client) -> (Recorder, Broadcaster, EventMetrics) {
    let metrics = EventMetrics::new(&Registry::new()).unwrap();
    let (recorder, broadcaster) = start(client, "cidrAllocator", "host_1", metrics.clone());
    (recorder, broadcaster, metrics)
}

fn tell(recorder: &Recorder, node: &str, message: &str) {
    let object = ObjectRef::node(node, "u-1");
    recorder.event(object, EventType::Normal, "CIDRNotAvailable", message.to_owned());
}

/// Two node names of different workers.
fn two_workers() -> (String, String) {
    let worker = |name: &str| worker_of(&ObjectRef::node(name, "u-1"));
    let mut names = (0..100).map(|n| format!("n{n}"));
    let other = names.find(|name| worker(name) != worker("n")).unwrap();
    ("n".to_owned(), other)
}

#[tokio::test(start_paused = true)]
async fn an_event_is_posted_in_core_v1_with_source_and_reporter() {
    let server = Server::default();
    let (recorder, _broadcaster, _) = pipeline(server.client(|_, _| Script::Accept));
    tell(&recorder, "node-7", "no block");
    let post = server.saw(1).await.remove(0);
    assert_eq!(
        (post.method, post.path.as_str()),
        (Method::POST, "/api/v1/namespaces/default/events")
    );
    let body = post.body;
    assert_eq!(
        body["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Node", "name": "node-7", "uid": "u-1"})
    );
    assert_eq!(body["source"], json!({"component": "cidrAllocator"}));
    assert_eq!(body["reportingComponent"], "cidrAllocator");
    assert_eq!(body["reportingInstance"], "host_1");
    assert_eq!((&body["type"], &body["reason"]), (&json!("Normal"), &json!("CIDRNotAvailable")));
    assert_eq!((&body["message"], &body["count"]), (&json!("no block"), &json!(1)));
    assert_eq!(body["firstTimestamp"], body["lastTimestamp"]);
    assert_eq!(body["metadata"]["namespace"], "default");
    let name = body["metadata"]["name"].as_str().unwrap();
    let nanos = u64::from_str_radix(name.strip_prefix("node-7.").unwrap(), 16).unwrap();
    let age = unix_nanos(Timestamp::now()) - nanos;
    assert!(age < 3_600_000_000_000, "{name}");
}

#[tokio::test(start_paused = true)]
async fn an_event_about_a_namespaced_object_lands_beside_it() {
    let server = Server::default();
    let (recorder, _broadcaster, _) = pipeline(server.client(|_, _| Script::Accept));
    let lease = ObjectRef::lease("kube-system", "icm", "u-2");
    recorder.event(lease, EventType::Normal, "LeaderElection", "a became leader".into());
    let post = server.saw(1).await.remove(0);
    assert_eq!(post.path, "/api/v1/namespaces/kube-system/events");
    assert_eq!(post.body["involvedObject"]["apiVersion"], "coordination.k8s.io/v1");
    assert_eq!(post.body["involvedObject"]["namespace"], "kube-system");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_a_strategic_patch_of_count_and_time() {
    let server = Server::default();
    let (recorder, _broadcaster, _) = pipeline(server.client(|_, _| Script::Accept));
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no block");
    let seen = server.saw(2).await;
    let name = seen[0].body["metadata"]["name"].as_str().unwrap();
    assert_eq!(seen[1].method, Method::PATCH);
    assert_eq!(seen[1].path, format!("/api/v1/namespaces/default/events/{name}"));
    assert_eq!(seen[1].content_type, "application/strategic-merge-patch+json");
    let patch = seen[1].body.as_object().unwrap();
    assert_eq!(patch.keys().collect::<Vec<_>>(), ["count", "lastTimestamp", "message"]);
    assert_eq!(patch["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_an_event_the_server_forgot_is_created_with_its_count() {
    let server = Server::default();
    let forgets = |_: usize, seen: &Seen| match seen.method {
        Method::PATCH => refusal(404, "NotFound"),
        _ => Script::Accept,
    };
    let (recorder, _broadcaster, metrics) = pipeline(server.client(forgets));
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no block");
    let seen = server.saw(3).await;
    assert_eq!((&seen[2].method, &seen[2].body["count"]), (&Method::POST, &json!(2)));
    assert_eq!(seen[2].body["metadata"]["name"], seen[0].body["metadata"]["name"]);
    assert_eq!(metrics.dropped(DropReason::Rejected), 0);
}

#[tokio::test(start_paused = true)]
async fn passing_failures_are_retried_five_seconds_apart_and_the_first_earlier() {
    let server = Server::default();
    let script = |n: usize, _: &Seen| match n {
        0 => Script::Reset,
        1 => refusal(503, "ServiceUnavailable"),
        2 => refusal(429, "TooManyRequests"),
        _ => Script::Accept,
    };
    let (recorder, _broadcaster, metrics) = pipeline(server.client(script));
    tell(&recorder, "n", "no block");
    let seen = server.saw(4).await;
    let pauses: Vec<_> = seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let about = |pause: Duration| pause >= 5 * SECOND && pause < 5 * SECOND + SECOND / 10;
    assert!(pauses[0] <= 5 * SECOND + SECOND / 10, "{pauses:?}");
    assert!(about(pauses[1]) && about(pauses[2]), "{pauses:?}");
    assert_eq!(metrics.dropped(DropReason::Unreachable), 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_for_good_are_counted_and_not_repeated() {
    let server = Server::default();
    let (recorder, broadcaster, metrics) =
        pipeline(server.client(|_, _| refusal(403, "Forbidden")));
    tell(&recorder, "n", "no block");
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.seen().len(), 1);
    assert_eq!(metrics.dropped(DropReason::Rejected), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_exists_or_whose_namespace_terminates_is_done_with() {
    let terminating = || {
        Script::Refuse(
            403,
            json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "namespace is terminating",
                "details": {"causes": [{"reason": "NamespaceTerminating", "message": "terminating"}]},
            }),
        )
    };
    let server = Server::default();
    let script = move |n: usize, _: &Seen| match n {
        0 => refusal(409, "AlreadyExists"),
        _ => terminating(),
    };
    let (recorder, broadcaster, metrics) = pipeline(server.client(script));
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no room");
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.seen().len(), 2);
    assert_eq!(metrics.dropped(DropReason::Rejected), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_given_up_after_a_minute_and_the_next_one_gets_its_turn() {
    let server = Server::default();
    let hangs_for_a_minute = {
        let start = Instant::now();
        move |_: usize, _: &Seen| {
            if start.elapsed() < 60 * SECOND { Script::Hang } else { Script::Accept }
        }
    };
    let (recorder, broadcaster, metrics) = pipeline(server.client(hangs_for_a_minute));
    let start = Instant::now();
    tell(&recorder, "n", "first");
    tell(&recorder, "n", "second");
    broadcaster.flush(200 * SECOND).await;
    assert!(start.elapsed() <= 61 * SECOND, "{:?}", start.elapsed());
    assert_eq!(metrics.dropped(DropReason::Unreachable), 1);
    let last = server.seen().pop().unwrap();
    assert_eq!(last.body["message"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_connections_gets_twelve_tries_at_most() {
    let server = Server::default();
    let (recorder, broadcaster, metrics) = pipeline(server.client(|_, _| Script::Reset));
    tell(&recorder, "n", "no block");
    broadcaster.flush(200 * SECOND).await;
    assert_eq!(server.seen().len(), 12);
    assert_eq!(metrics.dropped(DropReason::Unreachable), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_event_does_not_delay_those_of_other_workers() {
    let server = Server::default();
    let (stuck, other) = two_workers();
    let hang = stuck.clone();
    let script = move |_: usize, seen: &Seen| {
        if seen.body["involvedObject"]["name"] == hang { Script::Hang } else { Script::Accept }
    };
    let (recorder, _broadcaster, _) = pipeline(server.client(script));
    tell(&recorder, &stuck, "no block");
    tell(&recorder, &other, "no block");
    let start = Instant::now();
    server.saw(2).await;
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_and_never_blocks() {
    let server = Server::default();
    let (recorder, _broadcaster, metrics) = pipeline(server.client(|_, _| Script::Hang));
    for n in 0..QUEUE + 50 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    assert_eq!(metrics.dropped(DropReason::QueueFull), 50);
}

#[tokio::test(start_paused = true)]
async fn spam_is_counted() {
    let server = Server::default();
    let (recorder, broadcaster, metrics) = pipeline(server.client(|_, _| Script::Accept));
    for _ in 0..30 {
        tell(&recorder, "n", "no block");
    }
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.seen().len(), 25);
    assert_eq!(metrics.dropped(DropReason::Spam), 5);
}

#[tokio::test(start_paused = true)]
async fn flushing_writes_what_waits_and_takes_no_more() {
    let server = Server::default();
    let (recorder, broadcaster, metrics) = pipeline(server.client(|_, _| Script::Accept));
    for n in 0..100 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    broadcaster.flush(2 * SECOND).await;
    assert_eq!(server.seen().len(), 100);
    tell(&recorder, "n", "too late");
    assert_eq!(metrics.dropped(DropReason::Shutdown), 1);
    sleep(10 * SECOND).await;
    assert_eq!(server.seen().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn flushing_ends_at_its_limit_and_counts_what_was_not_written() {
    let server = Server::default();
    let (recorder, broadcaster, metrics) = pipeline(server.client(|_, _| Script::Hang));
    for n in 0..10 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    let start = Instant::now();
    broadcaster.flush(2 * SECOND).await;
    assert_eq!(start.elapsed(), 2 * SECOND);
    assert_eq!(metrics.dropped(DropReason::Shutdown), 10);
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_however_fast_events_come() {
    let server = Server::default();
    let (recorder, broadcaster, _) = pipeline(server.client(|_, _| Script::Accept));
    for n in 0..9 {
        tell(&recorder, "n", &format!("message {n}"));
    }
    broadcaster.flush(2 * SECOND).await;
    let names: std::collections::HashSet<_> =
        server.seen().iter().map(|seen| seen.body["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_writing_costs_one_event_and_not_its_worker() {
    let server = Server::default();
    let script = |n: usize, _: &Seen| if n == 0 { Script::Panic } else { Script::Accept };
    let (recorder, broadcaster, metrics) = pipeline(server.client(script));
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no room");
    broadcaster.flush(2 * SECOND).await;
    let last = server.seen().pop().unwrap();
    assert_eq!(last.body["message"], "no room");
    assert_eq!(metrics.dropped(DropReason::Panicked), 1);
    assert_eq!(metrics.dropped(DropReason::Shutdown), 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_events_that_are_refused_make_one_line_of_the_log() {
    let log = LogLines::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = Server::default();
    let (recorder, broadcaster, metrics) =
        pipeline(server.client(|_, _| refusal(403, "Forbidden")));
    for n in 0..QUEUE {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(metrics.dropped(DropReason::Rejected), QUEUE as u64);
    let lines = log.with("Unable to write event");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("rejected") && lines[0].contains("Forbidden"), "{lines:?}");
}

/// The events of `tracing`, as text.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    fn with(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

impl tracing::Subscriber for LogLines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
