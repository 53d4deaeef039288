//! Security groups, found by name, and their rules.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cidr::IpNet;

use crate::action::Action;
use crate::addresses;
use crate::desired::{API, NLB_TRAFFIC, OVERRIDES, RuleSource, RuleTemplate, VPC_ID};
use crate::identity::Tags;
use crate::load_balancers::TargetGroup;
use crate::memory::LogicalId;
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::Query;
use crate::resources::SecurityGroup;
use crate::rule::{Role, Rule, Source, diff};
use crate::tags::security_group_name;
use crate::vpc::Home;

/// How upstream describes the rules for clients of the API server that come by IPv6.
const API_IPV6: &str = "Kubernetes API IPv6";

/// All addresses of each family.
const EVERYBODY: [IpNet; 2] = [
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
];

/// The ids of the groups that exist, by role.
pub(crate) type Groups = BTreeMap<Role, String>;

/// Plans the groups and, once all of them exist, their rules.
pub(crate) fn plan(situation: &Situation<'_>, home: &Home<'_>, plan: &mut Plan) -> Groups {
    let desired = &situation.desired.groups;
    if home.is_managed && !desired.overrides.is_empty() {
        let message = format!(
            "{OVERRIDES}: requires an unmanaged {VPC_ID}, but this program created {}",
            home.id
        );
        plan.problem(Part::SecurityGroups, Reason::InvalidConfiguration, message);
        return Groups::new();
    }
    let look = Query::SecurityGroups(home.scope());
    let Some(found) = situation.observed.security_groups.get() else {
        plan.read(look);
        return Groups::new();
    };
    let mut groups = desired.overrides.clone();
    let roles = wanted(situation, home);
    for role in roles.iter().copied().filter(|role| !desired.overrides.contains_key(role)) {
        let name = name_of(situation, role);
        match found.iter().find(|group| group.vpc == home.id && group.name == name) {
            Some(group) if is_ours(situation, group, role) => {
                keep(situation, group, role, plan);
                groups.insert(role, group.id.clone());
            }
            Some(group) => {
                let owner = group.tags.get(&situation.identity().owner_tag);
                let owner =
                    owner.map_or_else(|| "no owner-id".to_owned(), |id| format!("owner-id {id}"));
                let message = format!(
                    "{} has the name {name} and {owner}: it belongs to another cluster",
                    group.id
                );
                plan.problem(Part::SecurityGroups, Reason::OwnershipConflict, message);
            }
            None => make(situation, home, role, plan),
        }
    }
    if roles.iter().all(|role| groups.contains_key(role)) {
        for group in found.iter().filter(|group| group.vpc == home.id) {
            let role = roles.iter().find(|role| groups.get(role) == Some(&group.id));
            if let Some(role) = role.filter(|role| !desired.overrides.contains_key(role)) {
                rules(situation, home, &groups, *role, group, plan);
            }
        }
    }
    groups
}

/// The roles that have a group. The bastion is in VPCs of ours only.
fn wanted(situation: &Situation<'_>, home: &Home<'_>) -> Vec<Role> {
    let roles = situation.desired.groups.rules.keys().copied();
    roles.filter(|role| home.is_managed || *role != Role::Bastion).collect()
}

fn name_of(situation: &Situation<'_>, role: Role) -> String {
    security_group_name(&situation.identity().cluster, role.as_str())
}

fn is_ours(situation: &Situation<'_>, group: &SecurityGroup, role: Role) -> bool {
    let logical = LogicalId::SecurityGroup(role.as_str().to_owned());
    situation.is_ours(&group.tags, &group.id, &logical)
}

fn make(situation: &Situation<'_>, home: &Home<'_>, role: Role, plan: &mut Plan) {
    let tags: Tags = situation.desired.security_group_tags(role);
    let create = Action::CreateSecurityGroup {
        vpc: home.id.to_owned(),
        role: role.as_str().to_owned(),
        name: name_of(situation, role),
        description: format!("Kubernetes cluster {}: {role}", situation.identity().cluster),
        tags,
    };
    situation.create(Part::SecurityGroups, create, &situation.observed.security_groups, plan);
}

fn keep(situation: &Situation<'_>, group: &SecurityGroup, role: Role, plan: &mut Plan) {
    let desired = situation.desired;
    let wanted = desired.security_group_tags(role);
    plan.tags.compare(&group.id, &group.tags, &wanted, &desired.retired_tags);
}

