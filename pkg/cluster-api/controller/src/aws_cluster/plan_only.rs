//! What would be done for an AWSCluster, published instead of done
//! (`rule:plan-only-sends-nothing`).

use std::sync::Arc;

use aws_network::{Forecast, Goal, Identity, Problem, Rest, forecast, listed};
use objects::Object;
use workqueue::{Next, Retry};

use super::admission::Access;
use super::aws_clusters::AwsClusters;
use super::leg::Look;
use super::passes::{Pause, Turn};
use super::report::{PLAN_ONLY, Report};
use super::stored_memory;
use crate::api::aws_cluster::{AwsCluster, PlanStatus};

/// So many writes, and so many problems, are listed; as many as the CRD allows.
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
        let stored = || stored_memory::read(&object.status);
        let pass = match self.passes.turn(key, uid, &goal, false, stored) {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Tell(pass, _) | Turn::Go(pass) => *pass,
        };
        let Look { looked, denied, now } = self.look(object, identity, &pass, access).await;
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

/// A status does not become larger than a server takes.
fn tell(report: &mut Report, said: &Forecast) {
    let number = said.writes.len();
    let message = format!("writes that are planned: {number}; --plan-only sends none");
    report.conditions.state(PLAN_ONLY, true, "Planned", message);
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
        let told = |number: usize| {
            let said = Forecast { writes: (0..number).map(write).collect(), ..Forecast::default() };
            let mut report = Report::default();
            tell(&mut report, &said);
            report.plan.unwrap()
        };
        let plan = told(LISTED + 2);
        assert_eq!((plan.writes.len(), plan.omitted), (LISTED, Some(2)));
        assert_eq!(plan.writes[1], "DeleteSubnet of subnet-1");
        assert_eq!(told(LISTED).omitted, None);
    }
}
