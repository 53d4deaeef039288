//! The security groups of a cluster and their rules, which are upstream's.

use std::collections::BTreeMap;

use super::checks::read_cidr;
use crate::desired::{
    API, DesiredGroups, INSTANCE_PORT, NLB_TRAFFIC, OVERRIDES, Rank, RuleSource, RuleTemplate,
    VPC_ID,
};
use crate::load_balancers::Scheme;
use crate::rule::Role;
use crate::spec::{CniSpec, IngressRuleSpec, LoadBalancerKind, LoadBalancerSpec, Spec, SpecError};

pub(super) fn read(spec: &Spec, errors: &mut Vec<SpecError>) -> DesiredGroups {
    if !spec.group_overrides.is_empty() && spec.vpc_id.is_none() {
        errors.push(SpecError::new(OVERRIDES, format!("requires an unmanaged {VPC_ID}")));
    }
    let rules = Role::ALL
        .into_iter()
        .filter(|role| spec.bastion.is_some() || *role != Role::Bastion)
        .map(|role| (role, rules_of(role, spec, errors)))
        .collect::<BTreeMap<_, _>>();
    DesiredGroups {
        rules,
        overrides: spec.group_overrides.clone(),
        keep_foreign_rules: spec.keep_foreign_rules,
    }
}

fn rules_of(role: Role, spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    match role {
        Role::Bastion => bastion(spec, errors),
        Role::ControlPlane => control_plane(spec, errors),
        Role::Node => node(spec, errors),
        Role::ApiServerLb => api_server_load_balancer(spec, errors),
        Role::Lb => network_load_balancer(spec),
    }
}

fn tcp(description: &str, first: i32, last: i32, sources: Vec<RuleSource>) -> RuleTemplate {
    let (description, protocol) = (description.to_owned(), "tcp".to_owned());
    RuleTemplate { description, protocol, ports: (first, last), sources }
}

fn cidrs(path: &str, texts: &[String], errors: &mut Vec<SpecError>) -> Vec<RuleSource> {
    if texts.is_empty() {
        return vec![RuleSource::Everybody];
    }
    texts.iter().filter_map(|text| read_cidr(path, text, errors)).map(RuleSource::Clients).collect()
}

fn bastion(spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    match &spec.bastion {
        Some(bastion) if !bastion.disable_ingress_rules => {
            let path = "spec.bastion.allowedCIDRBlocks";
            vec![tcp("SSH", 22, 22, cidrs(path, &bastion.allowed_cidr_blocks, errors))]
        }
        _ => Vec::new(),
    }
}

fn ssh(spec: &Spec) -> Option<RuleTemplate> {
    spec.bastion.as_ref().map(|_| tcp("SSH", 22, 22, vec![RuleSource::Role(Role::Bastion)]))
}

fn machines() -> Vec<RuleSource> {
    vec![RuleSource::Role(Role::ControlPlane), RuleSource::Role(Role::Node)]
}

fn control_plane(spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    let api = i32::from(INSTANCE_PORT);
    let own = || vec![RuleSource::Role(Role::ControlPlane)];
    let mut clients = vec![RuleSource::Role(Role::ApiServerLb)];
    clients.extend(machines());
    let mut rules: Vec<_> = ssh(spec).into_iter().collect();
    rules.push(tcp(API, api, api, clients));
    rules.push(tcp("etcd", 2379, 2379, own()));
    rules.push(tcp("etcd peer", 2380, 2380, own()));
    rules.extend(cni(spec, errors));
    let path = "spec.network.additionalControlPlaneIngressRules";
    rules.extend(given(path, &spec.control_plane_rules, errors));
    rules
}

fn node(spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    let path = "spec.network.nodePortIngressRuleCidrBlocks";
    let mut rules: Vec<_> = ssh(spec).into_iter().collect();
    let everybody = cidrs(path, &spec.node_port_cidr_blocks, errors);
    rules.push(tcp("Node Port Services", 30000, 32767, everybody));
    rules.push(tcp("Kubelet API", 10250, 10250, machines()));
    rules.extend(cni(spec, errors));
    rules.extend(given("spec.network.additionalNodeIngressRules", &spec.node_rules, errors));
    rules
}

fn cni(spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    let between = |description: &str, protocol: &str, ports| RuleTemplate {
        description: description.to_owned(),
        protocol: protocol.to_owned(),
        ports,
        sources: machines(),
    };
    match &spec.cni {
        CniSpec::Calico => vec![
            between("bgp (calico)", "tcp", (179, 179)),
            between("IP-in-IP (calico)", "4", (-1, -1)),
        ],
        CniSpec::AmazonVpc => vec![between("pods (amazon-vpc)", "-1", (-1, -1))],
        CniSpec::Rules(rules) => {
            check_ports("spec.network.cni.cniIngressRules", rules, errors);
            let rule = |rule: &IngressRuleSpec| {
                between(&rule.description, &rule.protocol, (rule.from_port, rule.to_port))
            };
            rules.iter().map(rule).collect()
        }
    }
}

