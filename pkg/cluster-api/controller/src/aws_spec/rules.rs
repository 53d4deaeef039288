//! Rules of security groups, as a spec says them.

use aws_network::{IngressRuleSpec, Role, SpecError};

use super::wrong_word::wrong_word;
use crate::api::aws_cluster::IngressRule;

/// The roles that a spec may name.
pub(super) const ROLES: &str = "bastion, node, controlplane, apiserver-lb or lb";

/// Reads the rules of the field of this path.
pub(super) fn read(
    field: &str,
    rules: &[IngressRule],
    errors: &mut Vec<SpecError>,
) -> Vec<IngressRuleSpec> {
    let read = rules.iter().enumerate().map(|(index, rule)| {
        let path = format!("{field}[{index}].sourceSecurityGroupRoles");
        IngressRuleSpec {
            description: rule.description.clone(),
            protocol: rule.protocol.clone(),
            from_port: rule.from_port,
            to_port: rule.to_port,
            cidr_blocks: [&*rule.cidr_blocks, &*rule.ipv6_cidr_blocks].concat(),
            source_group_ids: rule.source_security_group_ids.clone(),
            source_roles: roles(&path, &rule.source_security_group_roles, errors),
            from_nat_gateways: rule.nat_gateways_ips_source.unwrap_or_default(),
        }
    });
    read.collect()
}

fn roles(path: &str, names: &[String], errors: &mut Vec<SpecError>) -> Vec<Role> {
    let known = names.iter().filter_map(|name| {
        let role = role(name);
        if role.is_none() {
            errors.push(wrong_word(path, name, ROLES));
        }
        role
    });
    known.collect()
}

/// By the name that it has in specs.
pub(super) fn role(name: &str) -> Option<Role> {
    match name {
        "bastion" => Some(Role::Bastion),
        "node" => Some(Role::Node),
        "controlplane" => Some(Role::ControlPlane),
        "apiserver-lb" => Some(Role::ApiServerLb),
        "lb" => Some(Role::Lb),
        _ => None,
    }
}
