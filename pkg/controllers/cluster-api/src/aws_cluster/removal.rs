//! The end of an AWSCluster: it goes when nothing of it is left on AWS.

use std::sync::Arc;
use std::time::Duration;

use aws_network::{Goal, Pass, Problem, Rest, listed};
use events::EventType;
use objects::Object;
use workqueue::{Next, Retry};

use super::aws_clusters::AwsClusters;
use super::goal;
use super::owner::Owner;
use super::passes::{Pause, Turn};
use super::report::{READY, Report};
use super::stored_memory;
use crate::api::aws_cluster::AwsCluster;
use crate::api::{AWS_CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, GROUP, INFRASTRUCTURE_GROUP};
use crate::kind_caches::Known;

const DELETING: &str = "Deleting";
/// What runs in the network.
const DEPENDENTS: [(&str, &str); 2] = [(GROUP, "Machine"), (INFRASTRUCTURE_GROUP, "AWSMachine")];
const DEPENDENTS_AGAIN: Duration = Duration::from_secs(20);

impl AwsClusters {
    pub(super) async fn end(
        &self,
        object: &Arc<Object<AwsCluster>>,
        owner: &Owner,
    ) -> Result<Next, Retry> {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        if !object.metadata.has_finalizer(AWS_CLUSTER_FINALIZER) {
            self.passes.forget(key);
            return Ok(Next::Done);
        }
        if let Some(message) = self.dependents(object, &owner.name).await {
            let mut report = Report::default();
            report.conditions.state("Paused", false, "NotPaused", "");
            report.conditions.state(DELETING, true, "WaitingForMachines", message);
            self.publish(object, &report, None).await.map_err(manager::retry)?;
            return Ok(Next::After(DEPENDENTS_AGAIN));
        }
        let removal = goal::absent(object, &owner.name, &self.options);
        let (identity, goal) = (removal.identity.clone(), Goal::Absent(removal));
        if self.options.plan_only {
            return self.only_plan(object, &identity, goal).await;
        }
        let stored = || stored_memory::read(&object.status);
        let pass = match self.passes.turn(key, uid, &goal, false, stored) {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Tell(pass, _) | Turn::Go(pass) => *pass,
        };
        let leg = self.lead(object, &identity, pass).await;
        if leg.is_broken_off {
            return Ok(Next::Done);
        }
        if leg.rest == Rest::Reached {
            return self.let_go(object).await;
        }
        let problems = leg.pass.problems();
        let mut report = Report::of_a_leg(leg.denied.as_ref());
        let reason = if problems.is_empty() { "Deleting" } else { "DeletingFailed" };
        report.conditions.state(DELETING, true, reason, left_over(&leg.pass, &problems));
        report.conditions.state(READY, false, DELETING, "it is being deleted");
        let told = self.publish(object, &report, Some(leg.pass.memory())).await;
        // What could not be told is told by the next leg, at once.
        let length = if told.is_err() { Duration::ZERO } else { self.length(leg.rest) };
        let next = self.passes.keep(key, uid, goal, leg.pass, Pause { length, tell: None });
        told.map_err(manager::retry)?;
        self.tell_problems(object, &problems);
        Ok(Next::After(next))
    }

    async fn let_go(&self, object: &Arc<Object<AwsCluster>>) -> Result<Next, Retry> {
        self.passes.forget(&object.metadata.key);
        self.tell(object, EventType::Normal, "Deleted", "nothing of it is left on AWS");
        let removed = self.client.remove_finalizer(object, AWS_CLUSTER_FINALIZER).await;
        removed.map(|_| Next::Done).map_err(manager::retry)
    }

    /// What still runs in the network of the cluster, or is not known to run there.
    async fn dependents(&self, object: &Object<AwsCluster>, cluster: &str) -> Option<String> {
        let namespace = object.metadata.namespace().unwrap_or_default();
        let mut left = Vec::new();
        for (group, kind) in DEPENDENTS {
            let (kind_cache, known) = self.machines.known(group, kind).await;
            if let Known::Nothing(why) = known {
                return Some(format!("{kind}s: {why}"));
            }
            kind_cache.objects.frozen(|all| {
                let of_it = all.values().filter(|it| {
                    it.metadata.namespace() == Some(namespace)
                        && it
                            .metadata
                            .labels
                            .get(CLUSTER_NAME_LABEL)
                            .is_some_and(|it| it == cluster)
                });
                left.extend(of_it.map(|it| format!("{kind} {}", it.metadata.name())));
            });
        }
        left.sort();
        let left: Vec<_> = left.iter().map(String::as_str).collect();
        (!left.is_empty()).then(|| format!("not gone yet: {}", listed(&left)))
    }
}

/// What is awaited and what stands in the way.
fn left_over(pass: &Pass, problems: &[Problem]) -> String {
    let problems = problems.iter().map(|problem| problem.message.as_str());
    let waits = pass.plan().waits.iter().map(|wait| wait.what.as_str());
    let all: Vec<_> = problems.chain(waits).collect();
    if all.is_empty() { "AWS may not show everything yet".to_owned() } else { listed(&all) }
}
