//! The VPC: found by its tags or its id, made once, and kept with the attributes that nodes need.

use cidr::IpNet;

use crate::action::Action;
use crate::desired::SECONDARY_CIDRS;
use crate::identity::{Ownership, shows_eks};
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, RECHECK, Reason, Situation};
use crate::query::{Query, Scope};
use crate::resources::{Ipv6Range, SecondaryCidr, Subnet, Vpc};
use crate::tags::IPV6_TAG;

/// The VPC that the cluster lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'a> {
    pub(crate) id: &'a str,
    pub(crate) cidr: IpNet,
    /// The IPv6 CIDR, where the network uses it.
    pub(crate) ipv6: Option<Ipv6Range>,
    /// More CIDRs of IPv4, associated or not yet.
    pub(crate) secondary: &'a [SecondaryCidr],
    /// Whether the VPC and the network in it are ours. Otherwise security groups and the load
    /// balancer are all that we make.
    pub(crate) is_managed: bool,
}

impl Home<'_> {
    /// Everything in the VPC.
    pub(crate) fn scope(&self) -> Scope {
        Scope::Vpc(self.id.to_owned())
    }

    /// Whether subnets with this CIDR can be created: not in one that is still being associated, or that the VPC lacks.
    pub(crate) fn can_hold(&self, cidr: &IpNet) -> bool {
        let mut secondary = self.secondary.iter().filter(|range| range.associated);
        self.cidr.contains(cidr) || secondary.any(|range| range.cidr.contains(cidr))
    }

    /// The IPv6 CIDR, once it can be used.
    pub(crate) fn ipv6_cidr(&self) -> Option<IpNet> {
        match self.ipv6? {
            Ipv6Range::Associated(cidr) => Some(cidr),
            Ipv6Range::Associating => None,
        }
    }
}

/// Plans the VPC. Returns `None` until a usable VPC exists.
pub(crate) fn plan<'a>(situation: &Situation<'a>, plan: &mut Plan) -> Option<Home<'a>> {
    let (vpc, is_managed) = match &situation.desired.vpc_id {
        Some(id) => named(situation, id, plan)?,
        None => (ours(situation, plan)?, true),
    };
    if is_managed {
        check_adoption(situation, vpc, plan)?;
    }
    let ipv6 = if is_managed {
        let ipv6 = ipv6_of_ours(situation, vpc, plan)?;
        keep(situation, vpc, ipv6.is_some(), plan);
        if !has_room(situation, vpc) {
            return None;
        }
        ipv6
    } else {
        ipv6_of_others(situation, vpc, plan)
    };
    let ipv6 = match ipv6 {
        Some(Ipv6Range::Associated(first)) => Some(range_in_use(situation, vpc, first, plan)?),
        associating => associating,
    };
    if ipv6 == Some(Ipv6Range::Associating) {
        let what = format!("{} has no IPv6 CIDR yet", vpc.id);
        plan.wait(Part::Vpc, what, RECHECK, Query::Vpc(vpc.id.clone()));
    }
    plan_secondary_cidrs(situation, vpc, is_managed, plan);
    Some(Home { id: &vpc.id, cidr: vpc.cidr, ipv6, secondary: &vpc.secondary, is_managed })
}

/// Plans the CIDRs that the spec adds. None is taken away: subnets of others may be in it.
fn plan_secondary_cidrs(situation: &Situation<'_>, vpc: &Vpc, is_managed: bool, plan: &mut Plan) {
    let (part, id) = (Part::SecondaryCidrs, &vpc.id);
    for cidr in &situation.desired.secondary_cidrs {
        match vpc.secondary.iter().find(|found| found.cidr == *cidr) {
            Some(found) if found.associated => {}
            Some(found) if found.failed => {
                let message = format!(
                    "AWS could not associate {cidr} with {id}: remove it from {SECONDARY_CIDRS}, or remove the failed \
                     association so that it is tried again"
                );
                plan.problem(part, Reason::Refused, message);
            }
            Some(_) => {
                let what = format!("{cidr} is being associated with {id}");
                plan.wait(part, what, RECHECK, Query::Vpc(id.clone()));
            }
            None if *cidr == vpc.cidr => {}
            None if overlap(cidr, &vpc.cidr) => {
                let message = format!(
                    "{SECONDARY_CIDRS}: {cidr} overlaps with {} of {id}: choose another CIDR",
                    vpc.cidr
                );
                plan.problem(part, Reason::InvalidConfiguration, message);
            }
            None if is_managed => {
                plan.act(part, Action::AssociateCidr { vpc: id.clone(), cidr: *cidr });
            }
            None => {
                let message = format!(
                    "{SECONDARY_CIDRS}: {id} does not have {cidr}: associate it with the VPC, or \
                     remove it from the spec"
                );
                plan.problem(part, Reason::NotFound, message);
            }
        }
    }
}

