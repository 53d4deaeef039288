//! [`forecast`]: what a reconciliation would write from where it is to its goal, if AWS did all of
//! it at once. Nothing is sent; what only AWS can tell, such as ids, is named by its logical id.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cidr::IpNet;

use crate::action::{Action, ElbAction};
use crate::desired::Desired;
use crate::identity::Tags;
use crate::load_balancers::BalancerState;
use crate::memory::Timestamp;
use crate::observed::Observed;
use crate::outcome::{Answer, Outcome};
use crate::plan::{Planned, Problem};
use crate::query::Query;
use crate::reconciliation::{Goal, Reconciliation, Rest, Step};
use crate::resources::{InstanceState, Ipv6Range, NatState, SecondaryCidr, Subnet, Vpc};

/// Steps after which a way without an end is given up; the longest that there is has forty.
const STEPS: usize = 500;

/// The result of a simulated reconciliation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Writes, in an order in which they can be sent.
    pub writes: Vec<Planned>,
    /// Problems that remain at the end.
    pub problems: Vec<Problem>,
    /// The goal is reached with that.
    pub is_reached: bool,
}

/// Simulates the writes of a reconciliation up to its goal. Resources that were not read do not
/// exist, except for the VPC and the subnets that a spec names by their ids.
pub fn forecast(reconciliation: &Reconciliation, now: Timestamp) -> Forecast {
    let (mut reconciliation, mut now) = (reconciliation.clone(), now);
    let mut world = reconciliation.observed().clone();
    if let (Goal::Present(desired), None) = (reconciliation.goal(), world.vpcs.get()) {
        add_named(&mut world, desired, now);
    }
    let mut writes = Vec::new();
    for _ in 0..STEPS {
        match reconciliation.next(now) {
            Step::Read(queries) | Step::Poll(queries) => {
                settle(&mut world);
                world.know_the_rest(IMAGE, now);
                let ids = queries.iter().filter_map(|query| match query {
                    Query::Vpc(id) => Some(id.clone()),
                    _ => None,
                });
                world.asked_vpcs.extend(ids);
                reconciliation.see(queries, &world);
            }
            Step::Persist(_) => reconciliation.persisted(true),
            Step::Write(planned) => {
                for planned in planned {
                    let answer = answer(&planned.action, writes.len());
                    world.fold(&planned.action, &answer, now);
                    reconciliation.written(&planned, Outcome::Done(answer), now);
                    writes.push(planned);
                }
            }
            Step::Rest(Rest::For(seconds)) => {
                now = now.plus(seconds);
                reconciliation.resume();
            }
            Step::Rest(rest) => {
                let is_reached = rest == Rest::Reached;
                return Forecast { writes, problems: reconciliation.problems(), is_reached };
            }
        }
    }
    Forecast { writes, problems: reconciliation.problems(), is_reached: false }
}

/// A simulated answer of AWS: the logical id stands for the id.
fn answer(action: &Action, number: usize) -> Answer {
    let logical = action.creates().map(|(logical, _)| logical.to_string());
    let id = match action {
        Action::Elb(ElbAction::Create { name, .. }) => name.clone(),
        _ => logical.unwrap_or_else(|| format!("association/{number}")),
    };
    // Of the block that is kept for documentation.
    let last = u8::try_from(number % 254).unwrap_or_default() + 1;
    let dns_name = Some("the load balancer".to_owned());
    Answer { id, address: Some(Ipv4Addr::new(192, 0, 2, last)), dns_name }
}

/// A CIDR that Amazon would choose, of the block that is kept for documentation.
const IPV6_RANGE: IpNet =
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0)), 56);

/// An image that would be looked up.
const IMAGE: &str = "the newest image";

/// Adds the VPC and the subnets that a spec names: of somebody else, as far as their ids tell.
fn add_named(world: &mut Observed, desired: &Desired, now: Timestamp) {
    let Some(id) = &desired.vpc_id else { return };
    let associated = |cidr: &IpNet| SecondaryCidr { cidr: *cidr, associated: true, failed: false };
    let vpc = Vpc {
        id: id.clone(),
        cidr: desired.vpc_cidr,
        ipv6: desired.ipv6.then_some(Ipv6Range::Associated(IPV6_RANGE)),
        more_ipv6: Vec::new(),
        secondary: desired.secondary_cidrs.iter().map(associated).collect(),
        dns_support: Some(true),
        dns_hostnames: Some(true),
        tags: Tags::new(),
    };
    world.vpcs.set(vec![vpc], now);
    let named = desired.subnets.iter().filter_map(|subnet| {
        let name = subnet.id.clone()?;
        Some(Subnet {
            vpc: id.clone(),
            cidr: subnet.cidr.unwrap_or(desired.vpc_cidr),
            ipv6: desired.ipv6.then_some(IPV6_RANGE),
            assigns_ipv6: desired.ipv6,
            zone: subnet.zone.clone().unwrap_or_else(|| format!("zone of {name}")),
            map_public_ip: subnet.public,
            available: true,
            tags: Tags::new(),
            id: name,
        })
    });
    world.subnets.set(named.collect(), now);
}

/// Brings to its end what takes its time.
fn settle(world: &mut Observed) {
    let nats = world.nat_gateways.all().iter();
    let ending = nats.filter(|nat| nat.state == NatState::Deleting);
    let freed: Vec<_> = ending.flat_map(|nat| nat.allocations.clone()).collect();
    world.addresses.edit_where(|it| freed.contains(&it.id), |it| it.association = None);
    world.nat_gateways.remove_where(|nat| nat.state == NatState::Deleting);
    world
        .nat_gateways
        .edit_where(|nat| nat.state == NatState::Pending, |nat| nat.state = NatState::Available);
    world.nat_gateways.edit_where(
        |nat| nat.is_regional && nat.public_ips.is_empty(),
        |nat| nat.public_ips.push(Ipv4Addr::new(192, 0, 2, 255)),
    );
    world.vpcs.edit_where(
        |vpc| vpc.ipv6 == Some(Ipv6Range::Associating),
        |vpc| vpc.ipv6 = Some(Ipv6Range::Associated(IPV6_RANGE)),
    );
    world.vpcs.edit_where(
        |vpc| vpc.secondary.iter().any(|it| !it.associated),
        |vpc| vpc.secondary.iter_mut().for_each(|it| it.associated = true),
    );
    world.bastions.edit_where(
        |it| it.state == InstanceState::Pending,
        |it| it.state = InstanceState::Running,
    );
    world.bastions.remove_where(|it| it.state == InstanceState::ShuttingDown);
    world.subnets.edit_where(|_| true, |subnet| subnet.available = true);
    world.carrier_gateways.edit_where(|_| true, |gateway| gateway.pending = false);
    world.network.edit_where(|_| true, |found| found.state = BalancerState::Active);
}
