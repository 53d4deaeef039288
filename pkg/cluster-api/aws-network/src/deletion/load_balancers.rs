//! Load balancers of ours, and those that the cloud provider made for Services, at the end of a
//! cluster.

use crate::action::Action;
use crate::elb_action::ElbAction;
use crate::elbv2_action::ElbV2Action;
use crate::load_balancers::{ClassicLoadBalancer, NetworkLoadBalancer, TargetGroup};
use crate::observed::Observed;
use crate::part::Part;
use crate::plan::Plan;

use super::ending::Ending;

/// Names of classic load balancers whose tags were not read: whose they are is not known.
pub(super) fn without_tags(observed: &Observed) -> Vec<String> {
    let all = observed.classic.all().iter();
    all.filter(|found| found.tags.is_none()).map(|found| found.name.clone()).collect()
}

fn classic<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a ClassicLoadBalancer> {
    let ending = *ending;
    ending.observed.classic.all().iter().filter(move |found| {
        found.tags.as_ref().is_some_and(|tags| {
            ending.is_ours(tags, &found.name) || ending.is_of_service(tags, &found.vpc)
        })
    })
}

fn network<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a NetworkLoadBalancer> {
    let ending = *ending;
    ending.observed.network.all().iter().filter(move |found| {
        ending.is_ours(&found.tags, &found.arn) || ending.is_of_service(&found.tags, &found.vpc)
    })
}

fn target_groups<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a TargetGroup> {
    let ending = *ending;
    ending.observed.target_groups.all().iter().filter(move |found| is_to_go(&ending, found))
}

/// Whether a target group goes with the cluster.
pub(super) fn is_to_go(ending: &Ending<'_>, group: &TargetGroup) -> bool {
    ending.is_ours(&group.tags, &group.arn) || ending.is_of_service(&group.tags, &group.vpc)
}

/// No load balancer is left that would hold subnets, groups and addresses.
pub(super) fn are_gone(ending: &Ending<'_>) -> bool {
    classic(ending).next().is_none() && network(ending).next().is_none()
}

pub(super) fn plan(ending: &Ending<'_>, plan: &mut Plan) {
    for found in classic(ending) {
        let delete = ElbAction::Delete { name: found.name.clone() };
        plan.act(Part::Deletion, Action::Elb(delete));
    }
    for found in network(ending) {
        let delete = ElbV2Action::Delete { load_balancer: found.arn.clone() };
        plan.act(Part::Deletion, Action::ElbV2(delete));
    }
    let is_used = |group: &TargetGroup| {
        let mut listeners = ending.observed.network.all().iter().flat_map(|found| &found.listeners);
        listeners.any(|listener| listener.target_group == group.arn)
    };
    // Its listeners go with a load balancer, and with them what holds a target group.
    for group in target_groups(ending).filter(|group| !is_used(group)) {
        let delete = ElbV2Action::DeleteTargetGroup { target_group: group.arn.clone() };
        plan.act(Part::Deletion, Action::ElbV2(delete));
    }
}
