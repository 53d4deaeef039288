//! [`NodeLists`]: one list of the Nodes of each Cluster at a time, for everybody who needs one: the
//! summary, and the Machines (`rule:machines-follow-one-list`).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use probe::Client;
use tokio::time::{Instant, timeout};

use super::cluster_states::{ClusterStates, LatestNodes};
use super::machines::MachineHealth;
use super::summary::{NodeList, NodeTotals, nodes};
use crate::api::tke::NodeCounts;
use crate::engine::{Cluster, Registry, now};
use crate::paging::{Abort, MemberReader};
use crate::tke::TkeOptions;

/// A whole list.
const LIMIT: Duration = Duration::from_secs(30);

/// Lists Nodes.
pub(crate) struct NodeLists {
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) states: Arc<ClusterStates>,
    pub(crate) registry: Registry,
    pub(crate) options: Arc<TkeOptions>,
    pub(crate) machines: Arc<MachineHealth>,
}

impl NodeLists {
    /// What a list begun within the last `max_age` adds up to; a new one when there is none, which
    /// all Machines of the Cluster are judged by. Who asks meanwhile waits for it. `target` belongs
    /// to the cluster behind `client`; when the Cluster is another one by the end, the list says
    /// nothing.
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
        let listing = nodes(&mut member, self.options.summary_page_size, &roster);
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

    /// `rule:required-nodes-are-counted-with-each-probe`
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
