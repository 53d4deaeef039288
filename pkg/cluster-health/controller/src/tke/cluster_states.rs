//! [`ClusterStates`]: the facts about each Cluster that this process has. [`NodeLists`]: one list of the
//! Nodes of each Cluster at a time, shared by the summary and the Machines.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use health::Status;
use jiff::Timestamp;
use parking_lot::Mutex;
use probe::Client;
use tokio::time::{Instant, timeout};

use super::facts::Facts;
use super::machines::MachineHealth;
use super::summary::{NodeList, NodeTotals, list_nodes};
use crate::api::tke::{NodeCounts, ResourceSummary};
use crate::engine::{Cluster, Connections, FlavourRegistry, now};
use crate::options::TkeOptions;
use crate::paging::{Abort, MemberReader};

/// A summary at first. One that is not complete by then gets twice as long the next time, up to
/// [`SUMMARY_LIMIT_MAX`]: 150,000 Pods are 300 pages, and slow members must not hold all workers.
const SUMMARY_LIMIT: Duration = Duration::from_secs(60);
pub(crate) const SUMMARY_LIMIT_MAX: Duration = Duration::from_secs(300);

/// All Clusters, by name. An entry belongs to one UID.
#[derive(Default)]
pub(crate) struct ClusterStates {
    pub(crate) connections: Connections,
    entries: Mutex<HashMap<Arc<str>, ClusterState>>,
}

/// The newest list of Nodes: when it was begun, and its sums. Locked while one is under way.
pub(crate) type LatestNodes = Arc<tokio::sync::Mutex<Option<(Instant, Arc<NodeTotals>)>>>;

/// The state of one Cluster.
pub(crate) struct ClusterState {
    uid: Arc<str>,
    pub(crate) facts: Facts,
    /// The API server of the Cluster answered the last probe with `ok`.
    pub(crate) answers: bool,
    /// When its version was asked for.
    pub(crate) version_asked: Option<Instant>,
    /// When its addresses were asked that probes do not ask.
    pub(crate) looked_around: Option<Instant>,
    /// A summary is queued or under way.
    pub(crate) summary_planned: bool,
    /// How long its next summary may take.
    pub(crate) summary_limit: Duration,
    /// The newest list of its Nodes.
    pub(crate) nodes: LatestNodes,
    /// The readiness that was published when its Machines were last observed.
    pub(crate) machines_saw: Option<Status>,
}

impl ClusterState {
    /// Doubles the time limit of the next summary: this one was not complete in time.
    pub(crate) fn summary_timed_out(&mut self) {
        self.summary_limit = (self.summary_limit * 2).min(SUMMARY_LIMIT_MAX);
    }
}

