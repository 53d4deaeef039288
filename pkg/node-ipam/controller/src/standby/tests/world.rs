//! [`World`]: an etcd with Nodes and the Lease, the API servers in front of it, and the faults of both.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply};
use bytes::Bytes;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::{StreamExt as _, unfold};
use http::Method;
use kube_api::Node;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

/// What etcd has stored; a copy is a snapshot.
#[derive(Clone, Default)]
pub(super) struct Etcd {
    pub(super) revision: u64,
    /// Revision of the last write of the Lease.
    pub(super) lease: u64,
    nodes: BTreeMap<String, Value>,
    /// Each event of a Node with its revision.
    log: Vec<(u64, Value)>,
}

/// What API servers do with requests while they are down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Down {
    Refuse,
    /// A balancer holds the request until they are up.
    Hold,
    /// They answer with this code and reason.
    Answer(u16, &'static str),
}

/// Message of a watch, and when it arrives; `None` breaks the connection.
type Message = (Instant, Option<Value>);

struct Watcher {
    id: u32,
    /// Events up to here are not sent.
    from: u64,
    lag: Duration,
    sender: UnboundedSender<Message>,
}

pub(super) struct State {
    pub(super) rng: StdRng,
    pub(super) etcd: Etcd,
    pub(super) snapshots: Vec<Etcd>,
    watchers: Vec<Watcher>,
    down: Option<(Instant, Down)>,
    /// How often in a hundred a beacon is lost: unwritten, or written and not answered.
    pub(super) faulty: u32,
    /// How far the watch lags behind at the most.
    pub(super) lag: Duration,
}

/// Clones are the same.
#[derive(Clone)]
pub(super) struct World(pub(super) Arc<Mutex<State>>);

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let (etcd, watchers) = (Etcd { revision: 100, ..Etcd::default() }, Vec::new());
        let (rng, lag) = (StdRng::seed_from_u64(seed), Duration::from_millis(20));
        let state =
            State { rng, etcd, snapshots: Vec::new(), watchers, down: None, faulty: 0, lag };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn client(&self) -> kube::Client {
        let world = self.clone();
        ApiServer::new(move |asked| world.answer(asked)).client()
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let mut state = self.0.lock();
        match state.down {
            Some((until, Down::Hold)) if until > Instant::now() => {
                let (world, asked) = (self.clone(), asked.clone());
                return Reply::Later(Box::pin(async move {
                    sleep_until(until).await;
                    world.answer(&asked)
                }));
            }
            Some((until, Down::Refuse)) if until > Instant::now() => return Reply::Refused,
            Some((until, Down::Answer(code, reason))) if until > Instant::now() => {
                return Reply::failure(code, reason);
            }
            _ => {}
        }
        let query = asked.query();
        if *asked.method() == Method::PATCH {
            state.beacon(asked)
        } else if query.contains("sendInitialEvents") {
            Reply::failure(400, "BadRequest")
        } else if query.contains("watch=true") {
            let (id, reply) = state.watch(query);
            if query.contains("timeoutSeconds=3&") {
                drop(tokio::spawn(self.clone().end_short_watch(id)));
            }
            reply
        } else {
            let items: Vec<_> = state.etcd.nodes.values().collect();
            let metadata = json!({"resourceVersion": state.etcd.revision.to_string()});
            Reply::Json(200, json!({"kind": "NodeList", "metadata": metadata, "items": items}))
        }
    }

    /// A bookmark comes two seconds before the end.
    async fn end_short_watch(self, id: u32) {
        sleep(Duration::from_secs(1)).await;
        self.0.lock().bookmark(id);
        sleep(Duration::from_secs(2)).await;
        self.0.lock().watchers.retain(|it| it.id != id);
    }

    /// The Nodes as a consistent list has them.
    pub(super) fn nodes(&self) -> Vec<Node> {
        let state = self.0.lock();
        let read = |node: &Value| serde_json::from_value(node.clone()).unwrap();
        state.etcd.nodes.values().map(read).collect()
    }
}

impl State {
    pub(super) fn random(&mut self, below: u32) -> u32 {
        self.rng.random_range(0..below)
    }