/// Whether two CIDRs have an address in common.
pub(crate) fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// The IPv6 CIDR that a network of ours uses. It stays as it was made, whatever the spec says later: without its rules
/// and routes Nodes would lose each other. The outer `None`: it is not known now, so nothing may be changed.
#[allow(clippy::option_option, reason = "unknown is not none")]
fn ipv6_of_ours(
    situation: &Situation<'_>,
    vpc: &Vpc,
    plan: &mut Plan,
) -> Option<Option<Ipv6Range>> {
    let (id, is_wanted) = (&vpc.id, situation.desired.ipv6);
    // What upstream's provider made has no tag yet.
    let (identity, shows_one) = (situation.identity(), vpc.ipv6.is_some());
    let is_adopted = is_wanted && shows_one && (identity.adopt || !identity.marks(&vpc.tags));
    let is_recorded = situation.memory.id(&LogicalId::EgressOnlyGateway).is_some();
    let has_always = vpc.tags.contains_key(IPV6_TAG) || is_recorded || is_adopted;
    let what = match (has_always, is_wanted) {
        (true, _) if vpc.ipv6.is_none() => {
            let what = format!(
                "AWS shows no IPv6 CIDR of {id}, which was created with one; if it was taken away, associate another one"
            );
            plan.wait(Part::Vpc, what, RECHECK, Query::Vpc(id.clone()));
            return None;
        }
        (true, true) => return Some(vpc.ipv6),
        (false, false) => return Some(None),
        (true, false) => "was created with IPv6, which cannot be taken away: set the field to {}",
        (false, true) => "was created without IPv6, which cannot be added: remove the field",
    };
    let message = format!("spec.network.vpc.ipv6: {id} {what}");
    plan.problem(Part::Vpc, Reason::Immutable, message);
    Some(vpc.ipv6.filter(|_| has_always))
}

/// The IPv6 CIDR of a VPC of a user, where the spec uses it.
fn ipv6_of_others(situation: &Situation<'_>, vpc: &Vpc, plan: &mut Plan) -> Option<Ipv6Range> {
    if situation.desired.ipv6 && vpc.ipv6.is_none() {
        let message = format!(
            "spec.network.vpc.ipv6: {} has no IPv6 CIDR: associate one with it, or remove the field",
            vpc.id
        );
        plan.problem(Part::Vpc, Reason::InvalidConfiguration, message);
    }
    vpc.ipv6.filter(|_| situation.desired.ipv6)
}

/// Of several IPv6 CIDRs the one in which the subnets of the cluster lie, else the first one.
fn range_in_use(
    situation: &Situation<'_>,
    vpc: &Vpc,
    first: IpNet,
    plan: &mut Plan,
) -> Option<Ipv6Range> {
    if vpc.more_ipv6.is_empty() {
        return Some(Ipv6Range::Associated(first));
    }
    let Some(subnets) = situation.observed.subnets.get() else {
        plan.read(Query::Subnets(Scope::Vpc(vpc.id.clone())));
        return None;
    };
    let is_of_cluster = |subnet: &Subnet| {
        let mut named = situation.desired.subnets.iter().filter_map(|it| it.id.as_ref());
        situation.identity().owns(&subnet.tags) || named.any(|id| *id == subnet.id)
    };
    let has_one_in = |range: &IpNet| {
        let mut blocks = subnets.iter().filter(|it| is_of_cluster(it)).filter_map(|it| it.ipv6);
        blocks.any(|block| range.contains(&block))
    };
    let used = vpc.more_ipv6.iter().copied().find(|range| has_one_in(range));
    Some(Ipv6Range::Associated(used.filter(|_| !has_one_in(&first)).unwrap_or(first)))
}

