//! The last look at a plan before it is carried out: a write that names a resource which was not
//! recognised as ours is not sent (`rule:no-write-names-what-is-not-ours`). The parts of a plan
//! decide the same on their own; here is the one place that all writes pass.

use crate::action::{Action, ElbAction, ElbV2Action};
use crate::identity::{Identity, Ownership, Tags};
use crate::memory::Memory;
use crate::observed::Observed;
use crate::plan::{Plan, Problem, Reason};
use crate::resources::AwsResource as _;

/// Takes writes out of a plan that name what is not ours, and reports them as problems.
pub(crate) fn hold_back(
    identity: &Identity,
    observed: &Observed,
    memory: &Memory,
    plan: &mut Plan,
) {
    let mut held = Vec::new();
    plan.actions.retain(|planned| {
        let changed = planned.action.changes();
        let foreign = changed.iter().find(|id| !is_ours(identity, observed, memory, id));
        let Some(id) = foreign else { return true };
        let message = format!(
            "cannot send {}: {id} is not known as a resource of this cluster; this is a defect \
             of this program, please report it",
            planned.action.operation()
        );
        held.push(Problem { part: planned.part, reason: Reason::OwnershipConflict, message });
        false
    });
    plan.problems.append(&mut held);
}

/// Whether a resource is ours by its tags. One that we recorded may have lost them, or may not be
/// visible yet.
fn is_ours(identity: &Identity, observed: &Observed, memory: &Memory, id: &str) -> bool {
    let recorded = memory.has_recorded(id);
    let Some(tags) = tags_of(observed, id) else { return recorded };
    let has_no_other_owner =
        || tags.get(&identity.owner_tag).is_none_or(|owner| *owner == identity.owner_id);
    let group = observed.security_groups.of_id(id);
    identity.ownership(tags, recorded) == Ownership::Ours
        || (recorded && has_no_other_owner())
        || identity.is_service_balancer(tags)
        || group.is_some_and(|group| identity.is_service_group(tags, &group.name))
}

/// The tags by which a resource is judged: an association has those of its table, a listener those
/// of its target group.
fn tags_of<'a>(seen: &'a Observed, id: &str) -> Option<&'a Tags> {
    macro_rules! find {
        ($($kind:ident)*) => {$(
            if let Some(found) = seen.$kind.of_id(id) {
                return found.known_tags();
            }
        )*};
    }
    find!(vpcs subnets internet_gateways attached_gateways egress_only_gateways carrier_gateways
        addresses nat_gateways route_tables security_groups bastions network target_groups classic);
    let mut tables = seen.route_tables.all().iter();
    let used = tables.find(|table| table.associations.iter().any(|found| found.id == id));
    used.map(|table| &table.tags).or_else(|| {
        let mut listeners = seen.network.all().iter().flat_map(|found| &found.listeners);
        let listener = listeners.find(|listener| listener.arn == id)?;
        seen.target_groups.of_id(&listener.target_group)?.known_tags()
    })
}

impl Action {
    /// The existing resources that the write changes or deletes: ids, ARNs, names of classic load
    /// balancers. What a create is only placed in or leads to, such as the VPC of a security group,
    /// may be the user's and is not among them.
    pub fn changes(&self) -> Vec<&str> {
        match self {
            Self::CreateVpc { .. }
            | Self::CreateInternetGateway { .. }
            | Self::AllocateAddress { .. }
            | Self::CreateSecurityGroup { .. }
            | Self::RunBastion { .. }
            | Self::Elb(ElbAction::Create { .. })
            | Self::ElbV2(ElbV2Action::Create { .. } | ElbV2Action::CreateTargetGroup { .. })
            // A free interface in a VPC of ours has no tags.
            | Self::DeleteNetworkInterface { .. } => Vec::new(),
            Self::CreateSubnet { vpc, .. }
            | Self::CreateEgressOnlyGateway { vpc, .. }
            | Self::CreateCarrierGateway { vpc, .. }
            | Self::CreateRegionalNatGateway { vpc, .. }
            | Self::CreateRouteTable { vpc, .. } => vec![vpc],
            Self::AttachInternetGateway { gateway, vpc } => vec![gateway, vpc],
            Self::CreateNatGateway { allocation, .. } => vec![allocation],
            Self::ReplaceAssociation { association, table } => vec![association, table],
            Self::TerminateInstances { instances: all }
            | Self::CreateTags { resources: all, .. }
            | Self::DeleteTags { resources: all, .. }
            | Self::ElbV2(
                ElbV2Action::AddTags { arns: all, .. } | ElbV2Action::RemoveTags { arns: all, .. },
            ) => all.iter().map(String::as_str).collect(),
            Self::ElbV2(ElbV2Action::CreateListener { load_balancer, target_group, .. }) => {
                vec![load_balancer, target_group]
            }
            other => vec![other.subject()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LogicalId;
    use crate::memory::Record;
    use crate::memory::Timestamp;
    use crate::plan::Part;
    use crate::query::{Query, Reply};
    use crate::resources::Vpc;

    /// rule:no-write-names-what-is-not-ours
    #[test]
    fn a_write_that_names_what_was_not_recognised_as_ours_is_a_problem_and_not_sent() {
        let identity = Identity {
            cluster: "c".to_owned(),
            owner_id: "mine".to_owned(),
            owner_tag: "owner".to_owned(),
            adopt: false,
        };
        let upstreams = Tags::from([(identity.cluster_tag(), "owned".to_owned())]);
        let with = |owner: &str| {
            let mut tags = upstreams.clone();
            tags.insert("owner".to_owned(), owner.to_owned());
            tags
        };
        let all = [
            ("vpc-ours", with("mine")),
            ("vpc-theirs", with("theirs")),
            ("vpc-upstreams", upstreams.clone()),
            ("vpc-users", Tags::new()),
            ("vpc-bare", Tags::new()),
        ];
        let vpc = |(id, tags): (&str, Tags)| Vpc {
            id: id.to_owned(),
            cidr: "10.0.0.0/16".parse().unwrap(),
            secondary: Vec::new(),
            ipv6: None,
            more_ipv6: Vec::new(),
            dns_support: None,
            dns_hostnames: None,
            tags,
        };
        let mut observed = Observed::default();
        let reply = Reply::Vpcs(all.map(vpc).to_vec());
        observed.take_in(&Query::TaggedVpcs, reply, Timestamp::default());
        let mut memory = Memory::default();
        let record =
            Record { since: Timestamp::default(), id: Some("vpc-bare".to_owned()), attempt: 0 };
        memory.records.insert(LogicalId::Vpc, record);
        let is_sent = |id: &str| {
            let mut plan = Plan::default();
            plan.act(Part::Vpc, Action::DeleteVpc { vpc: id.to_owned() });
            hold_back(&identity, &observed, &memory, &mut plan);
            assert_eq!(plan.problems.len(), 1 - plan.actions.len());
            !plan.actions.is_empty()
        };
        let sent: Vec<_> = all_ids().into_iter().filter(|id| is_sent(id)).collect();
        assert_eq!(sent, ["vpc-ours", "vpc-bare"]);
    }

    fn all_ids() -> [&'static str; 6] {
        ["vpc-ours", "vpc-theirs", "vpc-upstreams", "vpc-users", "vpc-bare", "vpc-unseen"]
    }
}