fn balancers(spec: &Spec) -> impl Iterator<Item = (Rank, &LoadBalancerSpec)> {
    let primary = spec.load_balancer.iter().map(|it| (Rank::Primary, it));
    primary.chain(spec.secondary_load_balancer.as_deref().map(|it| (Rank::Secondary, it)))
}

/// Both load balancers have this group. Without rules of the spec everybody; with them, also what
/// must reach the API server from inside.
fn api_server_load_balancer(spec: &Spec, errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    let port = i32::from(spec.api_port);
    if balancers(spec).all(|(_, balancer)| balancer.ingress_rules.is_empty()) {
        return vec![tcp(API, port, port, vec![RuleSource::Everybody])];
    }
    let inside = balancers(spec).flat_map(|(_, balancer)| match balancer.scheme {
        Scheme::Internal => vec![RuleSource::Vpc],
        Scheme::InternetFacing => vec![RuleSource::NatAddresses, RuleSource::VpcIpv6],
    });
    let mut all = vec![tcp(API, port, port, inside.collect())];
    for (rank, balancer) in balancers(spec) {
        let mut rules = balancer.ingress_rules.clone();
        // Upstream's default of these rules alone.
        for rule in rules.iter_mut().filter(|rule| !rule.has_source()) {
            rule.source_roles = vec![Role::ControlPlane];
        }
        all.extend(given(&format!("{}.ingressRules", rank.path()), &rules, errors));
    }
    all
}

/// Instances hold this group, and a network load balancer reaches them from addresses of the VPC,
/// or with those of its clients. Traffic arrives at the port of the instance, whatever that of the
/// listener.
fn network_load_balancer(spec: &Spec) -> Vec<RuleTemplate> {
    let mut rules = Vec::new();
    for (_, balancer) in balancers(spec).filter(|(_, it)| it.kind == LoadBalancerKind::Network) {
        let is_anybody = balancer.preserve_client_ip;
        let sources = vec![if is_anybody { RuleSource::Everybody } else { RuleSource::Vpc }];
        let port = i32::from(INSTANCE_PORT);
        rules.push(tcp(&format!("{NLB_TRAFFIC}."), port, port, sources.clone()));
        rules.extend(balancer.listeners.iter().map(|listener| {
            let port = i32::from(listener.port);
            tcp(&format!("{NLB_TRAFFIC} on port {port}."), port, port, sources.clone())
        }));
    }
    rules
}

fn given(path: &str, rules: &[IngressRuleSpec], errors: &mut Vec<SpecError>) -> Vec<RuleTemplate> {
    check_ports(path, rules, errors);
    let mut templates = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let sources = sources(&path, rule, errors);
        if sources.is_empty() {
            errors.push(SpecError::new(path, "it has no source: set CIDRs or security groups"));
        }
        templates.push(RuleTemplate {
            description: rule.description.clone(),
            protocol: rule.protocol.clone(),
            ports: (rule.from_port, rule.to_port),
            sources,
        });
    }
    templates
}

fn sources(path: &str, rule: &IngressRuleSpec, errors: &mut Vec<SpecError>) -> Vec<RuleSource> {
    let groups = !rule.source_group_ids.is_empty() || !rule.source_roles.is_empty();
    if groups && !rule.cidr_blocks.is_empty() {
        errors.push(SpecError::new(path, "its sources are CIDRs or security groups, not both"));
    }
    let path = format!("{path}.cidrBlocks");
    let addresses = rule.cidr_blocks.iter().filter_map(|text| read_cidr(&path, text, errors));
    let mut sources: Vec<_> = addresses.map(RuleSource::Cidr).collect();
    sources.extend(rule.source_group_ids.iter().cloned().map(RuleSource::Group));
    sources.extend(rule.source_roles.iter().copied().map(RuleSource::Role));
    sources.extend(rule.from_nat_gateways.then_some(RuleSource::NatAddresses));
    sources
}

fn check_ports(path: &str, rules: &[IngressRuleSpec], errors: &mut Vec<SpecError>) {
    for (index, rule) in rules.iter().enumerate() {
        let in_range = |port| (-1..=65535).contains(&port);
        if !in_range(rule.from_port) || !in_range(rule.to_port) || rule.from_port > rule.to_port {
            let problem = format!("{} to {} are not valid ports", rule.from_port, rule.to_port);
            errors.push(SpecError::new(format!("{path}[{index}]"), problem));
        }
        if rule.protocol.is_empty() {
            errors.push(SpecError::new(format!("{path}[{index}].protocol"), "it is empty"));
        }
    }
}
