//! The bastion: one instance with a public address, for SSH to the other instances. No other action waits for it.

use crate::action::{Action, BastionLaunch};
use crate::desired::{DesiredBastion, DesiredSubnet};
use crate::identity::ROLE_TAG;
use crate::memory::{LogicalId, client_token};
use crate::plan::{Part, Plan, RECHECK, Reason, Situation};
use crate::query::Query;
use crate::resources::{Instance, InstanceState};
use crate::rule::Role;
use crate::security_groups::Groups;
use crate::subnets::Subnets;
use crate::tags::attempt_of;
use crate::vpc::Home;

/// Plans the bastion of a VPC of ours.
pub(crate) fn plan(
    situation: &Situation<'_>,
    home: &Home<'_>,
    subnets: &Subnets<'_>,
    groups: &Groups,
    plan: &mut Plan,
) {
    let has_private = situation.desired.subnets.iter().any(|subnet| !subnet.public);
    let wanted = situation.desired.bastion.as_ref().filter(|_| has_private);
    let Some(found) = situation.observed.bastions.get() else {
        // Without a bastion, one that was is known by its record, or by the deep look.
        if wanted.is_some() || situation.deep || situation.memory.id(&LogicalId::Bastion).is_some()
        {
            plan.read(Query::bastion(situation.memory));
        }
        return;
    };
    let mut live: Vec<_> = found
        .iter()
        .filter(|instance| {
            is_ours(situation, instance) && instance.is_live() && instance.vpc == home.id
        })
        .collect();
    live.sort_by_key(|instance| (instance.launched, &instance.id));
    let (keep_one, surplus) = live.split_at(live.len().min(usize::from(wanted.is_some())));
    if !surplus.is_empty() {
        let instances = surplus.iter().map(|instance| instance.id.clone()).collect();
        plan.act(Part::Bastion, Action::TerminateInstances { instances });
    }
    let ending = found.iter().any(|instance| {
        instance.state == InstanceState::ShuttingDown && is_ours(situation, instance)
    });
    if ending && wanted.is_none() {
        let what = "the bastion is shutting down";
        plan.wait(Part::Bastion, what, RECHECK, Query::bastion(situation.memory));
    }
    match (wanted, keep_one.first()) {
        (Some(_), Some(instance)) => keep(situation, instance, plan),
        (Some(wanted), None) => make(situation, home, wanted, subnets, groups, plan),
        (None, _) => {}
    }
}

/// The recorded bastion is ours even without its role: otherwise a second one would be created.
fn is_ours(situation: &Situation<'_>, instance: &Instance) -> bool {
    let is_recorded = situation.memory.id(&LogicalId::Bastion) == Some(&*instance.id);
    let has_role = instance.tags.get(ROLE_TAG).is_some_and(|role| role == Role::Bastion.as_str());
    situation.is_ours(&instance.tags, &instance.id, &LogicalId::Bastion)
        && (has_role || is_recorded)
}

fn keep(situation: &Situation<'_>, instance: &Instance, plan: &mut Plan) {
    let desired = situation.desired;
    let wanted = desired.bastion_tags(attempt_of(&instance.tags));
    plan.tags.compare(&instance.id, &instance.tags, &wanted, &desired.retired_tags);
    if instance.state == InstanceState::Pending {
        let what = format!("{} is starting", instance.id);
        plan.wait(Part::Bastion, what, RECHECK, Query::bastion(situation.memory));
    }
}

fn make(
    situation: &Situation<'_>,
    home: &Home<'_>,
    wanted: &DesiredBastion,
    subnets: &Subnets<'_>,
    groups: &Groups,
    plan: &mut Plan,
) {
    // The zone of a subnet that the spec names by its id is not known here.
    let is_public = |subnet: &DesiredSubnet| subnet.public && subnet.edge.is_none();
    if !situation.desired.subnets.iter().any(is_public) {
        let message = "a bastion needs a public subnet in an availability zone";
        plan.problem(Part::Bastion, Reason::InvalidConfiguration, message);
        return;
    }
    let subnet = subnets.regular().find(|subnet| subnet.public && subnet.available);
    let (Some(subnet), Some(group)) = (subnet, groups.get(&Role::Bastion)) else { return };
    let Some(image) = image(situation, wanted, plan) else { return };
    let logical = LogicalId::Bastion;
    let ended = situation
        .observed
        .bastions
        .all()
        .iter()
        .filter(|instance| is_ours(situation, instance))
        .map(|instance| attempt_of(&instance.tags))
        .max();
    let attempt = situation.memory.attempt(&logical, ended, situation.now);
    let launch = BastionLaunch {
        image: image.to_owned(),
        instance_type: wanted.instance_type.clone(),
        key: wanted.key.clone(),
        subnet: subnet.id.to_owned(),
        group: group.clone(),
        token: client_token(&situation.identity().owner_id, &logical, attempt),
        tags: situation.desired.bastion_tags(attempt),
    };
    let run = Action::RunBastion { vpc: home.id.to_owned(), attempt, launch };
    situation.create(Part::Bastion, run, &situation.observed.bastions, plan);
}

fn image<'a>(
    situation: &Situation<'a>,
    wanted: &'a DesiredBastion,
    plan: &mut Plan,
) -> Option<&'a str> {
    if let Some(image) = &wanted.image {
        return Some(image);
    }
    let Some(found) = situation.observed.bastion_images.get() else {
        plan.read(Query::BastionImage);
        return None;
    };
    if found.is_empty() {
        let message = "found no image of Ubuntu 24.04 in the region: set spec.bastion.ami";
        plan.problem(Part::Bastion, Reason::ImageNotFound, message);
    }
    found.first().map(String::as_str)
}