    pub(super) fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(0..below))
    }

    fn beacon(&mut self, asked: &Asked) -> Reply {
        let (lost, unwritten) = (self.random(100) < self.faulty, self.random(100) < self.faulty);
        if unwritten {
            return Reply::failure(503, "ServiceUnavailable");
        }
        let name = asked.path().rsplit('/').next().unwrap().to_owned();
        let Some(node) = self.etcd.nodes.get(&name).cloned() else {
            return Reply::failure(404, "NotFound");
        };
        let wanted = &asked.json()["metadata"];
        if wanted["uid"] != node["metadata"]["uid"] {
            return Reply::failure(409, "Conflict");
        }
        if wanted["annotations"] != node["metadata"]["annotations"] {
            let annotations = wanted["annotations"].clone();
            self.write(&name, |node| node["metadata"]["annotations"] = annotations);
        }
        if lost {
            return Reply::Fails("connection reset".into());
        }
        Reply::Json(200, self.etcd.nodes[&name].clone())
    }

    fn watch(&mut self, query: &str) -> (u32, Reply) {
        let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
        let from = version.unwrap().parse().unwrap();
        let (sender, receiver) = unbounded();
        let most = u64::try_from(self.lag.as_millis()).unwrap();
        let lag = self.millis(most + 1);
        let id = self.rng.random();
        let watcher = Watcher { id, from, lag, sender };
        for (revision, event) in &self.etcd.log {
            watcher.send(*revision, event);
        }
        self.watchers.push(watcher);
        let body = unfold(receiver, |mut receiver| async move {
            let (due, event) = receiver.next().await?;
            sleep_until(due).await;
            let broken = || io::Error::other("connection reset");
            let line = event.map(|event| Bytes::from(format!("{event}\n"))).ok_or_else(broken);
            Some((line, receiver))
        });
        (id, Reply::Body("application/json", body.boxed()))
    }

    fn bookmark(&self, id: u32) {
        let revision = self.etcd.revision;
        let metadata = json!({"resourceVersion": revision.to_string()});
        let bookmark =
            json!({"type": "BOOKMARK", "object": {"kind": "Node", "metadata": metadata}});
        for watcher in self.watchers.iter().filter(|it| it.id == id) {
            watcher.send(revision, &bookmark);
        }
    }

    /// Another write of the Lease, or of any other kind.
    pub(super) fn advance(&mut self, by: u64) {
        self.etcd.revision += by;
    }

    pub(super) fn renew_lease(&mut self) {
        self.advance(1);
        self.etcd.lease = self.etcd.revision;
    }

    fn log(&mut self, kind: &str, node: &Value) {
        let event = json!({"type": kind, "object": node});
        self.etcd.log.push((self.etcd.revision, event.clone()));
        for watcher in &self.watchers {
            watcher.send(self.etcd.revision, &event);
        }
    }

    pub(super) fn write(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let Some(mut node) = self.etcd.nodes.get(name).cloned() else { return };
        self.advance(1);
        change(&mut node);
        node["metadata"]["resourceVersion"] = self.etcd.revision.to_string().into();
        self.etcd.nodes.insert(name.to_owned(), node.clone());
        self.log("MODIFIED", &node);
    }

    pub(super) fn join(&mut self, name: &str) {
        self.advance(1);
        let version = self.etcd.revision.to_string();
        let uid = format!("uid-{name}-{version}");
        let metadata = json!({"name": name, "uid": uid, "resourceVersion": version});
        let node = json!({"metadata": metadata, "spec": {}});
        self.etcd.nodes.insert(name.to_owned(), node.clone());
        self.log("ADDED", &node);
    }

    pub(super) fn leave(&mut self, name: &str) {
        let Some(mut node) = self.etcd.nodes.remove(name) else { return };
        self.advance(1);
        node["metadata"]["resourceVersion"] = self.etcd.revision.to_string().into();
        self.log("DELETED", &node);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.etcd.nodes.contains_key(name)
    }

    /// UID and CIDR of a Node.
    pub(super) fn seen(&self, name: &str) -> Option<(String, Option<String>)> {
        let node = self.etcd.nodes.get(name)?;
        let cidr = node["spec"]["podCIDR"].as_str().map(str::to_owned);
        Some((node["metadata"]["uid"].as_str().unwrap().to_owned(), cidr))
    }

    pub(super) fn annotation(&self, name: &str, key: &str) -> Option<String> {
        let node = self.etcd.nodes.get(name)?;
        node["metadata"]["annotations"][key].as_str().map(str::to_owned)
    }

    /// CIDRs in use.
    pub(super) fn used(&self) -> Vec<String> {
        let cidr = |node: &Value| node["spec"]["podCIDR"].as_str().map(str::to_owned);
        self.etcd.nodes.values().filter_map(cidr).collect()
    }

    /// Ends all watches: broken off, or as a server ends them.
    pub(super) fn end_watches(&mut self, broken: bool) {
        for watcher in self.watchers.drain(..) {
            if broken {
                watcher.sender.unbounded_send((Instant::now(), None)).ok();
            }
        }
    }

    /// All watches are dead without a reset, and break off after that time.
    pub(super) fn end_watches_unseen(&mut self, after: Duration) {
        for watcher in self.watchers.drain(..) {
            watcher.sender.unbounded_send((Instant::now() + after, None)).ok();
        }
    }

    /// The API servers answer nothing for that time.
    pub(super) fn stop_servers(&mut self, length: Duration, how: Down) {
        self.down = Some((Instant::now() + length, how));
    }

    /// Brings back a snapshot; in every second world writes follow at once and overtake what was there.
    pub(super) fn restore_and_overtake(&mut self) {
        let before = self.etcd.revision;
        self.restore_if(|_| true);
        if self.random(2) == 0 {
            self.advance(before - self.etcd.revision + 50);
        }
    }

    /// Brings back a snapshot, if there is such a one; API servers that go on keep their watches.
    pub(super) fn restore_if(&mut self, may: impl Fn(&Etcd) -> bool) -> bool {
        let age = self.rng.random_range(0..self.snapshots.len());
        if !may(&self.snapshots[age]) {
            return false;
        }
        self.etcd = self.snapshots[age].clone();
        self.snapshots.truncate(age + 1);
        true
    }
}

impl Watcher {
    fn send(&self, revision: u64, event: &Value) {
        if revision > self.from {
            // Closed when the informer has let go of it.
            self.sender.unbounded_send((Instant::now() + self.lag, Some(event.clone()))).ok();
        }
    }
}