/// A network that EKS uses is not adopted: its control plane and node groups live in it, and
/// another controller keeps it.
fn check_adoption(situation: &Situation<'_>, vpc: &Vpc, plan: &mut Plan) -> Option<()> {
    if situation.identity().marks(&vpc.tags) || is_bare(situation, vpc) {
        return Some(());
    }
    let Some(groups) = situation.observed.security_groups.get() else {
        plan.read(Query::SecurityGroups(Scope::Vpc(vpc.id.clone())));
        return None;
    };
    if groups.iter().any(|group| group.vpc == vpc.id && shows_eks(&group.tags)) {
        let message = format!("{} belongs to an EKS cluster, which cannot be adopted", vpc.id);
        plan.problem(Part::Vpc, Reason::OwnershipConflict, message);
        return None;
    }
    Some(())
}

/// A VPC that the spec names is used as it is, and never replaced by another.
fn named<'a>(situation: &Situation<'a>, id: &str, plan: &mut Plan) -> Option<(&'a Vpc, bool)> {
    let observed = situation.observed;
    let recorded = situation.memory.id(&LogicalId::Vpc).filter(|recorded| *recorded != id);
    if let Some(recorded) = recorded {
        let message = format!(
            "spec.network.vpc.id: the cluster was created in {recorded} and cannot move to {id}; \
             set it to {recorded} or remove it"
        );
        plan.problem(Part::Vpc, Reason::Immutable, message);
        return None;
    }
    if !observed.asked_vpcs.iter().any(|asked| asked == id) {
        plan.read(Query::Vpc(id.to_owned()));
        return None;
    }
    let Some(vpc) = observed.vpcs.of_id(id) else {
        let message = format!(
            "{id} of spec.network.vpc.id does not exist, and no other VPC is created instead"
        );
        plan.problem(Part::Vpc, Reason::NotFound, message);
        return None;
    };
    match situation.ownership(&vpc.tags, &vpc.id, &LogicalId::Vpc) {
        Ownership::Ours => Some((vpc, true)),
        Ownership::Upstreams => {
            refuse_to_double(&vpc.id, plan);
            None
        }
        // Of a VPC that we made somebody has removed the tags.
        Ownership::Users if is_bare(situation, vpc) => Some((vpc, true)),
        Ownership::Anothers | Ownership::Users => Some((vpc, false)),
    }
}

/// Whether we made a VPC and its tags are lost.
fn is_bare(situation: &Situation<'_>, vpc: &Vpc) -> bool {
    situation.memory.id(&LogicalId::Vpc) == Some(&vpc.id)
        && !vpc.tags.contains_key(&situation.identity().owner_tag)
}

fn ours<'a>(situation: &Situation<'a>, plan: &mut Plan) -> Option<&'a Vpc> {
    let identity = situation.identity();
    let Some(found) = situation.observed.vpcs.get() else {
        plan.read(Query::TaggedVpcs);
        return None;
    };
    let ours: Vec<_> =
        found.iter().filter(|vpc| situation.is_ours(&vpc.tags, &vpc.id, &LogicalId::Vpc)).collect();
    match ours.as_slice() {
        [] => {
            let upstreams = found
                .iter()
                .find(|vpc| identity.ownership(&vpc.tags, false) == Ownership::Upstreams);
            match upstreams {
                Some(vpc) => refuse_to_double(&vpc.id, plan),
                None => return missing(situation, plan),
            }
            None
        }
        [vpc] => Some(vpc),
        many => one_of(situation, many, plan),
    }
}

/// Upstream's controller made it, or somebody took our tag off: a second VPC would be worse than
/// none.
fn refuse_to_double(vpc: &str, plan: &mut Plan) {
    let message = format!(
        "{vpc} has the tag of this cluster but no owner-id: set the annotation \
         aws.cluster.x-k8s.io/adopt=true to adopt it, or remove the tag"
    );
    plan.problem(Part::Vpc, Reason::OwnershipConflict, message);
}

/// Handles a VPC without our tags: a recorded VPC may have lost them; otherwise a VPC is created.
fn missing<'a>(situation: &Situation<'a>, plan: &mut Plan) -> Option<&'a Vpc> {
    let (identity, observed) = (situation.identity(), situation.observed);
    if let Some(id) = situation.memory.id(&LogicalId::Vpc) {
        if !observed.asked_vpcs.iter().any(|asked| asked == id) {
            plan.read(Query::Vpc(id.to_owned()));
            return None;
        }
        match observed.vpcs.of_id(id).map(|vpc| (vpc, vpc.tags.get(&identity.owner_tag))) {
            Some((vpc, None)) => return Some(vpc),
            Some((vpc, Some(owner))) if *owner == identity.owner_id => return Some(vpc),
            _ => {}
        }
    }
    let desired = situation.desired;
    let (cidr, ipv6) = (desired.vpc_cidr, desired.ipv6);
    let create = Action::CreateVpc { cidr, ipv6, tags: desired.vpc_tags(ipv6) };
    situation.create(Part::Vpc, create, &situation.observed.vpcs, plan);
    None
}

