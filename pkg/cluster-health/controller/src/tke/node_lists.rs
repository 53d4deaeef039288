//! [`NodeLists`]: one list of the Nodes of each Cluster at a time, shared by the summary and the
//! Machines.

use std::sync::Arc;
use std::time::Duration;

use probe::Client;
use resilience::wall_now;
use tokio::time::{Instant, timeout};

use super::cluster_details::{DetailStore, LatestNodes};
use super::machines::MachineHealth;
use super::summary::{NodeList, NodeTotals, list_nodes};
use crate::api::tke::NodeCounts;
use crate::engine::{FlavourRegistry, MemberId, now};
use crate::options::TkeOptions;
use crate::paging::{Abort, MemberReader};

/// A whole list.
const LIMIT: Duration = Duration::from_secs(30);

/// Lists Nodes.
pub(crate) struct NodeLists {
    pub(crate) prober: Arc<probe::Prober>,
    pub(crate) details: Arc<DetailStore>,
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
        cluster: &MemberId,
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
        if self.details.still(cluster, &target, |_| ()).is_none() {
            return Err(Abort::Failed("the cluster is gone".into()));
        }
        let totals = self.learn(cluster, listed)?;
        *latest = Some((begun, Arc::clone(&totals)));
        Ok(totals)
    }

    async fn list(&self, cluster: &MemberId, client: &Arc<Client>) -> Result<NodeList, Abort> {
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
        cluster: &MemberId,
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

    fn count(&self, cluster: &MemberId, counts: NodeCounts) {
        let ratio = self.options.nodes_ready_min_ratio;
        let turned = self.details.known(cluster, |entry| {
            let before = entry.facts.enough_nodes.unwrap_or(true);
            entry.facts.counted(counts, ratio, wall_now());
            entry.facts.enough_nodes != Some(before)
        });
        self.registry.facts_changed(cluster);
        if turned == Some(true) && self.options.ready_requires_nodes {
            self.registry.trigger(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::engine::tests::scene::{Answer, Scene, cluster};
    use crate::tke::machines::NextList;
    use crate::tke::machines::tests::{Machines, UNHEALTHY};
    use crate::tke::summary::list_of;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// A list with so many ready Nodes.
    fn list(total: usize, ready: usize) -> NodeList {
        let node = |number| {
            let status = if number < ready { "True" } else { "False" };
            let conditions = serde_json::json!([{"type": "Ready", "status": status}]);
            serde_json::json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}})
        };
        list_of((0..total).map(node).collect())
    }

    /// rule:machines-of-an-unhealthy-cluster-are-unknown, rule:one-prober-per-uid
    #[tokio::test(start_paused = true)]
    async fn a_list_judges_the_machines_of_its_own_cluster_and_only_while_that_is_ready() {
        let machines = Machines::with(Scene::new(0), &[]);
        let (lists, health) = (machines.lists(), Arc::clone(&machines.health));
        let (own, namesake) = (cluster("cls-1", 1), cluster("cls-1", 2));
        let failed = || Err(Abort::Failed("no answer".into()));
        machines.show("mc-1", |_| {});
        lists.learn(&own, Ok(list(0, 0))).unwrap();
        assert_eq!(
            health.next_list("cls-1"),
            Some(NextList::Immediate),
            "nothing is published yet"
        );
        machines.engine.add("cls-1", 1);
        sleep(S(15)).await;
        lists.learn(&namesake, Ok(list(0, 0))).unwrap();
        lists.learn(&namesake, failed()).unwrap_err();
        assert_eq!(health.next_list("cls-1"), Some(NextList::Immediate), "that was of another one");
        lists.learn(&own, Ok(list(0, 0))).unwrap();
        assert_eq!(
            health.next_list("cls-1"),
            Some(NextList::Confirmation),
            "the machine has no Node"
        );

        machines.engine.members.set("cls-1", Answer::Failing);
        sleep(S(60)).await;

        health.unknown("cls-1", UNHEALTHY, S(300), now());
        lists.learn(&own, Ok(list(0, 0))).unwrap();
        lists.learn(&own, failed()).unwrap_err();
        assert_eq!(health.next_list("cls-1"), Some(NextList::Immediate), "the state is unknown");
    }

    #[tokio::test(start_paused = true)]
    async fn required_nodes_that_go_or_come_bring_a_probe_within_a_second() {
        for (required, expected) in [("true", 2), ("false", 0)] {
            let machines = Machines::with(Scene::new(0), &[("ready-requires-nodes", required)]);
            let (lists, own, engine) = (machines.lists(), cluster("cls-1", 1), &machines.engine);
            machines.details.with(&own, |_| {});
            engine.add("cls-1", 1);
            sleep(S(15)).await;
            let probes = || engine.members.probes("cls-1");
            // The next one is due in nine seconds at least.
            let begun = probes();
            while probes() == begun {
                sleep(Duration::from_millis(10)).await;
            }
            let begun = probes();
            for ready in [1, 1, 0, 0, 1, 1] {
                lists.learn(&own, Ok(list(1, ready))).unwrap();
                sleep(S(1)).await;
            }
            assert_eq!(probes() - begun, expected, "{required}");
        }
    }
}
