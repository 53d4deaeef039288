//! One pass of a reconciliation over an AWSCluster: its writes are sent, or with `--plan-only`
//! published in the status and not sent (`rule:plan-only-sends-nothing`).

use std::sync::Arc;
use std::time::Duration;

use aws::{AwsError, Judged, PassHooks, judge, look, run_pass};
use aws_network::{
    Forecast, Goal, Identity, Memory, Outcome, Planned, Problem, Reconciliation, Rest, forecast,
    listed,
};
use futures::TryFutureExt as _;
use objects::Object;
use parking_lot::Mutex;
use workqueue::{Next, Retry};

use super::admission::Access;
use super::aws_clusters::AwsClusters;
use super::reconciliations::{Pause, Turn, place};
use super::report::{Denial, PLAN_ONLY, Report, denial};
use super::{stored_memory, write_events};
use crate::api::aws_cluster::{AwsCluster, PlanStatus};
use crate::api::cluster::is_paused;
use crate::api::{GROUP, PAUSED_ANNOTATION};

/// A pass that has ended.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) reconciliation: Reconciliation,
    pub(super) rest: Rest,
    pub(super) before: Vec<Problem>,
    /// Why nothing could be read with the credentials that there are, or could not.
    pub(super) denied: Option<Denial>,
    /// Interrupted by a stop of the process or a change of the object: its result is ignored.
    pub(super) is_broken_off: bool,
    /// Requests that read.
    pub(super) reads: u32,
    /// Age of what it saw of the network on AWS; `None` without a look.
    pub(super) age: Option<Duration>,
}

impl Pass {
    /// A pass that did nothing, because the reconciliation waits.
    pub(super) fn at_rest(reconciliation: Reconciliation, left: Duration) -> Self {
        let (rest, before) = (Rest::For(left.as_secs().max(1)), reconciliation.problems());
        Self {
            reconciliation,
            rest,
            before,
            denied: None,
            is_broken_off: false,
            reads: 0,
            age: None,
        }
    }
}

struct Here<'a> {
    clusters: &'a AwsClusters,
    object: &'a Arc<Object<AwsCluster>>,
    identity: &'a Identity,
    denied: Mutex<Option<Denial>>,
}

impl AwsClusters {
    /// Leads a reconciliation until it rests.
    pub(super) async fn lead(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        mut reconciliation: Reconciliation,
        access: &Access,
    ) -> Pass {
        let here = Here { clusters: self, object, identity, denied: Mutex::default() };
        let executor = access.executor(identity);
        let before = reconciliation.problems();
        let rest = Box::pin(run_pass(&mut reconciliation, &executor, &here)).await;
        let is_broken_off = here.is_over();
        let denied = here.denied.into_inner().or_else(|| access.doubt.clone());
        let reads = executor.reads();
        let age = (reads > 0 && denied.is_none()).then_some(Duration::ZERO);
        Pass { reconciliation, rest, before, denied, is_broken_off, reads, age }
    }

    /// A pass of a cluster at rest. A sweep judges it where that serves other clusters, too, and what
    /// differs is led with reads of its own. The reconciliation and its reads, where the sweep
    /// has failed.
    pub(super) async fn lead_at_rest(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        reconciliation: Reconciliation,
        access: &Access,
    ) -> Result<Pass, (Reconciliation, u32)> {
        let executor = access.executor(identity);
        if access.doubt.is_some() || !executor.shares_sweeps() {
            return Ok(self.lead(object, identity, reconciliation, access).await);
        }
        let here = Here { clusters: self, object, identity, denied: Mutex::default() };
        let judged = Box::pin(judge(&reconciliation, &executor, &here)).await;
        let (reads, is_broken_off) = (executor.reads(), here.is_over());
        match judged {
            Judged::AtRest(judged, began) => Ok(Pass {
                before: reconciliation.problems(),
                reconciliation: *judged,
                rest: Rest::Reached,
                denied: None,
                is_broken_off,
                reads,
                age: Some(Duration::from_secs(began.age(here.now()))),
            }),
            Judged::Differs => {
                let pass = self.lead(object, identity, reconciliation, access).await;
                Ok(Pass { reads: pass.reads + reads, ..pass })
            }
            Judged::Unread => Err((reconciliation, reads)),
        }
    }

    /// Whether the object was paused or deleted, or may no longer use its identities, since the pass
    /// began, which may take ten minutes.
    fn has_turned(&self, begun: &Object<AwsCluster>, identity: &Identity) -> bool {
        let Some(now) = self.cache.get(&begun.metadata.key) else { return false };
        let namespace = now.metadata.namespace().unwrap_or_default();
        let clusters = self.clusters.get(GROUP, "Cluster").objects;
        let cluster = clusters.get(&format!("{namespace}/{}", identity.cluster));
        !self.identities.permit(&now)
            || now.body.spec.identity_ref != begun.body.spec.identity_ref
            || now.metadata.annotations.contains_key(PAUSED_ANNOTATION)
            || now.metadata.deleting() != begun.metadata.deleting()
            || cluster.is_some_and(|cluster| is_paused(&cluster))
    }
}

