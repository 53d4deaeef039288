//! The internet gateway: found by its tags wherever it is, so that one that was never attached is
//! not lost.

use crate::action::Action;
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::{Query, Scope};
use crate::resources::InternetGateway;
use crate::vpc::Home;

/// Plans the gateway. Answers the id of the one that is attached to the VPC, ours or not.
pub(crate) fn plan<'a>(
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
        return Some(keep(situation, attached, surplus, plan));
    }
    // Somebody else's gateway has no tag of ours.
    let Some(attached) = observed.attached_gateways.get() else {
        plan.read(Query::InternetGateways(Scope::Vpc(home.id.to_owned())));
        return None;
    };
    let free = tagged.iter().filter(is_ours).filter(|gateway| gateway.attached_to.is_none());
    if let Some(foreign) = attached.iter().filter(|gateway| !is_ours(gateway)).find(is_here) {
        discard(free, plan);
        return Some(&foreign.id);
    }
    match free.min_by_key(|gateway| &gateway.id) {
        Some(gateway) => {
            let (gateway, vpc) = (gateway.id.clone(), home.id.to_owned());
            plan.act(Part::InternetGateway, Action::AttachInternetGateway { gateway, vpc });
        }
        None => make(situation, home, tagged, plan),
    }
    None
}

fn make(situation: &Situation<'_>, home: &Home<'_>, tagged: &[InternetGateway], plan: &mut Plan) {
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
    let seen_at = situation.observed.internet_gateways.read_at();
    situation.create(Part::InternetGateway, create, seen_at, plan);
}

fn keep<'a>(
    situation: &Situation<'a>,
    attached: &'a InternetGateway,
    surplus: impl Iterator<Item = &'a InternetGateway>,
    plan: &mut Plan,
) -> &'a str {
    let desired = situation.desired;
    let wanted = desired.internet_gateway_tags();
    plan.tags.compare(&attached.id, &attached.tags, &wanted, &desired.retired_tags);
    discard(surplus, plan);
    &attached.id
}

/// AWS refuses to delete a gateway that is attached.
fn discard<'a>(surplus: impl Iterator<Item = &'a InternetGateway>, plan: &mut Plan) {
    for gateway in surplus {
        let gateway = gateway.id.clone();
        plan.act(Part::InternetGateway, Action::DeleteInternetGateway { gateway });
    }
}
