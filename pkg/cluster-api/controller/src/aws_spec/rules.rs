//! Ingress rules of security groups, as the spec of an AWSCluster states them; which fields of
//! upstream ask for what is not built.

use aws_network::{IngressRuleSpec, Role, SpecError};
use serde_json::Value;

use crate::api::aws_cluster::IngressRule;

/// The roles that a spec may name.
pub(super) const ROLES: &str = "bastion, node, controlplane, apiserver-lb or lb";

/// Reads the rules of the field of this path.
pub(super) fn ingress_rules(
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

/// The field has this value, and what would be right.
pub(super) fn wrong_word(path: &str, value: &str, right: &str) -> SpecError {
    SpecError::new(path, format!("{value:?} is not {right}"))
}

/// Whether a field of upstream asks for something that is not built. Upstream stores its defaults in
/// the spec, and what they say is what is made here.
pub(super) fn asks_for_more(field: &str, value: &Value) -> bool {
    let is_nothing = match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    };
    let default = match field {
        "availabilityZoneUsageLimit" => Value::from(3),
        "availabilityZoneSelection" => Value::from("Ordered"),
        "subnetSchema" => Value::from("PreferPrivate"),
        "zoneType" => Value::from("availability-zone"),
        "privateDnsHostnameTypeOnLaunch" => Value::from("ip-name"),
        "targetGroupIPType" => Value::from("ipv4"),
        _ => Value::Null,
    };
    !is_nothing && *value != default
}