/// Plans the rules of a group. What is allowed is added before anything is taken away.
fn rules(
    situation: &Situation<'_>,
    home: &Home<'_>,
    groups: &Groups,
    role: Role,
    group: &SecurityGroup,
    plan: &mut Plan,
) {
    let templates =
        situation.desired.groups.rules.get(&role).map(Vec::as_slice).unwrap_or_default();
    let has_balancer = situation.desired.load_balancers().next().is_some();
    if role == Role::ApiServerLb && !has_balancer && !group.rules.is_empty() {
        // A load balancer that the spec has disabled since may still have this group.
        return;
    }
    let Some(wanted) = resolve(situation, home, groups, templates, plan) else { return };
    let diff = diff(&wanted, &group.rules);
    let id = || group.id.clone();
    if diff.missing.is_empty() {
        let mut rules = diff.surplus;
        rules.retain(|rule| !is_of_clients(templates, rule));
        if situation.desired.groups.keep_foreign_rules {
            rules.clear();
        } else if role == Role::ApiServerLb {
            // Upstream allows the addresses of the NAT gateways where everybody is allowed, too.
            let is_address = |rule: &Rule| matches!(rule.key.source, Source::Cidr(it) if it.prefix_len() == it.max_prefix_len());
            let is_covered = |rule: &Rule| wanted.iter().any(|wanted| wanted.key.covers(&rule.key));
            rules.retain(|rule| !is_address(rule) || !is_covered(rule));
        } else if role == Role::Lb {
            rules.retain(|rule| is_of_balancer(situation, home, rule));
        }
        if !rules.is_empty() {
            plan.act(Part::SecurityGroups, Action::RevokeIngress { group: id(), rules });
        }
    } else {
        // AWS refuses a call as a whole, and a group that the user has named may not exist.
        let is_of_cluster = |rule: &Rule| match &rule.key.source {
            Source::Group(id) => groups.values().any(|own| own == id),
            Source::Cidr(_) | Source::PrefixList(_) => true,
        };
        let (certain, named): (Vec<_>, Vec<_>) = diff.missing.into_iter().partition(is_of_cluster);
        for rules in [certain, named].into_iter().filter(|rules| !rules.is_empty()) {
            plan.act(Part::SecurityGroups, Action::AuthorizeIngress { group: id(), rules });
        }
    }
    if !diff.described_otherwise.is_empty() {
        let rules = diff.described_otherwise;
        plan.act(Part::SecurityGroups, Action::DescribeIngress { group: id(), rules });
    }
}

/// Whether a rule admits a CIDR that the spec names. One of IPv6 is not made for a network that does not use IPv6, and
/// stays where it exists: the VPC of a user may have it.
fn is_of_clients(templates: &[RuleTemplate], rule: &Rule) -> bool {
    let Source::Cidr(cidr) = rule.key.source else { return false };
    let mut templates = templates.iter().filter(|template| {
        Rule::new(&template.protocol, template.ports, rule.key.source.clone(), "").key == rule.key
    });
    templates.any(|template| template.sources.contains(&RuleSource::Clients(cidr)))
}

/// Whether a rule among those of the cloud controller was made for a network load balancer, by its source and
/// description, and is not used any more.
fn is_of_balancer(situation: &Situation<'_>, home: &Home<'_>, rule: &Rule) -> bool {
    let is_source_of_ours = match &rule.key.source {
        Source::Cidr(cidr) => {
            let is_secondary = || home.secondary.iter().any(|range| range.cidr == *cidr);
            let is_of_vpc = *cidr == home.cidr || Some(*cidr) == home.ipv6_cidr() || is_secondary();
            cidr.prefix_len() == 0 || is_of_vpc
        }
        Source::Group(_) | Source::PrefixList(_) => false,
    };
    // What was not read yet may be so.
    let uses_addresses = |group: &TargetGroup| {
        let shows = group.attributes.as_ref().is_none_or(|found| found.preserve_client_ip);
        shows && situation.owns(&group.tags, &group.arn)
    };
    let groups = situation.observed.target_groups.get();
    let uses_addresses_of_clients = groups.is_none_or(|groups| groups.iter().any(uses_addresses));
    let is_used = uses_addresses_of_clients
        && !situation.desired.load_balancers().any(|wanted| wanted.preserve_client_ip);
    rule.description.starts_with(NLB_TRAFFIC) && is_source_of_ours && !is_used
}

