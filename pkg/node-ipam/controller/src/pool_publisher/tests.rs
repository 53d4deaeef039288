//! The record of an allocator at work, on the paused clock, against a server that keeps one ConfigMap.

use api_server_double::{ApiServer, Asked, Reply};
use cidr::{IpNet, Pool};
use http::Method;
use kube_api::Node;
use log_capture::Capture;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::pool_record::{CONFIG_MAPS, PoolRecord};

/// The time of one write.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// How the warning begins.
const WARNING: &str = "Cannot write ConfigMap kube-system/icm-pools: ";

/// What the server has under the name of the record, and what becomes of writes.
#[derive(Default)]
struct Stored {
    object: Option<Value>,
    version: u64,
    refuses: Option<u16>,
    /// A webhook hangs: each write ends after [`WRITE_LIMIT`], with an unknown outcome.
    hangs: bool,
}

impl Stored {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let not_found = || {
            let mut details = json!({"name": POOL_RECORD, "kind": "configmaps"});
            details["causes"] = json!([]);
            Reply::Json(404, json!({"kind": "Status", "reason": "NotFound", "details": details}))
        };
        match (asked.method(), &mut self.object) {
            (&Method::GET, Some(object)) => Reply::Json(200, object.clone()),
            (&Method::GET, None) => not_found(),
            _ if self.hangs => Reply::Later(Box::pin(async {
                sleep(WRITE_LIMIT).await;
                Reply::failure(504, "Timeout")
            })),
            _ if self.refuses.is_some() => Reply::failure(self.refuses.unwrap(), "Forbidden"),
            (&Method::POST, None) => self.keep(asked.json()),
            (&Method::POST, Some(_)) => Reply::failure(409, "AlreadyExists"),
            (_, None) => not_found(),
            (_, Some(object)) => {
                let patch = asked.json();
                if patch["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                    return Reply::failure(409, "Conflict");
                }
                let mut object = object.clone();
                for (key, value) in patch["data"].as_object().unwrap() {
                    object["data"][key] = value.clone();
                }
                object["data"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
                self.keep(object)
            }
        }
    }

    fn keep(&mut self, mut object: Value) -> Reply {
        self.version += 1;
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.object = Some(object.clone());
        Reply::Json(200, object)
    }
}

struct Scene {
    allocator: Arc<Mutex<Allocator>>,
    stored: Arc<Mutex<Stored>>,
    server: ApiServer,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Failure>>,
}

impl Scene {
    /// Publishes a pool of 256 blocks.
    fn begin(stored: Stored, rest: Duration) -> Self {
        let stored = Arc::new(Mutex::new(stored));
        let answering = Arc::clone(&stored);
        let server = ApiServer::new(move |asked| answering.lock().answer(asked));
        let pool = Pool::new("10.0.0.0/16".parse().unwrap(), 24, 16).unwrap();
        let allocator = Allocator::new(vec![pool], &[]).resting_for(rest);
        let allocator = Arc::new(Mutex::new(allocator));
        allocator.lock().set_in_list(true);
        allocator.lock().set_in_list(false);
        let stop = CancellationToken::new();
        let client = server.client();
        let objects = ObjectClient::new(client, CONFIG_MAPS, "node-ipam", WRITE_LIMIT);
        let publisher = PoolPublisher::new(objects, "kube-system", "host_1".into());
        let (watched, stopping) = (Arc::clone(&allocator), stop.clone());
        let task = tokio::spawn(async move { publisher.publish(&watched, &stopping).await });
        Self { allocator, stored, server, stop, task }
    }

    fn join(&self, name: &str) {
        let mut allocator = self.allocator.lock();
        drop(allocator.observe(&node(name, &[]), Instant::now()));
        drop(allocator.assign(&name.into()));
    }

    /// Deletes a Node that has its pod CIDR: a block that was never sent does not rest.
    fn leave(&self, name: &str) {
        let mut allocator = self.allocator.lock();
        let claim = allocator.claim(&name.into()).to_vec();
        drop(allocator.observe(&node(name, &claim), Instant::now()));
        drop(allocator.gone(name, Instant::now()));
    }

    /// Used and resting blocks of the record.
    fn recorded(&self) -> Option<(u64, u64)> {
        let stored = self.stored.lock();
        let record = PoolRecord::of_config_map(stored.object.as_ref()?)?;
        assert_eq!(record.leader, "host_1");
        let [pool] = &record.pools[..] else { panic!("{record:?}") };
        assert_eq!((&*pool.pool, pool.mask, &*pool.state), ("10.0.0.0/16", 24, "serving"));
        assert_eq!((pool.blocks, pool.used + pool.free), (256, 256));
        Some((pool.used, pool.resting))
    }

    /// When the writes were asked for.
    fn writes(&self) -> Vec<Instant> {
        let asked = self.server.asked();
        asked.iter().filter(|it| it.method() != Method::GET).map(|it| it.at).collect()
    }

    async fn end(self) {
        self.stop.cancel();
        assert!(self.task.await.unwrap().is_ok());
    }
}

fn node(name: &str, cidrs: &[IpNet]) -> Node {
    let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"podCIDRs": cidrs},
    }))
    .unwrap()
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

