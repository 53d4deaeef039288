//! The gateways of a VPC of ours: the internet gateway; the egress-only one, through which private
//! subnets reach the internet by IPv6; the carrier gateway of public subnets in wavelength zones.

use crate::action::Action;
use crate::desired::is_wavelength;
use crate::identity::{Ownership, Tags};
use crate::memory::{LogicalId, client_token};
use crate::observed::Seen;
use crate::plan::{Part, Plan, RECHECK, Reason, Situation};
use crate::query::{Query, Scope};
use crate::resources::{InternetGateway, Target};
use crate::spec::names_wavelength;
use crate::subnets::Subnets;
use crate::vpc::Home;

/// The gateways that exist, as routes and load balancers need them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gateways<'a> {
    /// Id of the internet gateway.
    pub(crate) internet: Option<&'a str>,
    /// Id of the egress-only internet gateway.
    pub(crate) egress_only: Option<&'a str>,
    /// Id of the carrier gateway.
    pub(crate) carrier: Option<&'a str>,
}

/// Plans the gateways that need no subnet.
pub(crate) fn plan<'a>(
    situation: &Situation<'a>,
    home: &Home<'a>,
    plan: &mut Plan,
) -> Gateways<'a> {
    if !home.is_managed {
        return Gateways::default();
    }
    let internet = plan_internet(situation, home, plan);
    let egress_only = home.ipv6.and_then(|_| plan_egress_only(situation, home, plan));
    Gateways { internet, egress_only, carrier: None }
}

/// Plans the internet gateway: found by its tags wherever it is, so that one that was never
/// attached is not lost. Answers the id of the one that is attached to the VPC, ours or not.
fn plan_internet<'a>(
    situation: &Situation<'a>,
    home: &Home<'a>,
    plan: &mut Plan,
) -> Option<&'a str> {
    let observed = situation.observed;
    let Some(tagged) = observed.internet_gateways.get() else {
        plan.read(Query::InternetGateways(Scope::Tagged));
        return None;
    };
    let is_here = |gateway: &&InternetGateway| gateway.attached_to.as_deref() == Some(home.id);
    let is_ours = |gateway: &&InternetGateway| {
        situation.is_ours(&gateway.tags, &gateway.id, &LogicalId::InternetGateway)
    };
    let both = tagged.iter().chain(observed.attached_gateways.all());
    if let Some(attached) = both.filter(is_ours).find(is_here) {
        let surplus = tagged
            .iter()
            .filter(is_ours)
            .filter(|gateway| gateway.id != attached.id && gateway.attached_to.is_none());
        return Some(keep_gateway(situation, attached, surplus, plan));
    }
    // Somebody else's gateway has no tag of ours.
    let Some(attached) = observed.attached_gateways.get() else {
        plan.read(Query::InternetGateways(home.scope()));
        return None;
    };
    let free = tagged.iter().filter(is_ours).filter(|gateway| gateway.attached_to.is_none());
    if let Some(foreign) = attached.iter().filter(|gateway| !is_ours(gateway)).find(is_here) {
        discard_gateways(free, plan);
        return Some(&foreign.id);
    }
    match free.min_by_key(|gateway| &gateway.id) {
        Some(gateway) => {
            let (gateway, vpc) = (gateway.id.clone(), home.id.to_owned());
            plan.act(Part::InternetGateway, Action::AttachInternetGateway { gateway, vpc });
        }
        None => make_gateway(situation, home, tagged, plan),
    }
    None
}

fn make_gateway(
    situation: &Situation<'_>,
    home: &Home<'_>,
    tagged: &[InternetGateway],
    plan: &mut Plan,
) {
    let elsewhere = tagged.iter().find(|gateway| situation.identity().owns(&gateway.tags));
    if let Some(gateway) = elsewhere {
        let vpc = gateway.attached_to.clone().unwrap_or_default();
        let message = format!(
            "{} belongs to this cluster but is attached to {vpc}, not to {}: detach it",
            gateway.id, home.id
        );
        plan.problem(Part::InternetGateway, Reason::OwnershipConflict, message);
        return;
    }
    let create = Action::CreateInternetGateway { tags: situation.desired.internet_gateway_tags() };
    situation.create(Part::InternetGateway, create, &situation.observed.internet_gateways, plan);
}

fn keep_gateway<'a>(
    situation: &Situation<'a>,
    attached: &'a InternetGateway,
    surplus: impl Iterator<Item = &'a InternetGateway>,
    plan: &mut Plan,
) -> &'a str {
    let desired = situation.desired;
    let wanted = desired.internet_gateway_tags();
    plan.tags.compare(&attached.id, &attached.tags, &wanted, &desired.retired_tags);
    discard_gateways(surplus, plan);
    &attached.id
}

/// AWS refuses to delete a gateway that is attached.
fn discard_gateways<'a>(surplus: impl Iterator<Item = &'a InternetGateway>, plan: &mut Plan) {
    for gateway in surplus {
        let gateway = gateway.id.clone();
        plan.act(Part::InternetGateway, Action::DeleteInternetGateway { gateway });
    }
}

