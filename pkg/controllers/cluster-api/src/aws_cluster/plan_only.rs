//! What would be done for an AWSCluster, published instead of done
//! (`rule:plan-only-sends-nothing`).

use std::sync::Arc;

use aws_network::{Forecast, Goal, Identity, Problem, Rest, forecast, listed};
use objects::Object;
use workqueue::{Next, Retry};

use super::aws_clusters::AwsClusters;
use super::leg::Look;
use super::passes::{Pause, Turn};
use super::report::{PLAN_ONLY, Report};
use super::stored_memory;
use crate::api::aws_cluster::{AwsCluster, PlanStatus};

impl AwsClusters {
    /// Looks at AWS, and publishes what would be written to reach the goal.
    pub(super) async fn only_plan(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        goal: Goal,
    ) -> Result<Next, Retry> {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        let stored = || stored_memory::read(&object.status);
        let pass = match self.passes.turn(key, uid, &goal, false, stored) {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Tell(pass, _) | Turn::Go(pass) => *pass,
        };
        let Look { looked, denied, now } = self.look(object, identity, &pass).await;
        if self.stop.is_cancelled() {
            return Ok(Next::Done);
        }
        let mut report = Report::of_a_leg(denied.as_ref());
        let pass = match looked {
            Ok(looked) => {
                tell(&mut report, &forecast(&looked, now));
                looked
            }
            Err(failures) => {
                let message = listed(&messages(&failures));
                report.conditions.state(PLAN_ONLY, false, "CannotPlan", message);
                pass
            }
        };
        let length = self.length(Rest::Reached);
        let next = self.passes.keep(key, uid, goal, pass, Pause { length, tell: None });
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::After(next))
    }
}

fn tell(report: &mut Report, said: &Forecast) {
    let number = said.writes.len();
    let message = format!("{number} writes are planned, and --plan-only sends none");
    report.conditions.state(PLAN_ONLY, true, "Planned", message);
    report.plan = Some(PlanStatus {
        writes: said.writes.iter().map(|planned| planned.action.to_string()).collect(),
        problems: messages(&said.problems).into_iter().map(str::to_owned).collect(),
    });
}

fn messages(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| &*problem.message).collect()
}
