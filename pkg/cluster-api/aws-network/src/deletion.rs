//! The end of a cluster: everything of ours goes, found by its tags and not by any spec
//! (`rule:deletion-follows-tags`). Everything that can be tried is planned at once.

use crate::action::Action;
use crate::observed::Seen;
use crate::plan::{Part, Plan, RECHECK};
use crate::query::{Lookup, Query, Scope};
use crate::resources::InstanceState;

pub(crate) use ending::Ending;
pub use ending::{Removal, ServiceResources};

mod blockers;
mod ending;
mod network;

/// Plans the deletion of a cluster. An empty plan without problems means that everything of ours
/// is gone; [`Plan::others`] is left.
pub(crate) fn plan_removal(ending: &Ending<'_>) -> Plan {
    let mut plan = Plan { reads: missing_reads(ending), ..Plan::default() };
    if !plan.reads.is_empty() {
        return plan;
    }
    blockers::mark(ending, &mut plan);
    if !plan.actions.is_empty() {
        return plan;
    }
    network::plan_load_balancers(ending, &mut plan);
    terminate_bastions(ending, &mut plan);
    network::plan_nat_gateways(ending, &mut plan);
    network::plan_groups(ending, &mut plan);
    network::plan_addresses(ending, &mut plan);
    network::plan_route_tables(ending, &mut plan);
    let frees_addresses = ending.load_balancers_are_gone()
        && ending.bastions_are_gone()
        && ending.nat_gateways_are_gone();
    if frees_addresses {
        network::plan_gateways(ending, &mut plan);
        network::plan_attached_gateways(ending, &mut plan);
        network::plan_subnets(ending, &mut plan);
    }
    network::plan_vpcs(ending, &mut plan);
    blockers::plan(ending, &mut plan);
    plan.others = blockers::seen(ending);
    if plan.is_settled() {
        plan.look_again = sweep(ending);
    }
    plan
}

/// The kinds that were not read, all at once; load balancers once the VPC is known.
fn missing_reads(ending: &Ending<'_>) -> Vec<Query> {
    let observed = ending.observed;
    let mut reads = Vec::new();
    let mut need = |is_missing: bool, query: Query| reads.extend(is_missing.then_some(query));
    let vpc = ending.vpc();
    let is_located = observed.vpcs.get().is_some();
    need(!is_located, Query::TaggedVpcs);
    need(observed.subnets.get().is_none(), Query::Subnets(Scope::Tagged));
    need(observed.internet_gateways.get().is_none(), Query::InternetGateways(Scope::Tagged));
    need(
        observed.egress_only_gateways.get().is_none() && ending.may_have_egress_only_gateways(),
        Query::EgressOnlyGateways(Scope::Tagged),
    );
    need(
        observed.carrier_gateways.get().is_none() && ending.may_have_carrier_gateways(),
        Query::CarrierGateways(Scope::Tagged),
    );
    need(observed.addresses.get().is_none(), Query::Addresses);
    need(observed.nat_gateways.get().is_none(), Query::NatGateways(Scope::Tagged));
    need(observed.route_tables.get().is_none(), Query::RouteTables(Scope::Tagged));
    need(observed.bastions.get().is_none(), Query::Bastions(None));
    let lookup = || Lookup { names: ending.removal.load_balancer_names.clone(), vpc: vpc.clone() };
    if is_located {
        need(
            observed.security_groups.get().is_none(),
            Query::SecurityGroups(ending.groups_scope()),
        );
        need(observed.classic.get().is_none(), Query::ClassicLoadBalancers(lookup()));
        need(observed.network.get().is_none(), Query::NetworkLoadBalancers(lookup()));
    }
    let untagged: Vec<_> = network::without_tags(observed);
    if !untagged.is_empty() {
        reads.push(Query::ClassicTags(untagged));
    }
    reads
}

fn terminate_bastions(ending: &Ending<'_>, plan: &mut Plan) {
    let ours = || ending.ours(&ending.observed.bastions);
    let live: Vec<_> =
        ours().filter(|found| found.is_live()).map(|found| found.id.clone()).collect();
    if !live.is_empty() {
        plan.act(Part::Deletion, Action::TerminateInstances { instances: live });
    }
    if let Some(found) = ours().find(|found| found.state == InstanceState::ShuttingDown) {
        let what = format!("{} is shutting down", found.id);
        plan.wait(Part::Deletion, what, RECHECK, Query::Bastions(None));
    }
}

/// Nothing of ours is seen. It counts when the reads were late enough to show every create there
/// was (`rule:gone-is-seen-late-enough`); otherwise so many seconds are left until such a read.
fn sweep(ending: &Ending<'_>) -> Option<u64> {
    let observed = ending.observed;
    let read_at = [
        observed.vpcs.read_at(),
        observed.subnets.read_at(),
        observed.internet_gateways.read_at(),
        observed.addresses.read_at(),
        observed.nat_gateways.read_at(),
        observed.route_tables.read_at(),
        observed.security_groups.read_at(),
        observed.bastions.read_at(),
        observed.classic.read_at(),
        observed.network.read_at(),
    ];
    let complete_from = ending.memory.reads_are_complete_from();
    let gateways = [&observed.egress_only_gateways, &observed.carrier_gateways];
    let of_gateways = gateways.into_iter().filter(|it| it.get().is_some()).map(Seen::read_at);
    let read_at = read_at.into_iter().chain(of_gateways);
    let is_early = read_at.into_iter().any(|at| at < complete_from);
    is_early.then(|| complete_from.left(ending.now))
}
