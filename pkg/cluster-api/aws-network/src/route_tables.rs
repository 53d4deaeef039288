//! Route tables: one for each subnet, found by its tag even when nothing uses it yet.

use crate::action::Action;
use crate::desired::is_wavelength;
use crate::gateways::Gateways;
use crate::identity::Tags;
use crate::memory::{LogicalId, client_token};
use crate::nat_gateways::{Exit, Nats};
use crate::observed::Observed;
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::Query;
use crate::resources::{DEFAULT_ROUTE, IPV6_ROUTE, RouteTable, Target};
use crate::subnets::{Placed, Subnets};
use crate::tags::{NAT_ZONE_TAG, ROUTE_TABLE_TAG};
use crate::vpc::Home;

/// Plans the route tables of a VPC of ours.
pub(crate) fn plan(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    gateways: Gateways<'_>,
    nats: Option<&Nats<'_>>,
    plan: &mut Plan,
) {
    let Some(all) = situation.observed.route_tables.get() else {
        plan.read(Query::RouteTables(home.scope()));
        return;
    };
    let is_here =
        |table: &&RouteTable| table.vpc == home.id && !is_of_nat_gateway(situation.observed, table);
    let tables: Vec<_> = all.iter().filter(is_here).collect();
    let mut kept: Vec<&str> = Vec::new();
    for subnet in subnets.placed.iter().filter(|subnet| subnet.available) {
        let user = tables.iter().find(|table| table.association_of(subnet.id).is_some());
        if let Some(foreign) = user.filter(|table| !is_ours(situation, table, subnet)) {
            let message = format!(
                "{} uses {}, which does not belong to this cluster; remove the association",
                subnet.id, foreign.id
            );
            plan.problem(Part::RouteTables, Reason::OwnershipConflict, message);
            continue;
        }
        match table_of(situation, &tables, &kept, subnet) {
            Some(table) => {
                kept.push(&table.id);
                keep(situation, table, user.copied(), subnet, plan);
                lead(table, subnet, gateways, nats, plan);
                if subnet.ipv6 {
                    lead_ipv6(table, subnet, gateways, plan);
                }
            }
            None => make(situation, home, subnet, plan),
        }
    }
    let surplus = tables.iter().filter(|table| {
        situation.identity().owns(&table.tags)
            && !table.is_main()
            && !kept.contains(&table.id.as_str())
    });
    for table in surplus {
        discard(situation, table, subnets, plan);
    }
}

/// Whether AWS has made a table for a regional NAT gateway, with which it goes. It may have the tags
/// of the gateway, and a read may show it before the gateway.
pub(crate) fn is_of_nat_gateway(observed: &Observed, table: &RouteTable) -> bool {
    let mut nat_gateways = observed.nat_gateways.all().iter();
    table.tags.contains_key(NAT_ZONE_TAG)
        || nat_gateways.any(|nat| nat.route_table.as_ref() == Some(&table.id))
}

fn is_ours(situation: &Situation<'_>, table: &RouteTable, subnet: &Placed<'_>) -> bool {
    situation.is_ours(&table.tags, &table.id, &LogicalId::RouteTable(subnet.cidr.to_string()))
}

fn slot(tags: &Tags) -> Option<&str> {
    tags.get(ROUTE_TABLE_TAG).map(String::as_str)
}

/// The table of a subnet: by its tag, else the one in use, else an unused and unclaimed one.
fn table_of<'a>(
    situation: &Situation<'_>,
    tables: &[&'a RouteTable],
    kept: &[&str],
    subnet: &Placed<'_>,
) -> Option<&'a RouteTable> {
    let cidr = subnet.cidr.to_string();
    let rank = |table: &RouteTable| {
        let is_used = table.association_of(subnet.id).is_some();
        match (slot(&table.tags), is_used) {
            (Some(of), true) if of == cidr => Some(0),
            (Some(of), false) if of == cidr => Some(1),
            (None, true) => Some(2),
            (None, false) if table.associations.is_empty() => Some(3),
            _ => None,
        }
    };
    tables
        .iter()
        .filter(|table| is_ours(situation, table, subnet) && !table.is_main())
        .filter(|table| !kept.contains(&table.id.as_str()))
        .filter_map(|table| Some((rank(table)?, &table.id, *table)))
        .min_by_key(|(rank, id, _)| (*rank, *id))
        .map(|(.., table)| table)
}

fn make(situation: &Situation<'_>, home: &Home<'_>, subnet: &Placed<'_>, plan: &mut Plan) {
    let logical = LogicalId::RouteTable(subnet.cidr.to_string());
    let attempt = situation.memory.attempt(&logical, None, situation.now);
    let create = Action::CreateRouteTable {
        vpc: home.id.to_owned(),
        subnet_cidr: subnet.cidr,
        attempt,
        token: client_token(&situation.identity().owner_id, &logical, attempt),
        tags: situation.desired.route_table_tags(subnet.public, subnet.zone, subnet.cidr),
    };
    situation.create(Part::RouteTables, create, &situation.observed.route_tables, plan);
}

fn keep(
    situation: &Situation<'_>,
    table: &RouteTable,
    user: Option<&RouteTable>,
    subnet: &Placed<'_>,
    plan: &mut Plan,
) {
    let desired = situation.desired;
    let wanted = desired.route_table_tags(subnet.public, subnet.zone, subnet.cidr);
    plan.tags.compare(&table.id, &table.tags, &wanted, &desired.retired_tags);
    let other = user.filter(|user| user.id != table.id);
    match other.and_then(|other| other.association_of(subnet.id)) {
        Some(association) => {
            let association = association.id.clone();
            let replace = Action::ReplaceAssociation { association, table: table.id.clone() };
            plan.act(Part::RouteTables, replace);
        }
        None if user.is_none() => {
            let (table, subnet) = (table.id.clone(), subnet.id.to_owned());
            plan.act(Part::RouteTables, Action::AssociateRouteTable { table, subnet });
        }
        None => {}
    }
}