impl ClusterStates {
    /// Reads or changes what is known of a Cluster; one that is new, or another under a known name,
    /// begins with nothing.
    pub(crate) fn with<R>(
        &self,
        cluster: &Cluster,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> R {
        let mut entries = self.entries.lock();
        let fresh = || ClusterState {
            uid: Arc::clone(&cluster.uid),
            facts: Facts::default(),
            answers: false,
            version_asked: None,
            looked_around: None,
            summary_planned: false,
            summary_limit: SUMMARY_LIMIT,
            nodes: LatestNodes::default(),
            machines_saw: None,
        };
        let entry = entries.entry(Arc::clone(&cluster.key)).or_insert_with(fresh);
        if entry.uid != cluster.uid {
            *entry = fresh();
        }
        edit(entry)
    }

    /// Reads or changes what is known of a Cluster, if it is known.
    pub(crate) fn known<R>(
        &self,
        cluster: &Cluster,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> Option<R> {
        let mut entries = self.entries.lock();
        entries.get_mut(&cluster.key).filter(|entry| entry.uid == cluster.uid).map(edit)
    }

    /// The name of each Cluster that has a summary, with what `read` returns for it.
    pub(crate) fn summaries<R>(&self, read: impl Fn(&ResourceSummary) -> R) -> Vec<(Arc<str>, R)> {
        let entries = self.entries.lock();
        let summaries = entries.iter().filter_map(|(name, entry)| {
            Some((Arc::clone(name), read(entry.facts.summary.as_ref()?)))
        });
        summaries.collect()
    }

    /// Like [`Self::known`], unless the Cluster is another target than the one `latest` belongs to.
    pub(crate) fn still<R>(
        &self,
        cluster: &Cluster,
        latest: &LatestNodes,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> Option<R> {
        let edited =
            self.known(cluster, |entry| Arc::ptr_eq(&entry.nodes, latest).then(|| edit(entry)));
        edited.flatten()
    }

    /// The client of the newest inputs, and where the lists of that target go. The place for lists is
    /// read first and replaced last: a list of a former target has no place.
    pub(crate) fn target(&self, cluster: &Cluster) -> Option<(Arc<Client>, LatestNodes)> {
        let nodes = self.known(cluster, |entry| Arc::clone(&entry.nodes))?;
        Some((self.connections.client(cluster)?, nodes))
    }

    /// The Cluster leads to another target now: drops the facts of the one before.
    pub(crate) fn retarget(&self, cluster: &Cluster) {
        self.known(cluster, |entry| {
            (entry.facts, entry.nodes) = (Facts::default(), LatestNodes::default());
            (entry.version_asked, entry.looked_around) = (None, None);
        });
    }

    /// Drops all that is known, credentials with it.
    pub(crate) fn remove(&self, cluster: &Cluster) {
        self.connections.remove(cluster);
        let mut entries = self.entries.lock();
        if entries.get(&cluster.key).is_some_and(|entry| entry.uid == cluster.uid) {
            entries.remove(&cluster.key);
        }
    }
}

/// A whole list.
const LIMIT: Duration = Duration::from_secs(30);

/// Lists Nodes.
pub(crate) struct NodeLists {
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) states: Arc<ClusterStates>,
    pub(crate) registry: FlavourRegistry,
    pub(crate) options: Arc<TkeOptions>,
    pub(crate) machines: Arc<MachineHealth>,
}

impl NodeLists {
    /// The totals of a list begun within the last `max_age`, else of a new one, by which all Machines of
    /// the Cluster are judged. Callers meanwhile wait for that list. `target` belongs to the cluster
    /// behind `client`; when the Cluster has another target by the end, the list is dropped.
    pub(crate) async fn totals(
        &self,
        cluster: &Cluster,
        client: &Arc<Client>,
        target: LatestNodes,
        max_age: Duration,
    ) -> Result<Arc<NodeTotals>, Abort> {
        let mut latest = target.lock().await;
        if let Some((begun, totals)) = &*latest
            && begun.elapsed() < max_age
        {
            return Ok(Arc::clone(totals));
        }
        let begun = Instant::now();
        let listed = self.list(cluster, client).await;
        if self.states.still(cluster, &target, |_| ()).is_none() {
            return Err(Abort::Failed("the cluster is gone".into()));
        }
        let totals = self.learn(cluster, listed)?;
        *latest = Some((begun, Arc::clone(&totals)));
        Ok(totals)
    }

    async fn list(&self, cluster: &Cluster, client: &Arc<Client>) -> Result<NodeList, Abort> {
        let mut member = MemberReader::new(&self.prober, client);
        let roster = self.machines.roster(&cluster.key);
        let listing = list_nodes(&mut member, self.options.summary_page_size, &roster);
        timeout(LIMIT, listing).await.unwrap_or_else(|_| {
            let why = format!("the list of Nodes was not complete within {LIMIT:?}");
            Err(Abort::Failed(why.into()))
        })
    }

    fn learn(
        &self,
        cluster: &Cluster,
        listed: Result<NodeList, Abort>,
    ) -> Result<Arc<NodeTotals>, Abort> {
        // rule:machines-of-an-unhealthy-cluster-are-unknown. One that went while it was read is not
        // ready either, and another may have its name by now.
        let judges = self.registry.is_ready(cluster);
        match listed {
            Ok(NodeList { totals, roster }) => {
                if judges {
                    self.machines.observe(&cluster.key, &roster, now());
                }
                self.count(cluster, totals.counts);
                Ok(Arc::new(totals))
            }
            Err(abort) => {
                if judges {
                    self.machines.not_listed(&cluster.key, &abort.to_string(), now());
                }
                Err(abort)
            }
        }
    }

    fn count(&self, cluster: &Cluster, counts: NodeCounts) {
        let ratio = self.options.nodes_ready_min_ratio;
        let turned = self.states.known(cluster, |entry| {
            let before = entry.facts.enough_nodes.unwrap_or(true);
            entry.facts.counted(counts, ratio, Timestamp::now());
            entry.facts.enough_nodes != Some(before)
        });
        self.registry.facts_changed(cluster);
        if turned == Some(true) && self.options.ready_requires_nodes {
            self.registry.trigger(cluster);
        }
    }
}

#[cfg(test)]
mod tests;