/// Plans the egress-only gateway. Answers the id of the one in the VPC, ours or not.
fn plan_egress_only<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    plan: &mut Plan,
) -> Option<&'a str> {
    let kind = Kind {
        part: Part::EgressOnlyGateway,
        logical: LogicalId::EgressOnlyGateway,
        name: "egress-only internet gateway",
        look: Query::EgressOnlyGateways(home.scope()),
        seen: &situation.observed.egress_only_gateways,
        tags: situation.desired.egress_only_gateway_tags(),
    };
    let create =
        |vpc, attempt, token, tags| Action::CreateEgressOnlyGateway { vpc, attempt, token, tags };
    plan_attached(situation, home, kind, create, plan).map(|found| &*found.id)
}

/// Plans the carrier gateway of a VPC with a public subnet in a wavelength zone, which AWS wants there
/// first. Answers the id of the one in the VPC, ours or not, once routes may lead to it.
pub(crate) fn plan_carrier<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    plan: &mut Plan,
) -> Option<&'a str> {
    if !home.is_managed {
        return None;
    }
    if !subnets.placed.iter().any(|it| it.public && it.edge.as_ref().is_some_and(is_wavelength)) {
        if !situation.desired.has_carrier_gateway(situation.observed) {
            retire_carrier(situation, home, plan);
        } else if plan.is_busy(Part::Subnets) {
            plan.wait_for_another(Part::CarrierGateway, "a subnet in a wavelength zone is awaited");
        }
        return None;
    }
    let kind = Kind {
        part: Part::CarrierGateway,
        logical: LogicalId::CarrierGateway,
        name: "carrier gateway",
        look: Query::CarrierGateways(home.scope()),
        seen: &situation.observed.carrier_gateways,
        tags: situation.desired.carrier_gateway_tags(),
    };
    let look = kind.look.clone();
    let create =
        |vpc, attempt, token, tags| Action::CreateCarrierGateway { vpc, attempt, token, tags };
    let found = plan_attached(situation, home, kind, create, plan)?;
    if found.pending {
        plan.wait(Part::CarrierGateway, format!("{} is pending", found.id), RECHECK, look);
    }
    (!found.pending).then_some(&*found.id)
}

/// Plans the end of a carrier gateway of ours that no subnet of the spec needs. It stays while a route leads to
/// it, such as that of a surplus subnet, which is reported.
fn retire_carrier(situation: &Situation<'_>, home: &Home<'_>, plan: &mut Plan) {
    let (observed, records) = (situation.observed, &situation.memory.records);
    let mut subnets = observed.subnets.all().iter().filter(|it| it.vpc == home.id);
    let may_exist = records.contains_key(&LogicalId::CarrierGateway)
        || subnets.any(|subnet| names_wavelength(&subnet.zone));
    let Some(found) = observed.carrier_gateways.get() else {
        if may_exist {
            plan.read(Query::CarrierGateways(home.scope()));
        }
        return;
    };
    let is_ours = |it: &&InternetGateway| {
        it.attached_to.as_deref() == Some(home.id)
            && situation.is_ours(&it.tags, &it.id, &LogicalId::CarrierGateway)
    };
    let Some(gateway) = found.iter().find(is_ours) else { return };
    let Some(tables) = observed.route_tables.get() else { return };
    let target = Target::CarrierGateway(gateway.id.clone());
    if tables.iter().flat_map(|table| &table.routes).any(|route| route.target == target) {
        return;
    }
    if observed.route_tables.is_as_read() {
        let delete = Action::DeleteCarrierGateway { gateway: gateway.id.clone() };
        plan.act(Part::CarrierGateway, delete);
    } else {
        plan.read(Query::RouteTables(home.scope()));
    }
}

/// A gateway that AWS attaches to one VPC for good when it is made. AWS allows one of a kind in a VPC.
struct Kind<'a> {
    part: Part,
    logical: LogicalId,
    name: &'static str,
    look: Query,
    seen: &'a Seen<InternetGateway>,
    tags: Tags,
}

/// Plans such a gateway. One of others is used.
fn plan_attached<'a>(
    situation: &Situation<'a>,
    home: &Home<'_>,
    kind: Kind<'a>,
    create: impl Fn(String, u32, String, Tags) -> Action,
    plan: &mut Plan,
) -> Option<&'a InternetGateway> {
    let Kind { part, logical, name, look, seen, tags } = kind;
    let Some(attached) = seen.get() else {
        plan.read(look);
        return None;
    };
    if let Some(found) = attached.iter().find(|it| it.attached_to.as_deref() == Some(home.id)) {
        match situation.ownership(&found.tags, &found.id, &logical) {
            Ownership::Ours => {
                let retired = &situation.desired.retired_tags;
                plan.tags.compare(&found.id, &found.tags, &tags, retired);
            }
            Ownership::Upstreams => {
                let message = format!(
                    "{} has the tag of this cluster but no owner-id, and AWS allows no second \
                     {name} in {}: set the annotation aws.cluster.x-k8s.io/adopt=true to adopt it, \
                     or delete it",
                    found.id, home.id
                );
                plan.problem(part, Reason::OwnershipConflict, message);
                return None;
            }
            Ownership::Anothers | Ownership::Users => {}
        }
        return Some(found);
    }
    let attempt = situation.memory.attempt(&logical, None, situation.now);
    let token = client_token(&situation.identity().owner_id, &logical, attempt);
    let create = create(home.id.to_owned(), attempt, token, tags);
    situation.create(part, create, seen, plan);
    None
}
