//! What carries the tag of the cluster and not our owner id. What is adopted gets the owner id
//! before anything of it is deleted; the rest is left, and a deletion does not end silently over it
//! (`rule:a-deletion-names-what-it-leaves`).

use crate::identity::Tags;
use crate::part::Part;
use crate::plan::{Other, Plan};
use crate::resources::InstanceState;
use crate::tag_drift::TagDrift;

use super::ending::Ending;

/// What is not ours.
pub(super) fn seen(ending: &Ending<'_>) -> Vec<Other> {
    let (seen, identity) = (ending.observed, &ending.removal.identity);
    let mut others = Vec::new();
    let mut take = |id: &str, tags: &Tags| {
        if identity.is_of_cluster(tags) && !ending.is_ours(tags, id) {
            let owner_id = tags.get(&identity.owner_tag).cloned();
            others.push(Other { id: id.to_owned(), owner_id });
        }
    };
    each_of_ec2(ending, &mut take);
    for found in seen.classic.all() {
        found.tags.iter().for_each(|tags| take(&found.name, tags));
    }
    seen.network.all().iter().for_each(|found| take(&found.arn, &found.tags));
    seen.target_groups.all().iter().for_each(|found| take(&found.arn, &found.tags));
    others
}

/// Sets the owner id on what is adopted to be deleted (`rule:adoption-begins-with-the-owner-id`):
/// the policy that we ship allows to delete nothing without it.
pub(super) fn mark(ending: &Ending<'_>, plan: &mut Plan) {
    let identity = &ending.removal.identity;
    if !identity.adopt {
        return;
    }
    let wanted = Tags::from([(identity.owner_tag.clone(), identity.owner_id.clone())]);
    let mut missing = TagDrift::default();
    each_of_ec2(ending, &mut |id, tags| {
        if ending.is_ours(tags, id) {
            missing.compare(id, tags, &wanted, &std::collections::BTreeSet::new());
        }
    });
    for action in missing.actions() {
        plan.act(Part::Deletion, action);
    }
}

fn each_of_ec2(ending: &Ending<'_>, take: &mut dyn FnMut(&str, &Tags)) {
    let seen = ending.observed;
    seen.vpcs.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.subnets.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.internet_gateways.all().iter().for_each(|found| take(&found.id, &found.tags));
    seen.addresses.all().iter().for_each(|found| take(&found.id, &found.tags));
    let nats = seen.nat_gateways.all().iter().filter(|found| !found.is_gone());
    nats.for_each(|found| take(&found.id, &found.tags));
    seen.route_tables.all().iter().for_each(|found| take(&found.id, &found.tags));
    let named = &ending.removal.named_groups;
    let groups = seen.security_groups.all().iter().filter(|found| !named.contains(&found.id));
    groups.for_each(|found| take(&found.id, &found.tags));
    let instances = seen.bastions.all().iter();
    let live = instances.filter(|found| found.state != InstanceState::Terminated);
    live.for_each(|found| take(&found.id, &found.tags));
}
