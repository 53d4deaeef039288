//! [`forecast`]: what a reconciliation would write from where it is to its goal, if AWS did all of
//! it at once. Nothing is sent; what only AWS can tell, such as ids, is named by its place.

use std::net::Ipv4Addr;

use crate::action::{Action, ElbAction};
use crate::desired::Desired;
use crate::identity::Tags;
use crate::load_balancers::{BalancerState, ClassicLoadBalancer};
use crate::memory::Timestamp;
use crate::observed::Observed;
use crate::outcome::{Answer, Outcome};
use crate::plan::{Planned, Problem};
use crate::query::{Lookup, Query, Reply, Scope};
use crate::reconciliation::{Goal, Reconciliation, Rest, Step};
use crate::resources::{InstanceState, NatState, Subnet, Vpc};

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
                for query in queries {
                    let reply = reply(&world, &query);
                    world.take_in(&query, reply.clone(), now);
                    reconciliation.answer(query, reply, now);
                }
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

/// An image that would be looked up.
const IMAGE: &str = "the newest image";

/// Adds the VPC and the subnets that a spec names: of somebody else, as far as their ids tell.
fn add_named(world: &mut Observed, desired: &Desired, now: Timestamp) {
    let Some(id) = &desired.vpc_id else { return };
    let vpc = Vpc {
        id: id.clone(),
        cidr: desired.vpc_cidr,
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
    let gone: Vec<_> = world
        .nat_gateways
        .all()
        .iter()
        .filter(|nat| nat.state == NatState::Deleting)
        .flat_map(|nat| nat.allocations.clone())
        .collect();
    world.addresses.edit_where(|it| gone.contains(&it.id), |it| it.association = None);
    world.nat_gateways.remove_where(|nat| nat.state == NatState::Deleting);
    world
        .nat_gateways
        .edit_where(|nat| nat.state == NatState::Pending, |nat| nat.state = NatState::Available);
    world.bastions.edit_where(
        |it| it.state == InstanceState::Pending,
        |it| it.state = InstanceState::Running,
    );
    world.bastions.remove_where(|it| it.state == InstanceState::ShuttingDown);
    world.subnets.edit_where(|_| true, |subnet| subnet.available = true);
    world.network.edit_where(|_| true, |found| found.state = BalancerState::Active);
}

/// The simulated answer to a query.
fn reply(world: &Observed, query: &Query) -> Reply {
    match query {
        Query::TaggedVpcs => Reply::Vpcs(world.vpcs.all().to_vec()),
        Query::Vpc(id) => Reply::Vpcs(those(world.vpcs.all(), |vpc| vpc.id == *id)),
        Query::VpcAttributes(id) => {
            let found = world.vpcs.all().iter().find(|vpc| vpc.id == *id);
            Reply::VpcAttributes {
                vpc: id.clone(),
                dns_support: found.and_then(|vpc| vpc.dns_support).unwrap_or(true),
                dns_hostnames: found.and_then(|vpc| vpc.dns_hostnames).unwrap_or(true),
            }
        }
        Query::Subnets(scope) => {
            Reply::Subnets(those(world.subnets.all(), |it| is_in(scope, &it.vpc)))
        }
        Query::InternetGateways(Scope::Tagged) => {
            Reply::InternetGateways(world.internet_gateways.all().to_vec())
        }
        Query::InternetGateways(Scope::Vpc(id)) => {
            let known = [world.attached_gateways.all(), world.internet_gateways.all()].concat();
            let mut attached = those(&known, |it| it.attached_to.as_ref() == Some(id));
            attached.dedup_by(|one, other| one.id == other.id);
            Reply::InternetGateways(attached)
        }
        Query::Addresses => Reply::Addresses(world.addresses.all().to_vec()),
        Query::NatGateways(scope) => {
            Reply::NatGateways(those(world.nat_gateways.all(), |it| is_in(scope, &it.vpc)))
        }
        Query::RouteTables(scope) => {
            Reply::RouteTables(those(world.route_tables.all(), |it| is_in(scope, &it.vpc)))
        }
        Query::SecurityGroups(scope) => {
            Reply::SecurityGroups(those(world.security_groups.all(), |it| is_in(scope, &it.vpc)))
        }
        Query::Bastions(_) => Reply::Bastions(world.bastions.all().to_vec()),
        Query::BastionImage => {
            let known = world.bastion_images.all().first().cloned();
            Reply::BastionImage(known.or_else(|| Some(IMAGE.to_owned())))
        }
        Query::Residents(_) => Reply::Residents(world.residents.all().to_vec()),
        Query::NetworkInterfaces(_) => Reply::NetworkInterfaces(world.interfaces.all().to_vec()),
        balancers => of_balancers(world, balancers),
    }
}

fn of_balancers(world: &Observed, query: &Query) -> Reply {
    let classic = world.classic.all();
    match query {
        Query::ClassicAttributes(name) => Reply::ClassicAttributes {
            name: name.clone(),
            attributes: classic
                .iter()
                .find(|it| it.name == *name)
                .and_then(|it| it.attributes.clone()),
        },
        Query::ClassicTags(names) => {
            let of = |name: &String| {
                let found = classic.iter().find(|it| it.name == *name)?;
                Some((name.clone(), found.tags.clone().unwrap_or_else(Tags::new)))
            };
            Reply::ClassicTags(names.iter().filter_map(of).collect())
        }
        Query::NetworkLoadBalancers(_) => Reply::NetworkLoadBalancers(
            world.network.all().to_vec(),
            world.target_groups.all().to_vec(),
        ),
        Query::NetworkAttributes { load_balancer, target_group } => {
            let balancer = world.network.all().iter().find(|it| it.arn == *load_balancer);
            let group = world.target_groups.all().iter().find(|it| it.arn == *target_group);
            Reply::NetworkAttributes {
                load_balancer: load_balancer.clone(),
                cross_zone: balancer.and_then(|it| it.cross_zone).unwrap_or_default(),
                target_group: target_group.clone(),
                preserve_client_ip: group.and_then(|it| it.preserve_client_ip).unwrap_or_default(),
            }
        }
        Query::ClassicLoadBalancers(Lookup { names, vpc }) => {
            let is_meant = |it: &ClassicLoadBalancer| {
                names.contains(&it.name) || vpc.as_ref() == Some(&it.vpc)
            };
            Reply::ClassicLoadBalancers(those(classic, is_meant))
        }
        _ => Reply::ClassicLoadBalancers(Vec::new()),
    }
}

fn is_in(scope: &Scope, vpc: &str) -> bool {
    match scope {
        Scope::Tagged => true,
        Scope::Vpc(id) => id == vpc,
    }
}

fn those<T: Clone>(all: &[T], is_meant: impl Fn(&T) -> bool) -> Vec<T> {
    all.iter().filter(|it| is_meant(it)).cloned().collect()
}
