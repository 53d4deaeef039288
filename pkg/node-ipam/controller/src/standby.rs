//! Warm standby: a cache of all Nodes that is filled while another process leads, and the proof at the
//! start of the term that it shows all that a predecessor wrote (`rule:list-before-allocate`). Only the
//! cache is prepared. The allocator takes its claims from it when this process leads, as from a list, so
//! a warm start knows what a cold one knows.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use informer::{Informer, Position};
use kube_api::{Node, StaticKind};
use manager::{Context, Failure, Informers};
use parking_lot::Mutex;
use prometheus::IntCounterVec;
use resilience::task;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use crate::LOGGER;
use crate::api::NodeApi;
use crate::node_work;
use crate::options::{Options, WarmProof};
use crate::patch::{self, Class};
use crate::reconciler::CachedNode;

/// Annotation of the Node that a new leader wrote first: `<identity>/<transitions of the lease>`.
const BEACON: &str = "infra-controller-manager/leader";
/// Time limit of the beacon and its event.
const BEACON_LIMIT: Duration = Duration::from_secs(1);
/// Pause before the beacon is sent again.
const SEND_AGAIN: Duration = Duration::from_millis(20);
/// Pause before the newest version is read again.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// Without the proof in this time a list is faster.
fn limit(proof: WarmProof) -> Duration {
    match proof {
        WarmProof::Beacon => BEACON_LIMIT,
        // The watch that asks for a bookmark ends after three seconds.
        WarmProof::Bookmark => Duration::from_secs(4),
    }
}

/// Why the cache of a standby is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cold {
    /// It has no consistent list, or a watch after it was not opened at the first try.
    Broken,
    /// The Lease was once older than before.
    LeaseWentBack,
    /// There is no Node to write to.
    NoNodes,
    /// The server refused the beacon, or did not say its newest version.
    Refused,
    /// The watch did not get as far as the proof in time.
    NoProof,
    /// The proof is not newer than the cache.
    OldProof,
    /// The server has another history since.
    OtherHistory,
}

/// Label of `icm_warm_start_total` for a warm start.
const WARM: &str = "warm";

impl Cold {
    const ALL: [Self; 7] = [
        Self::Broken,
        Self::LeaseWentBack,
        Self::NoNodes,
        Self::Refused,
        Self::NoProof,
        Self::OldProof,
        Self::OtherHistory,
    ];

    /// Label of `icm_warm_start_total`.
    fn label(self) -> &'static str {
        match self {
            Self::Broken => "cold_broken",
            Self::LeaseWentBack => "cold_lease_went_back",
            Self::NoNodes => "cold_no_nodes",
            Self::Refused => "cold_refused",
            Self::NoProof => "cold_no_proof",
            Self::OldProof => "cold_old_proof",
            Self::OtherHistory => "cold_other_history",
        }
    }
}

impl fmt::Display for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "the watch of Nodes was interrupted after its last list",
            Self::LeaseWentBack => "the Lease was older than before, as after a restore of etcd",
            Self::NoNodes => "there is no Node that could be annotated",
            Self::Refused => "the API server refused the annotation or the read of its newest version",
            Self::NoProof => "the watch of Nodes did not show the newest state in time",
            Self::OldProof => {
                "the API server's newest version is not newer than the cache, as after a restore of etcd"
            }
            Self::OtherHistory => "the history of the API server changed",
        })
    }
}

/// What a standby has prepared for the first run.
pub(crate) type Prepared = Mutex<Option<Box<dyn Standby>>>;

/// The end of a standby, when this process leads.
pub(crate) trait Standby: Send {
    /// Proves that the cache shows all writes of earlier leaders, or gives it up.
    fn end(self: Box<Self>, context: &mut Context) -> BoxFuture<'_, Result<WarmCache, Failure>>;
}

/// Keeps the proven cache for the run, which finds it there; `None` when the Nodes are listed.
pub(crate) type WarmCache = Option<Box<dyn Any + Send>>;

