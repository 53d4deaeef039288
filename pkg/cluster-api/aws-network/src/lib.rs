//! A cluster's network on AWS, decided: what there shall be, what there is, and what to do next.
//! Pure: no AWS SDK, no Kubernetes, no I/O, no clock of its own. The rules stand in `RULES.md`.
//!
//! [`Desired::from_spec`] reads a spec. A [`Pass`] is one cluster's way to its [`Goal`]: the
//! reconciler asks it for the next [`Step`], an executor carries that out, and both report back
//! until it rests. Inside, [`plan`] and [`plan_removal`] compare what is wanted with what was
//! [`Observed`] and answer with writes that are due, reads that are needed, waits, and problems.
//!
//! An executor owes a pass:
//! - A [`Query`] is answered as a whole, all pages of it. What does not exist is missing from the
//!   [`Reply`], not an error.
//! - An [`Action`] is one call. The SDK repeats it after a lost answer or a failure of AWS only if
//!   [`Action::is_repeatable`]; the client token is [`Action::token`].
//! - [`Outcome::Refused`] has AWS's code, through all wrapping; [`Outcome::Unknown`] is everything
//!   that may have been carried out; [`Outcome::NotSent`] is what the fence held back, or a create
//!   that rests on an intent and would have left more than [`SEND_WITHIN`] seconds after its step.
//! - The [`Answer`] of a classic load balancer has its name as id, one of the second generation its
//!   ARN; an allocated address comes with its [`Answer::address`].
//! - [`Step::Persist`] is durable before the next step, or is reported as failed.
//!
//! | file | holds |
//! |---|---|
//! | `spec.rs`, `from_spec.rs`, `desired.rs` | a spec in texts, how it is read, and what it means |
//! | `default_subnets.rs` | the subnets of a spec that names none |
//! | `identity.rs`, `tags.rs`, `names.rs` | whose a resource is, and the tags and names that say so |
//! | `resources.rs`, `load_balancers.rs`, `rule.rs` | what AWS describes |
//! | `query.rs`, `observed.rs` | one thing to read, and all that is known |
//! | `action.rs`, `elb_action.rs`, `elbv2_action.rs`, `action_words.rs` | one write, and the words for it |
//! | `outcome.rs`, `refusal.rs`, `fold.rs` | what became of it, what an error code means, what is known after it |
//! | `logical_id.rs`, `memory.rs`, `token.rs` | what makes a create happen once |
//! | `plan.rs`, `part.rs`, `planner.rs` | what to do next, and in which words it is told |
//! | `vpc.rs`, `subnets.rs`, `internet_gateway.rs`, `nat_gateways.rs`, `addresses.rs`, `route_tables.rs` | the parts of the network |
//! | `security_groups.rs`, `bastion.rs`, `load_balancer.rs` | what lies in it |
//! | `tag_drift.rs` | tags of everything, corrected in few calls |
//! | `deletion.rs` | the end of all of it |
//! | `guard.rs` | no write names what is not ours |
//! | `pass.rs` | [`Pass`] |
//! | `conditions.rs` | a plan told to people |
//! | `forecast.rs` | what a pass would do, without doing it |
//! | `places.rs` | where subnets have come to lie, for those who read it in the spec |
//! | `drift_words.rs` | what a repair has changed |

mod action;
mod action_words;
mod addresses;
mod bastion;
mod conditions;
mod default_subnets;
mod deletion;
mod desired;
mod drift_words;
mod elb_action;
mod elbv2_action;
mod fold;
mod forecast;
mod from_spec;
mod guard;
mod identity;
mod internet_gateway;
mod load_balancer;
mod load_balancers;
mod logical_id;
mod memory;
mod names;
mod nat_gateways;
mod observed;
mod outcome;
mod part;
mod pass;
mod places;
mod plan;
mod planner;
mod query;
mod refusal;
mod resources;
mod role;
mod route_tables;
mod rule;
mod security_groups;
mod spec;
mod spec_error;
mod subnets;
mod tag_drift;
mod tags;
mod timestamp;
mod token;
mod vpc;

pub use action::{Action, BastionLaunch};
pub use conditions::{Condition, Outputs, conditions, is_ready, listed, outputs};
pub use default_subnets::default_subnets;
pub use deletion::{Ending, Removal, ServiceResources, plan_removal};
pub use desired::{
    Desired, DesiredBastion, DesiredGroups, DesiredLoadBalancer, DesiredSubnet, INSTANCE_PORT,
    NatPolicy, RuleSource, RuleTemplate,
};
pub use elb_action::ElbAction;
pub use elbv2_action::ElbV2Action;
pub use forecast::{Forecast, forecast};
pub use identity::{DEFAULT_OWNER_TAG, Identity, Ownership, ROLE_TAG, Tags};
pub use load_balancers::{
    BalancerState, ClassicAttributes, ClassicListener, ClassicLoadBalancer, HealthCheck,
    NetworkListener, NetworkLoadBalancer, Scheme, TargetGroup,
};
pub use logical_id::{LogicalId, LogicalIdError};
pub use memory::{Absence, LATE, Memory, READS_CATCH_UP, Record, SEND_WITHIN};
pub use names::load_balancer_name;
pub use observed::{Observed, Seen};
pub use outcome::{Answer, Outcome, Refused};
pub use part::{Part, Reason};
pub use pass::{DEEP_CHECK_PERIOD, Goal, Pass, Rest, Step};
pub use places::{Places, SubnetPlace, places};
pub use plan::{Other, Plan, Planned, Problem, Situation, Wait};
pub use planner::plan;
pub use query::{Lookup, Query, Reply, Scope};
pub use refusal::{Refusal, classify, classify_read, is_unexpected};
pub use resources::{
    Address, Association, DEFAULT_ROUTE, Instance, InstanceState, InternetGateway, NatGateway,
    NatState, NetworkInterface, Route, RouteTable, SecurityGroup, Subnet, Target, Vpc,
};
pub use role::Role;
pub use rule::{Rule, RuleKey, Source};
pub use spec::{
    BastionSpec, CniSpec, Dialect, HealthCheckSpec, IngressRuleSpec, LoadBalancerKind,
    LoadBalancerSpec, NatMode, Spec, SubnetSpec,
};
pub use spec_error::SpecError;
pub use tags::{ATTEMPT_TAG, NAT_ZONE_TAG, ROUTE_TABLE_TAG};
pub use timestamp::Timestamp;
pub use token::client_token;