impl PassHooks for Here<'_> {
    async fn store(&self, memory: &Memory) -> bool {
        let (client, object) = (&self.clusters.client, self.object);
        let noted = client.change(object, |_, draft| {
            let owner_id = &self.identity.owner_id;
            stored_memory::annotate(memory, owner_id, &mut draft.metadata.annotations);
        });
        let stored = client.change_status(object, |_, status| stored_memory::write(memory, status));
        match noted.and_then(|_| stored).await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "Cannot write the AWSCluster status; nothing is created on AWS until it can be written");
                false
            }
        }
    }

    fn is_over(&self) -> bool {
        self.clusters.stop.is_cancelled() || self.clusters.has_turned(self.object, self.identity)
    }

    fn unread(&self, error: &AwsError) {
        if let Some(denial) = denial(error) {
            *self.denied.lock() = Some(denial);
        }
    }

    fn wrote(&self, planned: &Planned, outcome: &Outcome) {
        let is_repair = write_events::is_repaired(self.object);
        if is_repair {
            self.clusters.metrics.repaired(&planned.action, outcome);
        }
        let text = write_events::event_text(&planned.action, outcome, is_repair);
        if let Some((severity, reason, message)) = text {
            self.clusters.event(self.object, severity, reason, &message);
        }
    }
}

/// Maximum of listed writes, and of listed problems; the CRD allows no more.
const LISTED: usize = 500;

impl AwsClusters {
    /// Looks at AWS, and publishes what would be written to reach the goal.
    pub(super) async fn only_plan(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        goal: Goal,
        access: &Access,
    ) -> Result<Next, Retry> {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        let stored = || stored_memory::read(object);
        let place = place(object);
        let turn = self.reconciliations.turn(key, uid, &goal, &place, false, stored);
        let reconciliation = match turn {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Publish(reconciliation, _)
            | Turn::Go(reconciliation)
            | Turn::Judge(reconciliation) => *reconciliation,
        };
        let here = Here { clusters: self, object, identity, denied: Mutex::default() };
        let executor = access.executor(identity);
        let looked = Box::pin(look(&reconciliation, &executor, &here)).await;
        let (now, denied) = (here.now(), here.denied.into_inner());
        if self.stop.is_cancelled() {
            return Ok(Next::Done);
        }
        let mut report = Report::of_a_pass(denied.as_ref());
        let looked_at_all = looked.is_ok();
        let reconciliation = match looked {
            Ok(looked) => {
                add_plan(&mut report, &forecast(&looked, now));
                looked
            }
            Err(failures) => {
                let message = listed(&messages(&failures));
                report.conditions.mark_false(PLAN_ONLY, "CannotPlan", message);
                reconciliation
            }
        };
        let pause = Pause {
            is_idle: matches!(goal, Goal::Present(_)) && looked_at_all,
            reads: executor.reads(),
            ..Pause::of(self.length(Rest::Reached))
        };
        let next = self.reconciliations.keep(key, uid, goal, reconciliation, pause);
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::After(next))
    }
}

/// A status does not become larger than a server takes.
fn add_plan(report: &mut Report, said: &Forecast) {
    let number = said.writes.len();
    let message = format!("planned writes: {number}; --plan-only sends none");
    report.conditions.mark_true(PLAN_ONLY, "Planned", message);
    report.plan = Some(PlanStatus {
        writes: said.writes.iter().take(LISTED).map(|planned| planned.action.in_full()).collect(),
        omitted: number.checked_sub(LISTED).filter(|omitted| *omitted > 0),
        problems: messages(&said.problems).into_iter().take(LISTED).map(str::to_owned).collect(),
    });
}

fn messages(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| &*problem.message).collect()
}

#[cfg(test)]
mod tests {
    use aws_network::{Action, Part, Planned};

    use super::*;

    #[test]
    fn a_plan_in_a_status_is_bounded_and_says_how_much_more_there_is() {
        let write = |number: usize| Planned {
            part: Part::Subnets,
            action: Action::DeleteSubnet { subnet: format!("subnet-{number}") },
        };
        let text = |number: usize| {
            let said = Forecast { writes: (0..number).map(write).collect(), ..Forecast::default() };
            let mut report = Report::default();
            add_plan(&mut report, &said);
            report.plan.unwrap()
        };
        let plan = text(LISTED + 2);
        assert_eq!((plan.writes.len(), plan.omitted), (LISTED, Some(2)));
        assert_eq!(plan.writes[1], "DeleteSubnet of subnet-1");
        assert_eq!(text(LISTED).omitted, None);
    }
}
