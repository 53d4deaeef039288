//! The network of a cluster on AWS: wanted state, observed state, and the actions between them.
//! Pure: no AWS SDK, no Kubernetes, no I/O, no clock of its own. The rules stand in `RULES.md`.
//!
//! [`Desired::from_spec`] reads a spec. A [`Reconciliation`] is one cluster's way to its [`Goal`]:
//! the reconciler asks it for the next [`Step`], an executor carries that out, and both report back
//! until it rests. Inside, `planner` and `deletion` compare the goal with what was [`Observed`] and
//! answer with writes that are due, reads that are needed, waits, and problems.
//!
//! An executor owes a reconciliation:
//! - A [`Query`] is answered as a whole, all pages of it. What does not exist is missing from the
//!   [`Reply`], not an error.
//! - An [`Action`] is one call. The SDK repeats it after a lost answer or a failure of AWS only if
//!   [`Action::is_repeatable`]; the client token is [`Action::token`].
//! - [`Outcome::Refused`] has AWS's code, through all wrapping; [`Outcome::Unknown`] is everything
//!   that may have been carried out; [`Outcome::NotSent`] is what the fence held back, or a create
//!   that rests on an intent and would have left more than [`SEND_WITHIN`] seconds after its intent.
//! - The [`Answer`] of a classic load balancer has its name as id, one of the second generation its
//!   ARN; an allocated address comes with its [`Answer::address`].
//! - [`Step::Persist`] is durable before the next step, or is reported as failed.
//!
//! | file | holds |
//! |---|---|
//! | `spec.rs`, `from_spec.rs`, `default_subnets.rs`, `desired.rs` | a spec in texts, how it is read, and what it means |
//! | `identity.rs`, `tags.rs` | who owns a resource, and the names and tags that say so |
//! | `resources.rs`, `load_balancers.rs`, `rule.rs` | resources as AWS describes them |
//! | `query.rs`, `observed.rs`, `fold.rs` | one read, everything that was read, and how writes change it |
//! | `action.rs`, `action_text.rs`, `outcome.rs` | one write, its text, its result and the error codes |
//! | `memory.rs` | what makes a create happen once |
//! | `planner.rs` | the plan of a cluster that shall exist: calls its parts in order |
//! | `plan.rs` | what a plan consists of: writes, reads, waits, problems |
//! | `vpc.rs`, `gateways.rs`, `subnets.rs`, `nat_gateways.rs`, `addresses.rs`, `route_tables.rs`, `security_groups.rs`, `bastion.rs`, `load_balancer.rs` | the plan of each part |
//! | `deletion.rs` | the plan of a deletion |
//! | `guard.rs` | no write names a resource of somebody else |
//! | `reconciliation.rs`, `forecast.rs` | [`Reconciliation`], and its writes found out without sending them |
//! | `report.rs` | conditions and other fields of the status |

mod action;
mod action_text;
mod addresses;
mod bastion;
mod default_subnets;
mod deletion;
mod desired;
mod fold;
mod forecast;
mod from_spec;
mod gateways;
mod guard;
mod identity;
mod load_balancer;
mod load_balancers;
mod memory;
mod nat_gateways;
mod observed;
mod outcome;
mod plan;
mod planner;
mod query;
mod reconciliation;
mod report;
mod resources;
mod route_tables;
mod rule;
mod security_groups;
mod spec;
mod subnets;
mod tags;
mod vpc;

pub use action::{Action, BastionLaunch, ElbAction, ElbV2Action};
pub use deletion::{Removal, ServiceResources};
pub use desired::{
    Desired, DesiredBastion, DesiredGroups, DesiredListener, DesiredLoadBalancer, DesiredSubnet,
    INSTANCE_PORT, Ipv6Block, NatPolicy, Rank, RuleSource, RuleTemplate,
};
pub use forecast::{Forecast, forecast};
pub use identity::{ANY_CLUSTER_TAG, DEFAULT_OWNER_TAG, Identity, Ownership, ROLE_TAG, Tags};
pub use load_balancers::{
    BalancerState, ClassicAttributes, ClassicListener, ClassicLoadBalancer, HealthCheck,
    NetworkListener, NetworkLoadBalancer, Scheme, TargetAttributes, TargetGroup,
};
pub use memory::{LogicalId, LogicalIdError, Memory, Record, SEND_WITHIN, Timestamp};
pub use observed::{Observed, Seen};
pub use outcome::{Answer, Outcome, Refusal, Refused, classify_read, is_unexpected};
pub use plan::{Other, Part, Plan, Planned, Problem, Reason, Wait};
pub use query::{Lookup, Query, Reply, Scope};
pub use reconciliation::{DEEP_CHECK_PERIOD, Goal, Reconciliation, Rest, Step};
pub use report::{
    Condition, NetworkIds, Outputs, SubnetIds, conditions, is_ready, listed, network_ids, outputs,
};
pub use resources::{
    Address, Association, AwsResource, DEFAULT_ROUTE, IPV6_ROUTE, Instance, InstanceState,
    InternetGateway, Ipv6Range, NatGateway, NatState, NetworkInterface, Route, RouteTable,
    SecondaryCidr, SecurityGroup, Subnet, Target, Vpc,
};
pub use rule::{Role, Rule, RuleKey, Source};
pub use spec::{
    BastionSpec, CniSpec, Dialect, EdgeZones, FoundZone, HealthCheckSpec, IngressRuleSpec,
    ListenerSpec, LoadBalancerKind, LoadBalancerSpec, NatMode, Spec, SpecError, SubnetSpec, Zone,
    ZoneType,
};
pub use tags::{ATTEMPT_TAG, NAT_ZONE_TAG, ROUTE_TABLE_TAG, default_load_balancer_name};