/// A cache of all Nodes that is kept up to date.
pub(crate) struct WarmNodes<N: CachedNode> {
    nodes: Informer<N>,
    proof: WarmProof,
    following: AbortOnDropHandle<()>,
}

impl<N: CachedNode + StaticKind> WarmNodes<N> {
    /// Begins to fill the cache that a run with these options uses.
    pub(crate) fn start(informers: &Informers, options: &Options, proof: WarmProof) -> Self {
        let nodes = node_work::nodes_of::<N>(informers, options);
        let followed = nodes.clone();
        let following = tokio::spawn(task(async move { match followed.keep_unbroken().await {} }));
        Self { nodes, proof, following: AbortOnDropHandle::new(following) }
    }
}

impl<N: CachedNode> Standby for WarmNodes<N> {
    fn end(self: Box<Self>, context: &mut Context) -> BoxFuture<'_, Result<WarmCache, Failure>> {
        Box::pin(async move {
            let Self { nodes, proof, following } = *self;
            let results = context.metrics(metric)?;
            let begun = Instant::now();
            let Context { won, identity, stop, .. } = &*context;
            let proving = Proving {
                nodes: &nodes,
                proof,
                api: NodeApi::new(context.caller.clone(), BEACON_LIMIT),
                value: format!("{identity}/{}", won.transitions),
                beacon_until: Mutex::default(),
            };
            let proven = stop.run_until_cancelled(proving.prove(won.lease_went_back)).await;
            let beacon_until = proving.beacon_until.into_inner();
            // It keeps the cache alive until it has ended.
            following.abort();
            drop(following.await);
            if let Some(until) = beacon_until {
                // The lease is not released before (rule:no-release-with-open-writes).
                context.note_open_write(until);
            }
            let Some(proven) = proven else { return Ok(None) };
            let result = proven.map_or_else(Cold::label, |()| WARM);
            results.with_label_values(&[result]).inc();
            let took = begun.elapsed();
            Ok(match proven {
                Ok(()) => {
                    info!(
                        logger = LOGGER,
                        nodes = nodes.len(),
                        ?took,
                        "Starting with the warm cache of Nodes"
                    );
                    Some(Box::new(nodes) as Box<dyn Any + Send>)
                }
                Err(why) => {
                    info!(logger = LOGGER, %why, ?took, "Not using the warm cache of Nodes; listing them");
                    drop(nodes);
                    context.informers = context.informers.from_now();
                    None
                }
            })
        })
    }
}

fn metric(registry: &prometheus::Registry) -> Result<IntCounterVec, prometheus::Error> {
    let help = "Starts of a leader with --warm-standby: warm, or why the Nodes were listed again.";
    let results = metrics::counter(registry, "icm_warm_start_total", help, &["result"])?;
    for label in Cold::ALL.into_iter().map(Cold::label).chain([WARM]) {
        results.with_label_values(&[label]);
    }
    Ok(results)
}

/// One proof.
struct Proving<'a, N: CachedNode> {
    nodes: &'a Informer<N>,
    proof: WarmProof,
    api: NodeApi,
    /// Of the annotation [`BEACON`]; no other leader writes the same.
    value: String,
    /// Until when the server may apply a beacon that was not answered.
    beacon_until: Mutex<Option<Instant>>,
}