/// Plans the default route of IPv4 of a table. Other routes are somebody else's.
fn lead(
    table: &RouteTable,
    subnet: &Placed<'_>,
    gateways: Gateways<'_>,
    nats: Option<&Nats<'_>>,
    plan: &mut Plan,
) {
    let is_of_carrier = subnet.edge.as_ref().is_some_and(is_wavelength);
    let target = if subnet.public && is_of_carrier {
        gateways.carrier.map(|gateway| Target::CarrierGateway(gateway.to_owned()))
    } else if subnet.public {
        gateways.internet.map(|gateway| Target::InternetGateway(gateway.to_owned()))
    } else {
        match nats.map(|nats| nats.exit(subnet)) {
            Some(Exit::Through(nat)) => Some(Target::NatGateway(nat.to_owned())),
            Some(Exit::None) => {
                close(table, plan);
                None
            }
            Some(Exit::Unchanged) | None => None,
        }
    };
    if let Some(target) = target {
        point(table, DEFAULT_ROUTE, target, plan);
    }
}

/// Plans the default route of IPv6. It needs no NAT gateway, so a private subnet has it whatever
/// their policy.
fn lead_ipv6(table: &RouteTable, subnet: &Placed<'_>, gateways: Gateways<'_>, plan: &mut Plan) {
    let target = if subnet.public {
        gateways.internet.map(|gateway| Target::InternetGateway(gateway.to_owned()))
    } else {
        gateways.egress_only.map(|gateway| Target::EgressOnlyGateway(gateway.to_owned()))
    };
    if let Some(target) = target {
        point(table, IPV6_ROUTE, target, plan);
    }
}

fn point(table: &RouteTable, destination: &'static str, target: Target, plan: &mut Plan) {
    let id = table.id.clone();
    let action = match table.route_to(destination) {
        None => Action::CreateRoute { table: id, destination, target },
        Some(route) if route.target != target || route.blackhole => {
            Action::ReplaceRoute { table: id, destination, target }
        }
        Some(_) => return,
    };
    plan.act(Part::RouteTables, action);
}

/// Without NAT gateways a default route to one goes; one to anything else is the user's.
fn close(table: &RouteTable, plan: &mut Plan) {
    let to_nat = |target: &Target| matches!(target, Target::NatGateway(_));
    if table.route_to(DEFAULT_ROUTE).is_some_and(|route| to_nat(&route.target)) {
        let (table, destination) = (table.id.clone(), DEFAULT_ROUTE);
        plan.act(Part::RouteTables, Action::DeleteRoute { table, destination });
    }
}

/// Deletes a table of ours that no subnet needs. AWS refuses to delete one in use.
fn discard(situation: &Situation<'_>, table: &RouteTable, subnets: &Subnets<'_>, plan: &mut Plan) {
    let exists = |id: &str| situation.observed.subnets.all().iter().any(|subnet| subnet.id == id);
    let is_for = |cidr: &str| {
        let mut desired = situation.desired.subnets.iter();
        desired.any(|subnet| subnet.cidr.is_some_and(|of| of.to_string() == cidr))
    };
    // Of a subnet that can be used, the table that counts is known.
    let has_its_own = |cidr: &str| {
        let mut placed = subnets.placed.iter();
        placed.any(|subnet| subnet.available && subnet.cidr.to_string() == cidr)
    };
    match slot(&table.tags) {
        // The subnet does not exist yet or is being replaced: the table keeps the routes of users.
        Some(cidr) if is_for(cidr) && !has_its_own(cidr) => return,
        None if !subnets.are_complete => return,
        _ => {}
    }
    if table.associations.is_empty() {
        plan.act(Part::RouteTables, Action::DeleteRouteTable { table: table.id.clone() });
        return;
    }
    let dangling = table
        .associations
        .iter()
        .filter(|association| association.subnet.as_deref().is_some_and(|subnet| !exists(subnet)));
    for association in dangling {
        let association = association.id.clone();
        plan.act(Part::RouteTables, Action::DisassociateRouteTable { association });
    }
}

/// Reports private subnets without a default route where no NAT policy can be followed.
pub(crate) fn report_closed(situation: &Situation<'_>, subnets: &Subnets<'_>, plan: &mut Plan) {
    let tables = situation.observed.route_tables.all();
    let is_closed = |subnet: &&Placed<'_>| {
        let table = tables.iter().find(|table| table.association_of(subnet.id).is_some());
        let route = table.and_then(|table| table.route_to(DEFAULT_ROUTE));
        !subnet.public && route.is_none_or(|route| route.blackhole)
    };
    let closed = subnets.placed.iter().filter(is_closed).count();
    if closed > 0 {
        let message = format!(
            "private subnets without a default route: {closed}; the condition {} says what is \
             missing",
            Part::NatGateways.condition()
        );
        plan.problem(Part::RouteTables, Reason::Unsupported, message);
    }
}

/// Whether a private subnet still has no way out although it shall have one.
pub(crate) fn await_exits(subnets: &Subnets<'_>, nats: &Nats<'_>, plan: &mut Plan) {
    let is_open = |subnet: &&Placed<'_>| !subnet.public && nats.exit(subnet) == Exit::Unchanged;
    let open = subnets.placed.iter().filter(is_open).count();
    if open > 0 {
        let what = format!("routes of private subnets that wait for a NAT gateway: {open}");
        plan.wait_for_another(Part::RouteTables, what);
    }
}
