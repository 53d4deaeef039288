//! [`forecast`]: what a pass would write from where it is to its goal, if AWS did all of it at once.
//! Nothing is sent; what only AWS can tell, such as ids, is named by its place
//! (`rule:a-forecast-comes-true`).

use std::net::Ipv4Addr;

use crate::action::Action;
use crate::elb_action::ElbAction;
use crate::outcome::{Answer, Outcome};
use crate::pass::{Goal, Pass, Rest, Step};
use crate::plan::{Planned, Problem};
use crate::timestamp::Timestamp;

mod imagined;

/// Steps after which a way without an end is given up; the longest that there is has forty.
const STEPS: usize = 500;

/// What a pass would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Writes, in an order in which they can be sent.
    pub writes: Vec<Planned>,
    /// What stands in the way at the end.
    pub problems: Vec<Problem>,
    /// The goal is reached with that.
    pub is_reached: bool,
}

/// What a pass would write from here to its goal. What it has not read does not exist, except for the
/// VPC and the subnets that a spec names by their ids.
pub fn forecast(pass: &Pass, now: Timestamp) -> Forecast {
    let (mut pass, mut now) = (pass.clone(), now);
    let mut world = pass.observed().clone();
    if let (Goal::Present(desired), None) = (pass.goal(), world.vpcs.get()) {
        imagined::add_named(&mut world, desired, now);
    }
    let mut writes = Vec::new();
    for _ in 0..STEPS {
        match pass.next(now) {
            Step::Read(queries) | Step::Poll(queries) => {
                imagined::settle(&mut world);
                for query in queries {
                    let reply = imagined::reply(&world, &query);
                    world.take_in(&query, reply.clone(), now);
                    pass.answer(query, reply, now);
                }
            }
            Step::Persist(_) => pass.persisted(true),
            Step::Write(planned) => {
                for planned in planned {
                    let answer = answer(&planned.action, writes.len());
                    world.fold(&planned.action, &answer, now);
                    pass.written(&planned, Outcome::Done(answer), now);
                    writes.push(planned);
                }
            }
            Step::Rest(Rest::For(seconds)) => {
                now = now.plus(seconds);
                pass.resume();
            }
            Step::Rest(rest) => {
                let is_reached = rest == Rest::Reached;
                return Forecast { writes, problems: pass.problems(), is_reached };
            }
        }
    }
    Forecast { writes, problems: pass.problems(), is_reached: false }
}

/// What AWS might answer: the place of what was made stands for its id.
fn answer(action: &Action, number: usize) -> Answer {
    let place = action.creates().map(|(logical, _)| logical.to_string());
    let id = match action {
        Action::Elb(ElbAction::Create { name, .. }) => name.clone(),
        _ => place.unwrap_or_else(|| format!("association/{number}")),
    };
    // Of the block that is kept for documentation.
    let last = u8::try_from(number % 254).unwrap_or_default() + 1;
    let dns_name = Some("the load balancer".to_owned());
    Answer { id, address: Some(Ipv4Addr::new(192, 0, 2, last)), dns_name }
}