impl<N: CachedNode> Proving<'_, N> {
    /// Proves that the cache shows all Nodes as of a moment after the lease was won.
    async fn prove(&self, lease_went_back: bool) -> Result<(), Cold> {
        let nodes = self.nodes;
        if lease_went_back {
            return Err(Cold::LeaseWentBack);
        }
        let from = nodes.position();
        if !from.is_unbroken {
            return Err(Cold::Broken);
        }
        if nodes.is_empty() {
            return Err(Cold::NoNodes);
        }
        let reached = timeout(limit(self.proof), self.reach(from)).await;
        nodes.seek(0);
        let now = reached.unwrap_or(Err(Cold::NoProof))?;
        if now.history != from.history {
            return Err(Cold::OtherHistory);
        }
        if now.is_unbroken { Ok(()) } else { Err(Cold::Broken) }
    }

    /// Waits until the cache has got as far as the proof. Only an open watch can get further than the cache
    /// is: one that is dead proves nothing.
    async fn reach(&self, from: Position) -> Result<Position, Cold> {
        let nodes = self.nodes;
        match self.proof {
            WarmProof::Bookmark => {
                let newest = self.newest(from.version).await?;
                nodes.seek(newest);
                Ok(nodes.reaches(newest, from).await)
            }
            WarmProof::Beacon => {
                let (node, written) = self.beacon().await?;
                if written <= from.version {
                    return Err(Cold::OldProof);
                }
                let mut now = nodes.reaches(written, from).await;
                while now.history == from.history && !self.shows(&node, written) {
                    now = nodes.reaches(now.version + 1, from).await;
                }
                Ok(now)
            }
        }
    }

    /// Whether the cache has this Node as of that version.
    fn shows(&self, node: &Node, version: u64) -> bool {
        let known = self.nodes.get(&node.name);
        known.is_some_and(|it| it.uid() == &*node.uid && it.resource_version() >= version)
    }

    /// The newest version of the server, once it is newer than `known`: each renewal of our Lease makes
    /// another one.
    async fn newest(&self, known: u64) -> Result<u64, Cold> {
        loop {
            let newest = self.nodes.newest_version().await.ok_or(Cold::Refused)?;
            match newest.cmp(&known) {
                Ordering::Less => return Err(Cold::OldProof),
                Ordering::Equal => sleep(READ_AGAIN).await,
                Ordering::Greater => return Ok(newest),
            }
        }
    }

    /// Writes the beacon to a Node that is ours; that Node, and its version after it. Without an answer it is
    /// written again: when nothing changes then, the answer has the version of our write before, or a later one.
    async fn beacon(&self) -> Result<(Node, u64), Cold> {
        loop {
            let find = |node: &&Arc<N>| takes_beacon(node.as_ref().as_ref());
            let node = self.nodes.frozen(|store| store.values().find(find).cloned());
            let node = node.ok_or(Cold::NoNodes)?;
            let node = (*node).as_ref().clone();
            let metadata = json!({"uid": &*node.uid, "annotations": {BEACON: &self.value}});
            let body = Bytes::from(json!({"metadata": metadata}).to_string());
            let (now, before) = (Instant::now(), *self.beacon_until.lock());
            *self.beacon_until.lock() = Some(now + self.api.applicable_for());
            if let Ok(answer) = self.api.patch(&node.name, body, now, || true).await {
                let class = patch::classify(answer.status, None, &answer.body, &node.uid);
                if !matches!(class, Class::Ambiguous { .. }) {
                    *self.beacon_until.lock() = before;
                }
                match class {
                    Class::Done => {
                        let version = version_of(&answer.body).ok_or(Cold::Refused)?;
                        return Ok((node, version));
                    }
                    Class::Missing | Class::Replaced | Class::Ambiguous { .. } => {}
                    Class::Taken | Class::Throttled { .. } | Class::Rejected { .. } => {
                        let (status, node) = (answer.status.as_u16(), &*node.name);
                        info!(
                            logger = LOGGER,
                            node,
                            status,
                            "Nodes are listed: the API server refused the annotation that proves the warm cache"
                        );
                        return Err(Cold::Refused);
                    }
                }
            }
            sleep(SEND_AGAIN).await;
        }
    }
}

/// Whether a new leader may annotate this Node.
fn takes_beacon(node: &Node) -> bool {
    node.is_selected && !node.deleting
}

#[derive(Deserialize)]
struct Answered {
    metadata: AnsweredMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredMetadata {
    resource_version: String,
}

/// The version of the Node in an answer.
fn version_of(body: &[u8]) -> Option<u64> {
    let Answered { metadata } = serde_json::from_slice(body).ok()?;
    metadata.resource_version.parse().ok()
}

#[cfg(test)]
mod tests;
