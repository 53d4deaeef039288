//! The network load balancer. Its listeners and target groups are in `listeners.rs`.

use super::both_kinds::{Input, Site, as_set};
use super::listeners;
use crate::action::{Action, ElbV2Action};
use crate::desired::{Desired, DesiredLoadBalancer};
use crate::load_balancers::{BalancerState, NetworkLoadBalancer};
use crate::memory::{LogicalId, Memory};
use crate::observed::Observed;
use crate::plan::{Plan, RECHECK, Reason};
use crate::query::{Lookup, Query};

/// The network load balancers of a cluster, with the names of their target groups. Recorded ones
/// may be left of what the spec does not name any more.
pub(crate) fn lookup(desired: &Desired, memory: &Memory) -> Lookup {
    let mut names = desired.target_group_names();
    let recorded = memory.records.keys().filter_map(|logical| match logical {
        LogicalId::NamedLoadBalancer(name) | LogicalId::NamedTargetGroup(name) => {
            Some(name.clone())
        }
        _ => None,
    });
    for name in recorded {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Lookup { names, vpc: None }
}

/// Whether everything was read or written that only a deep look shows.
pub(crate) fn is_deeply_known(
    desired: &Desired,
    wanted: &DesiredLoadBalancer,
    observed: &Observed,
) -> bool {
    let mut all = observed.network.all().iter().filter(|found| found.name == wanted.name);
    let Some(found) = all.next() else { return false };
    let is_known = |port: u16| {
        let Some(listener) = found.listeners.iter().find(|it| it.port == port) else {
            return false;
        };
        let group = observed.target_groups.of_id(&listener.target_group);
        let ours = group.filter(|group| desired.identity.owns(&group.tags));
        ours.is_none_or(|group| group.attributes.is_some())
    };
    found.cross_zone.is_some() && wanted.listeners().iter().all(|wanted| is_known(wanted.port))
}

pub(super) fn plan(input: &Input<'_>, plan: &mut Plan) {
    let Input { situation, wanted, site, .. } = input;
    let look = Query::NetworkLoadBalancers(lookup(situation.desired, situation.memory));
    let (Some(balancers), Some(_)) =
        (situation.observed.network.get(), situation.observed.target_groups.get())
    else {
        plan.read(look);
        return;
    };
    let Some(found) = balancers.iter().find(|found| found.name == wanted.name) else {
        let may_be_made = input.may_be_made(plan);
        if let Some(site) = site.as_ref().filter(|_| may_be_made) {
            let create = create(input, site);
            situation.create(input.part, create, &situation.observed.network, plan);
            listeners::make_target_groups(input, plan);
        }
        return;
    };
    if !input.is_ours(&found.vpc, &found.tags, &found.arn, plan) {
        return;
    }
    repair(input, found, plan);
    if listeners::plan(input, found, plan) {
        return;
    }
    match found.state {
        BalancerState::Active => {}
        BalancerState::Provisioning => {
            let what = format!("load balancer {} is being provisioned", wanted.name);
            plan.wait(input.part, what, RECHECK, look.clone());
        }
        BalancerState::Failed => {
            let message = format!(
                "AWS could not create load balancer {} and does not try again: delete it, and \
                 set the annotation aws.cluster.x-k8s.io/allow-lb-recreate=true if its name is \
                 published",
                wanted.name
            );
            plan.problem(input.part, Reason::LoadBalancerFailed, message);
        }
    }
    input.await_name(&found.dns_name, look, plan);
}

fn create(input: &Input<'_>, site: &Site) -> Action {
    let Site { vpc, subnets, has_ipv6: dualstack, groups } = site.clone();
    let (name, scheme, tags) = (input.wanted.name.clone(), input.wanted.scheme, input.tags());
    let logical = input.wanted.logical_id();
    Action::ElbV2(ElbV2Action::Create {
        logical,
        vpc,
        name,
        scheme,
        dualstack,
        subnets,
        groups,
        tags,
    })
}

fn repair(input: &Input<'_>, found: &NetworkLoadBalancer, plan: &mut Plan) {
    let wanted = input.wanted;
    let act = |action, plan: &mut Plan| plan.act(input.part, Action::ElbV2(action));
    input.check_scheme(found.scheme, plan);
    input.repair_tags(&found.arn, &found.tags, plan);
    let load_balancer = || found.arn.clone();
    if found.cross_zone.is_some_and(|enabled| enabled != wanted.cross_zone) {
        let enabled = wanted.cross_zone;
        act(ElbV2Action::SetCrossZone { load_balancer: load_balancer(), enabled }, plan);
    }
    let Some(site) = &input.site else { return };
    // One of others that has more stays so.
    if site.has_ipv6 && !found.is_dualstack {
        act(ElbV2Action::MakeDualstack { load_balancer: load_balancer() }, plan);
    }
    if as_set(&found.subnets) != as_set(&site.subnets) {
        let subnets = site.subnets.clone();
        act(ElbV2Action::SetSubnets { load_balancer: load_balancer(), subnets }, plan);
    }
    if !wanted.takes_groups {
        return;
    }
    if found.groups.is_empty() {
        let message = format!(
            "load balancer {} was created without security groups, and AWS cannot add them \
             later: security groups and ingress rules of {} have no effect until it is replaced",
            wanted.name,
            wanted.rank.path()
        );
        plan.problem(input.part, Reason::NoSecurityGroups, message);
    } else if as_set(&found.groups) != as_set(&site.groups) {
        let groups = site.groups.clone();
        act(ElbV2Action::SetGroups { load_balancer: load_balancer(), groups }, plan);
    }
}
