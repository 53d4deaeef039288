//! Watches all Nodes from a moment on and keeps every change, by resourceVersion.
//!
//! The test's own eyes: it talks to the API server directly, never through the fault proxy.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use kube::Client;
use kube::core::WatchEvent;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::PATIENCE;

/// One state of one node.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Resource version of this state; of the deletion when `deleted`.
    pub resource_version: u64,
    /// Time at which the observer saw the state, shortly after the change.
    pub at: Instant,
    /// The node's name.
    pub name: Arc<str>,
    /// The node's uid: a name may be used again.
    pub uid: Arc<str>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<String>,
    /// Whether the state is a deletion.
    pub deleted: bool,
}

/// The nodes that exist, by name.
#[derive(Debug, Clone, Default)]
pub struct Nodes(BTreeMap<Arc<str>, Seen>);

impl Nodes {
    /// The pod CIDRs of a node; none when it has none or does not exist.
    pub fn cidrs(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], |node| &node.pod_cidrs)
    }

    /// Number of Nodes with pod CIDRs.
    pub fn assigned(&self) -> usize {
        self.0.values().filter(|node| !node.pod_cidrs.is_empty()).count()
    }
}

impl Deref for Nodes {
    type Target = BTreeMap<Arc<str>, Seen>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A running watch over all nodes; it ends on drop. Bound to the runtime it was started on.
pub struct Observer {
    record: Arc<Mutex<Record>>,
    changed: watch::Receiver<()>,
    task: AbortHandle,
}

#[derive(Default)]
struct Record {
    history: Vec<Seen>,
    now: Nodes,
    failure: Option<String>,
}

impl Observer {
    /// Lists the nodes and goes on from there: when this returns, no later change is missed.
    pub async fn start(client: &Client) -> Self {
        let list: List = serde_json::from_str(
            &client.request_text(get("/api/v1/nodes")).await.expect("nodes can be listed"),
        )
        .expect("a list of nodes");
        let record = Arc::new(Mutex::new(Record::default()));
        let mut items: Vec<_> = list.items.into_iter().map(|node| node.seen(false)).collect();
        items.sort_by_key(|node| node.resource_version);
        for node in items {
            record.lock().add(node);
        }

        let (announce, changed) = watch::channel(());
        let (client, sink) = (client.clone(), Arc::clone(&record));
        let task = tokio::spawn(async move {
            let result = follow(&client, list.metadata.resource_version, |node| {
                sink.lock().add(node);
                announce.send_replace(());
            })
            .await;
            sink.lock().failure = result.err().map(|error| format!("{error:#}"));
        });
        Self { record, changed, task: task.abort_handle() }
    }

    /// Everything seen so far, in the order of resourceVersions.
    pub fn history(&self) -> Vec<Seen> {
        let record = self.record.lock();
        record.assert_alive();
        record.history.clone()
    }

    /// The nodes as they are now.
    pub fn now(&self) -> Nodes {
        let record = self.record.lock();
        record.assert_alive();
        record.now.clone()
    }

    /// Waits until the nodes are as `wanted`, and returns them. `what` names it in the failure.
    pub async fn until(&self, what: &str, wanted: impl Fn(&Nodes) -> bool) -> Nodes {
        self.until_within(PATIENCE, what, wanted).await
    }

    /// Like [`Self::until`], with another limit.
    pub async fn until_within(
        &self,
        limit: Duration,
        what: &str,
        wanted: impl Fn(&Nodes) -> bool,
    ) -> Nodes {
        let now = self.within(limit, &wanted).await;
        let (all, assigned) = (now.len(), now.assigned());
        assert!(wanted(&now), "not within {limit:?}: {what}; of {all} nodes {assigned} have CIDRs");
        now
    }

    /// The nodes as soon as they are as `wanted`, or as they are when the time is over.
    pub async fn within(&self, limit: Duration, wanted: impl Fn(&Nodes) -> bool) -> Nodes {
        let mut changed = self.changed.clone();
        let wait = async {
            loop {
                changed.mark_unchanged();
                {
                    let record = self.record.lock();
                    record.assert_alive();
                    if wanted(&record.now) {
                        return record.now.clone();
                    }
                }
                // An error: the watch has failed, which the next turn reports.
                let _ended = changed.changed().await.is_err();
            }
        };
        timeout(limit, wait).await.unwrap_or_else(|_| self.now())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Record {
    fn add(&mut self, node: Seen) {
        if node.deleted {
            self.now.0.remove(&node.name);
        } else {
            self.now.0.insert(Arc::clone(&node.name), node.clone());
        }
        self.history.push(node);
    }

    fn assert_alive(&self) {
        if let Some(failure) = &self.failure {
            panic!("the observer's watch has failed, its history has a hole: {failure}");
        }
    }
}

/// Watches from `version` on, and again from where it was whenever the server ends the watch.
async fn follow(
    client: &Client,
    mut version: String,
    mut add: impl FnMut(Seen),
) -> anyhow::Result<()> {
    loop {
        let path =
            format!("/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        let events = client.request_events::<WireNode>(get(&path)).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let (node, deleted) = match event.context("cannot read the watch")? {
                WatchEvent::Added(node) | WatchEvent::Modified(node) => (node, false),
                WatchEvent::Deleted(node) => (node, true),
                WatchEvent::Bookmark(mark) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => bail!("the server says: {status:?}"),
            };
            version.clone_from(&node.metadata.resource_version);
            add(node.seen(deleted));
        }
    }
}

fn get(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).expect("a valid request")
}

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<WireNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

#[derive(Deserialize, Clone)]
struct WireNode {
    metadata: WireMetadata,
    spec: WireSpec,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct WireMetadata {
    name: Arc<str>,
    uid: Arc<str>,
    resource_version: String,
}

#[derive(Deserialize, Clone)]
struct WireSpec {
    #[serde(rename = "podCIDRs", default)]
    pod_cidrs: Vec<String>,
}

impl WireNode {
    fn seen(self, deleted: bool) -> Seen {
        let WireMetadata { name, uid, resource_version } = self.metadata;
        let resource_version = resource_version.parse().expect("a number (KEP 5504)");
        let pod_cidrs = self.spec.pod_cidrs;
        Seen { resource_version, at: Instant::now(), name, uid, pod_cidrs, deleted }
    }
}