/// 300 Nodes for 256 blocks are recorded within 5 s, and five minutes of joins and leaves cost at most
/// 70 writes, no two of them within 5 s.
#[tokio::test(start_paused = true)]
async fn a_full_pool_is_recorded_within_five_seconds_and_churn_writes_seldom() {
    let scene = Scene::begin(Stored::default(), Duration::ZERO);
    seconds(1).await;
    assert_eq!(scene.recorded(), Some((0, 0)));
    for index in 0..300 {
        scene.join(&format!("n{index}"));
    }
    seconds(5).await;
    assert_eq!(scene.recorded(), Some((256, 0)));
    // Nodes that wait would take each block that is freed.
    (256..300).for_each(|index| scene.leave(&format!("n{index}")));
    for index in 0..295 {
        for each in 0..5 {
            let name = format!("n{}", (index / 2 * 5 + each) % 250);
            if index % 2 == 0 { scene.leave(&name) } else { scene.join(&name) }
        }
        seconds(1).await;
    }
    let writes = scene.writes();
    assert!((50..=70).contains(&writes.len()), "{} writes", writes.len());
    let shortest = writes.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    assert!(shortest >= WRITE_EVERY, "{shortest:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_right_is_not_written_again_and_one_that_was_changed_is() {
    let scene = Scene::begin(Stored::default(), Duration::from_secs(3600));
    seconds(600).await;
    assert_eq!(scene.writes().len(), 1);
    scene.stored.lock().object = None;
    seconds(31).await;
    assert_eq!((scene.recorded(), scene.writes().len()), (Some((0, 0)), 2), "it was deleted");
    {
        let mut stored = scene.stored.lock();
        let mut edited = stored.object.clone().unwrap();
        edited["data"]["leader"] = json!("someone else");
        edited["data"]["omitted"] = json!("7");
        drop(stored.keep(edited));
    }
    seconds(31).await;
    assert_eq!((scene.recorded(), scene.writes().len()), (Some((0, 0)), 3), "it was edited");
    let stored = scene.stored.lock().object.clone().unwrap();
    assert_eq!(stored["data"].get("omitted"), None, "{stored}");
    scene.join("a");
    seconds(31).await;
    assert_eq!(scene.recorded(), Some((1, 0)), "a change below one percent");
    scene.leave("a");
    scene.join("b");
    seconds(31).await;
    assert_eq!((scene.recorded(), scene.writes().len()), (Some((2, 1)), 5), "one block rests");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_config_map_of_another_program_stays_as_it_is_until_it_is_gone() {
    let logs = Capture::begin();
    let theirs = json!({
        "metadata": {"name": POOL_RECORD, "uid": "u", "resourceVersion": "1", "namespace": "kube-system"},
        "data": {"pools": "theirs"},
    });
    let scene =
        Scene::begin(Stored { object: Some(theirs.clone()), ..Stored::default() }, Duration::ZERO);
    seconds(1_000).await;
    assert_eq!(scene.stored.lock().object, Some(theirs));
    assert_eq!(scene.writes(), []);
    let warnings = logs.with(WARNING);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("app.kubernetes.io/managed-by"), "{warnings:?}");
    scene.stored.lock().object = None;
    seconds(301).await;
    assert_eq!(scene.recorded(), Some((0, 0)));
    scene.end().await;
}

/// A quota or a webhook answers 403, too; 401 ends with another credential.
#[tokio::test(start_paused = true)]
async fn every_refusal_is_one_warning_and_one_write_in_five_minutes() {
    for code in [400, 401, 403, 422] {
        let logs = Capture::begin();
        let scene =
            Scene::begin(Stored { refuses: Some(code), ..Stored::default() }, Duration::ZERO);
        seconds(299).await;
        let warnings = logs.with(WARNING);
        assert_eq!((warnings.len(), scene.writes().len()), (1, 1), "{code}: {warnings:?}");
        let is_right = warnings[0].contains("if the right is missing, apply config/rbac");
        assert_eq!(is_right, code == 403, "{warnings:?}");
        scene.end().await;
    }
}

/// `rule:no-release-with-open-writes`: ends within the time of one write, which the Lease waits for.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_one_attempt_of_a_write_that_hangs() {
    for exists in [false, true] {
        let scene = Scene::begin(Stored { hangs: !exists, ..Stored::default() }, Duration::ZERO);
        seconds(1).await;
        if exists {
            assert_eq!(scene.recorded(), Some((0, 0)));
            scene.stored.lock().hangs = true;
            for name in ["a", "b", "c"] {
                scene.join(name);
            }
            seconds(5).await;
        }
        let writes = scene.writes();
        assert_eq!(writes.len(), 1 + usize::from(exists));
        assert!(!scene.task.is_finished());
        scene.stop.cancel();
        let Scene { server, task, .. } = scene;
        assert!(task.await.unwrap().is_ok());
        let took = writes.last().unwrap().elapsed();
        assert_eq!(took.as_secs(), WRITE_LIMIT.as_secs(), "exists: {exists}, {took:?}");
        let sent = server.asked().iter().filter(|it| it.method() != Method::GET).count();
        assert_eq!(sent, writes.len(), "exists: {exists}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_right_there_is_one_warning_and_the_record_comes_with_the_right() {
    let logs = Capture::begin();
    let scene = Scene::begin(Stored { refuses: Some(403), ..Stored::default() }, Duration::ZERO);
    seconds(1_000).await;
    let warnings = logs.with(WARNING);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("apply config/rbac/node-ipam-records.yaml"), "{warnings:?}");
    assert!(scene.writes().len() <= 4, "a refusal is asked for every five minutes");
    scene.stored.lock().refuses = None;
    seconds(301).await;
    assert_eq!(scene.recorded(), Some((0, 0)));
    scene.stored.lock().refuses = Some(503);
    scene.join("a");
    scene.join("b");
    scene.join("c");
    seconds(20).await;
    scene.stored.lock().refuses = None;
    seconds(6).await;
    assert_eq!(scene.recorded(), Some((3, 0)), "an outage ends without a warning");
    assert_eq!(logs.with(WARNING).len(), 1);
    scene.end().await;
}
