use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api_server_double::{Reply, client};
use futures::stream::{self, StreamExt as _};
use kube_api::{Kind, Metadata, Node, OwnWrite};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use workqueue::{Backoff, Jitter, Next, Retry};

use super::*;
use crate::Context;
use crate::supervisor::ControllerHealth;
use crate::testing::{context, with_write_timeout};

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::None);

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

async fn scene() -> Context {
    context(client(|_| Reply::Silence)).await
}

/// Counts its calls; key 0 hangs.
#[derive(Default)]
struct Count {
    calls: AtomicUsize,
}

impl Reconcile for Count {
    type Key = u32;

    async fn reconcile(&self, key: &u32) -> Result<Next, Retry> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if *key == 0 {
            pending::<()>().await;
        }
        Ok(Next::Done)
    }
}

impl Count {
    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn workers_start_when_all_caches_are_filled_and_end_with_the_stop() {
    let (context, count) = (scene().await, Arc::new(Count::default()));
    let queue = context.queue("test", BACKOFF);
    queue.add(1);
    let filled = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let mut run = context.run(&queue, Arc::clone(&count)).workers(3);
    for cache in filled.clone() {
        run = run.start_after(async move { cache.notified().await });
    }
    let running = tokio::spawn(run.until_stopped());
    tokio::time::sleep(secs(1)).await;
    filled[0].notify_one();
    tokio::time::sleep(secs(3600)).await;
    assert_eq!(count.calls(), 0, "one cache is not filled");
    filled[1].notify_one();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(count.calls(), 1);
    context.stop.cancel();
    running.await.unwrap().unwrap();
    assert!(queue.next().await.is_none(), "the queue is shut down");
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_start_ends_the_run_without_work() {
    let (context, count) = (scene().await, Arc::new(Count::default()));
    let queue = context.queue("test", BACKOFF);
    queue.add(1);
    let run = context.run(&queue, Arc::clone(&count)).start_after(pending());
    let running = tokio::spawn(run.until_stopped());
    tokio::time::sleep(secs(1)).await;
    context.stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(count.calls(), 0);
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_kind_that_is_not_served_starts_with_the_others() {
    // No CRDs, no groups, one Node.
    let server = client(|asked| match (asked.path(), asked.query()) {
        (_, query) if query.contains("sendInitialEvents") => Reply::Json(400, json!({})),
        (_, query) if query.contains("watch=true") => Reply::Silence,
        ("/api/v1/nodes", _) => Reply::Json(
            200,
            json!({"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": [
                {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}},
            ]}),
        ),
        (path, _) if path.contains("customresourcedefinitions") => {
            Reply::Json(200, json!({"metadata": {"resourceVersion": "7"}, "items": []}))
        }
        _ => Reply::Json(404, json!({"kind": "Status", "code": 404})),
    });
    let (context, handled) = (context(server).await, Arc::new(Handled::default()));
    let absent = context.informers.source(Kind::named("example.org", "Widget"));
    let absent = context.informers.get_from::<Metadata>(absent);
    let queue = context.queue::<Arc<str>>("test", BACKOFF);
    let run = context
        .run(&queue, Arc::clone(&handled))
        .feed(&absent, |widget| Some(Arc::clone(&widget.key)))
        .feed(&context.informers.get::<Node>(), |node| Some(node.name.clone()));
    let running = tokio::spawn(run.until_stopped());
    tokio::time::sleep(secs(60)).await;
    assert!(absent.is_dormant());
    assert_eq!(*handled.0.lock(), ["a".into()]);
    context.stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_limit_fails_when_its_caches_are_not_filled_by_then() {
    let context = scene().await;
    let queue = context.queue("test", BACKOFF);
    let began = Instant::now();
    let run = context
        .run(&queue, Arc::new(Count::default()))
        .start_after(pending())
        .start_within(secs(600));
    let failure = run.until_stopped().await.unwrap_err();
    assert!(matches!(failure, Failure::CachesNotFilled(_)), "{failure}");
    assert_eq!(began.elapsed(), secs(600));
}

#[tokio::test(start_paused = true)]
async fn the_audit_comes_every_so_often_after_the_start() {
    let context = scene().await;
    let queue = context.queue("test", BACKOFF);
    let audits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&audits);
    let run = context.run(&queue, Arc::new(Count::default())).audit(secs(600), move || {
        let audits = Arc::clone(&counted);
        async move {
            audits.fetch_add(1, Ordering::SeqCst);
        }
    });
    let running = tokio::spawn(run.until_stopped());
    tokio::time::sleep(secs(599)).await;
    assert_eq!(audits.load(Ordering::SeqCst), 0);
    tokio::time::sleep(secs(1200)).await;
    assert_eq!(audits.load(Ordering::SeqCst), 2);
    context.stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_is_handled_once_everything_says_that_it_is_ready() {
    let (context, count) = (scene().await, Arc::new(Count::default()));
    let queue = context.queue("test", BACKOFF);
    queue.add(1);
    let caches = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let mut run = context.run(&queue, Arc::clone(&count)).ready(|_| None::<std::future::Ready<()>>);
    for shown in caches.clone() {
        run = run.ready(move |_| {
            let waits = Arc::clone(&shown);
            Some(async move { waits.notified().await })
        });
    }
    let running = tokio::spawn(run.until_stopped());
    tokio::time::sleep(secs(10)).await;
    caches[1].notify_one();
    tokio::time::sleep(secs(10)).await;
    assert_eq!(count.calls(), 0, "one cache has yet to show it");
    caches[0].notify_one();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(count.calls(), 1);
    context.stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_only_when_what_was_cut_off_can_no_longer_be_carried_out() {
    let (context, count) = (with_write_timeout(scene().await, secs(5)), Arc::new(Count::default()));
    let queue = context.queue("test", BACKOFF);
    queue.add(0);
    let run = context.run(&queue, Arc::clone(&count)).item_limit(secs(30));
    let began = Instant::now();
    let running = tokio::spawn(run.until_stopped());
    // The stop comes while it hangs; its limit cuts it off at 30 s.
    tokio::time::sleep(secs(29)).await;
    context.stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), secs(30 + 5 + 1), "it may travel for a second");
}

/// Blocks its thread, which no limit can cut off.
struct Block {
    released: Arc<AtomicBool>,
}

impl Reconcile for Block {
    type Key = u32;

    async fn reconcile(&self, _: &u32) -> Result<Next, Retry> {
        while !self.released.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        Ok(Next::Done)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_stuck_for_five_times_its_limit_makes_the_check_red_until_it_moves_on() {
    let context = scene().await;
    let queue = context.queue("test", BACKOFF);
    let released = Arc::new(AtomicBool::new(false));
    let limit = Duration::from_millis(20);
    let run =
        context.run(&queue, Arc::new(Block { released: Arc::clone(&released) })).item_limit(limit);
    let health = ControllerHealth::of(context.work.watched.clone());
    assert_eq!(health.check(), Ok(()));
    let began = Instant::now();
    queue.add(1);
    let running = tokio::spawn(run.until_stopped());
    let until = async |wanted: bool| {
        while health.check().is_ok() != wanted {
            assert!(began.elapsed() < secs(60), "the check does not change");
            tokio::time::sleep(Duration::from_millis(1)).await; // a check can only be asked
        }
    };
    until(false).await;
    assert!(began.elapsed() >= limit * 5, "{:?}", began.elapsed());
    assert!(health.check().unwrap_err().contains("queue test"));
    released.store(true, Ordering::SeqCst);
    until(true).await;
    context.stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(health.check(), Ok(()), "an ended run is not asked about");
}

/// Notes which keys were handled.
#[derive(Default)]
struct Handled(parking_lot::Mutex<Vec<Arc<str>>>);

impl Reconcile for Handled {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        self.0.lock().push(Arc::clone(key));
        Ok(Next::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_cache_shows_its_own_last_write_and_others_do_not() {
    let answers = Arc::new(AtomicBool::new(false));
    let (listed, version) = (Arc::clone(&answers), Arc::new(parking_lot::Mutex::new(7)));
    let listed_version = Arc::clone(&version);
    let server = client(move |asked| {
        let query = asked.query();
        match listed.load(Ordering::SeqCst) {
            false => Reply::Refused,
            true if query.contains("sendInitialEvents") => Reply::Json(400, json!({})),
            // Nothing can be watched, so it is listed again and again.
            true if query.contains("watch=true") => Reply::Json(410, json!({"code": 410})),
            true => {
                let version = listed_version.lock().to_string();
                Reply::Json(
                    200,
                    json!({"kind": "NodeList", "items": [], "metadata": {"resourceVersion": version}}),
                )
            }
        }
    });
    let (context, handled) = (context(server).await, Arc::new(Handled::default()));
    let nodes = context.informers.get::<Node>();
    let writes = OwnWrites::default();
    writes.note("written", OwnWrite::version(8));
    let queue = context.queue::<Arc<str>>("test", BACKOFF);
    queue.add("written".into());
    queue.add("read".into());
    let run = context.run(&queue, Arc::clone(&handled)).workers(2);
    // Two kinds may be written under the keys of one queue.
    let run = run.reads_own_writes(&nodes, &OwnWrites::default());
    let running = tokio::spawn(run.reads_own_writes(&nodes, &writes).until_stopped());
    tokio::time::sleep(secs(20)).await;
    assert!(handled.0.lock().is_empty(), "the cache is not filled");
    answers.store(true, Ordering::SeqCst);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(*handled.0.lock(), ["read".into()], "version 8 was not handled yet");

    *version.lock() = 8;
    tokio::time::sleep(secs(1200)).await;
    assert_eq!(handled.0.lock().last(), Some(&"written".into()));
    assert!(writes.is_empty(), "nothing is waited for any more");
    context.stop.cancel();
    running.await.unwrap().unwrap();
}

/// Keys of two kinds on one queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Node(Arc<str>),
    Cidr(String),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

fn node(name: &str, version: u32, cidr: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"podCIDRs": [cidr]}})
}

/// A server with one Node, whose watch tells of this event a second later.
fn server(event: Value) -> kube::Client {
    client(move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") && query.contains("resourceVersion=1") => {
            let event = event.clone();
            let told = async move {
                sleep(Duration::from_secs(1)).await;
                event
            };
            Reply::Watch(stream::once(told).boxed())
        }
        query if query.contains("watch=true") => Reply::Silence,
        _ => Reply::Json(
            200,
            json!({"kind": "NodeList", "metadata": {"resourceVersion": "1"},
                "items": [node("a", 1, "10.0.0.0/24")]}),
        ),
    })
}

fn keys(node: &Node) -> Vec<Work> {
    let cidrs = node.pod_cidrs.iter().map(|cidr| Work::Cidr(cidr.to_string()));
    std::iter::once(Work::Node(Arc::clone(&node.name))).chain(cidrs).collect()
}

async fn fed(context: &Context, expected: usize) -> Vec<Work> {
    let (nodes, queue) = (context.informers.get::<Node>(), context.queue("test", BACKOFF));
    let _subscription = feed(&nodes, &queue, keys);
    let mut seen = Vec::new();
    while seen.len() < expected {
        let next = timeout(Duration::from_secs(60), queue.next()).await;
        seen.push((*next.expect("there is more to do").unwrap()).clone());
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn an_object_of_one_kind_is_work_on_keys_of_several() {
    let context = context(server(Value::Null)).await;
    let seen = fed(&context, 2).await;
    assert_eq!(seen, [Work::Node("a".into()), Work::Cidr("10.0.0.0/24".into())]);
}

#[tokio::test(start_paused = true)]
async fn what_an_object_referred_to_before_hears_of_its_change() {
    let event = json!({"type": "MODIFIED", "object": node("a", 2, "10.0.1.0/24")});
    let context = context(server(event)).await;
    let seen = fed(&context, 2 + 3).await;
    let before = Work::Cidr("10.0.0.0/24".into());
    assert_eq!(seen[2..], [before, Work::Node("a".into()), Work::Cidr("10.0.1.0/24".into())]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_is_work_too() {
    let event = json!({"type": "DELETED", "object": node("a", 2, "10.0.0.0/24")});
    let context = context(server(event)).await;
    let seen = fed(&context, 4).await;
    assert_eq!(seen[2..], seen[..2]);
}