/// Chooses the VPC in use among several; AWS refuses to delete any that is in use
/// (cluster-api-provider-aws#2563, #2658).
fn one_of<'a>(situation: &Situation<'a>, all: &[&'a Vpc], plan: &mut Plan) -> Option<&'a Vpc> {
    let observed = situation.observed;
    let (Some(subnets), Some(groups), Some(gateways)) =
        (observed.subnets.get(), observed.security_groups.get(), observed.internet_gateways.get())
    else {
        plan.read(Query::Subnets(Scope::Tagged));
        plan.read(Query::SecurityGroups(Scope::Tagged));
        plan.read(Query::InternetGateways(Scope::Tagged));
        return None;
    };
    let is_used = |vpc: &&&Vpc| {
        subnets.iter().any(|subnet| subnet.vpc == vpc.id)
            || groups.iter().any(|group| group.vpc == vpc.id)
            || gateways.iter().any(|gateway| gateway.attached_to.as_ref() == Some(&vpc.id))
    };
    let used: Vec<_> = all.iter().filter(is_used).collect();
    let chosen = match used.as_slice() {
        [] => all
            .iter()
            .find(|vpc| situation.memory.id(&LogicalId::Vpc) == Some(&vpc.id))
            .or_else(|| all.iter().min_by_key(|vpc| &vpc.id))?,
        [used] => used,
        _ => {
            let ids: Vec<_> = used.iter().map(|vpc| vpc.id.as_str()).collect();
            let message = format!(
                "{} have the tag of this cluster and are all in use: delete all VPCs except one, \
                 or remove their tags",
                ids.join(", ")
            );
            plan.problem(Part::Vpc, Reason::DuplicateVpc, message);
            return None;
        }
    };
    for vpc in all.iter().filter(|vpc| vpc.id != chosen.id) {
        plan.act(Part::Vpc, Action::DeleteVpc { vpc: vpc.id.clone() });
    }
    Some(chosen)
}

fn keep(situation: &Situation<'_>, vpc: &Vpc, has_ipv6: bool, plan: &mut Plan) {
    let desired = situation.desired;
    plan.tags.compare(&vpc.id, &vpc.tags, &desired.vpc_tags(has_ipv6), &desired.retired_tags);
    let is_reported = desired.names_vpc_cidr || !has_room(situation, vpc);
    if is_reported && vpc.cidr != desired.vpc_cidr {
        let message = format!(
            "{} has {}, not {}: the CIDR of a VPC is fixed",
            vpc.id, vpc.cidr, desired.vpc_cidr
        );
        plan.problem(Part::Vpc, Reason::Immutable, message);
    }
    if situation.deep && (vpc.dns_support.is_none() || vpc.dns_hostnames.is_none()) {
        plan.read(Query::VpcAttributes(vpc.id.clone()));
    }
    if vpc.dns_support == Some(false) {
        plan.act(Part::Vpc, Action::EnableDnsSupport { vpc: vpc.id.clone() });
    } else if vpc.dns_hostnames == Some(false) {
        // AWS refuses names for instances while names are not resolved.
        plan.act(Part::Vpc, Action::EnableDnsHostnames { vpc: vpc.id.clone() });
    }
}

/// Whether the VPC can have the subnets, in a CIDR that it has or gets. Default ones are cut from the CIDR of the spec:
/// with another one they are none of the VPC, and what was made would look like surplus.
fn has_room(situation: &Situation<'_>, vpc: &Vpc) -> bool {
    let desired = situation.desired;
    let mut cidrs = desired.subnets.iter().filter_map(|subnet| subnet.cidr);
    let is_inside = |cidr: &IpNet| {
        vpc.cidr.contains(cidr) || desired.secondary_cidrs.iter().any(|it| it.contains(cidr))
    };
    let mut are_inside = || cidrs.all(|cidr| is_inside(&cidr));
    vpc.cidr == desired.vpc_cidr || !desired.has_default_subnets && are_inside()
}