/// The rules with the ids and addresses that they mean. None as long as those are not known.
fn resolve(
    situation: &Situation<'_>,
    home: &Home<'_>,
    groups: &Groups,
    templates: &[RuleTemplate],
    plan: &mut Plan,
) -> Option<Vec<Rule>> {
    let mut rules = Vec::new();
    for template in templates {
        for source in &template.sources {
            let sources = match source {
                RuleSource::Cidr(cidr) => vec![Source::Cidr(*cidr)],
                RuleSource::Clients(cidr) => {
                    let has_family = matches!(cidr, IpNet::V4(_)) || home.ipv6.is_some();
                    has_family.then_some(Source::Cidr(*cidr)).into_iter().collect()
                }
                RuleSource::Everybody => {
                    let families =
                        if home.ipv6.is_some() { &EVERYBODY[..] } else { &EVERYBODY[..1] };
                    families.iter().copied().map(Source::Cidr).collect()
                }
                RuleSource::Vpc | RuleSource::VpcIpv6 => of_vpc(situation, home, source)?,
                RuleSource::Group(id) => vec![Source::Group(id.clone())],
                RuleSource::Role(role) => {
                    groups.get(role).cloned().map(Source::Group).into_iter().collect()
                }
                RuleSource::NatAddresses => nat_addresses(situation, home, plan)?,
            };
            rules.extend(sources.into_iter().map(|source| {
                let is_ipv6 = matches!(source, Source::Cidr(IpNet::V6(_)));
                let is_of_clients = is_ipv6 && template.description == API;
                let text = if is_of_clients { API_IPV6 } else { &template.description };
                Rule::new(&template.protocol, template.ports, source, text)
            }));
        }
    }
    Some(rules)
}

/// The addresses of the VPC. None while AWS chooses those of IPv6.
fn of_vpc(situation: &Situation<'_>, home: &Home<'_>, source: &RuleSource) -> Option<Vec<Source>> {
    let (wanted, has) = (&situation.desired.secondary_cidrs, home.secondary);
    let mut all = vec![home.cidr];
    if home.is_managed {
        // Subnets may be in one that the spec does not name any more.
        all.extend(has.iter().filter(|it| it.associated).map(|it| it.cidr));
        all.extend(wanted.iter().filter(|cidr| has.iter().all(|it| it.cidr != **cidr)));
    } else {
        all.extend(has.iter().map(|it| it.cidr).filter(|cidr| wanted.contains(cidr)));
    }
    all.retain(|_| *source == RuleSource::Vpc);
    if home.ipv6.is_some() {
        all.push(home.ipv6_cidr()?);
    }
    Some(all.into_iter().map(Source::Cidr).collect())
}

fn nat_addresses(
    situation: &Situation<'_>,
    home: &Home<'_>,
    plan: &mut Plan,
) -> Option<Vec<Source>> {
    if !home.is_managed {
        return Some(Vec::new());
    }
    let observed = situation.observed;
    if observed.addresses.get().is_none() {
        plan.read(Query::Addresses);
    }
    if observed.nat_gateways.get().is_none() {
        plan.read(Query::NatGateways(home.scope()));
    }
    observed.addresses.get().and(observed.nat_gateways.get())?;
    let all = addresses::public_ips(observed, |tags, id| situation.owns(tags, id));
    Some(all.into_iter().map(|ip| Source::Cidr(IpAddr::V4(ip).into())).collect())
}

/// Deletes the group of a bastion that is not wanted any more, once nothing uses it.
pub(crate) fn discard_bastion_group(situation: &Situation<'_>, home: &Home<'_>, plan: &mut Plan) {
    let observed = situation.observed;
    if situation.desired.bastion.is_some() || !home.is_managed || plan.is_busy(Part::SecurityGroups)
    {
        return;
    }
    let name = name_of(situation, Role::Bastion);
    let mut groups = observed.security_groups.all().iter();
    let Some(group) = groups.find(|group| {
        group.vpc == home.id && group.name == name && is_ours(situation, group, Role::Bastion)
    }) else {
        return;
    };
    match observed.bastions.get() {
        None => plan.read(Query::bastion(situation.memory)),
        Some(_) if plan.is_busy(Part::Bastion) => {}
        Some(_) => {
            let delete = Action::DeleteSecurityGroup { group: group.id.clone() };
            plan.act(Part::SecurityGroups, delete);
        }
    }
}
