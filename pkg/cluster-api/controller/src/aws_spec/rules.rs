//! Ingress rules of security groups and the load balancer of the API server, as the spec of an
//! AWSCluster states them; which fields of upstream ask for what is not built.

use aws_network::{
    HealthCheckSpec, IngressRuleSpec, LoadBalancerKind, LoadBalancerSpec, Role, Scheme, SpecError,
};
use serde_json::Value;

use crate::api::aws_cluster::{IngressRule, LoadBalancer};

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

const PATH: &str = "spec.controlPlaneLoadBalancer";

/// `None` where the endpoint is given from outside.
pub(super) fn load_balancer(
    said: Option<&LoadBalancer>,
    errors: &mut Vec<SpecError>,
) -> Option<LoadBalancerSpec> {
    let none = LoadBalancer::default();
    let said = said.unwrap_or(&none);
    let kind = match said.kind.as_deref() {
        None | Some("classic") => LoadBalancerKind::Classic,
        Some("nlb") => LoadBalancerKind::Network,
        Some("disabled") => return None,
        Some(other @ ("alb" | "elb")) => {
            let problem = format!("{other:?} cannot forward TCP; use classic, nlb or disabled");
            errors.push(SpecError::new(format!("{PATH}.loadBalancerType"), problem));
            return None;
        }
        Some(other) => {
            let path = format!("{PATH}.loadBalancerType");
            errors.push(wrong_word(&path, other, "classic, nlb or disabled"));
            return None;
        }
    };
    Some(LoadBalancerSpec {
        kind,
        name: said.name.clone().filter(|name| !name.is_empty()),
        scheme: scheme(said, errors),
        subnets: said.subnets.clone(),
        cross_zone: said.cross_zone_load_balancing.unwrap_or_default(),
        health_check: health_check(said),
        additional_groups: said.additional_security_groups.clone(),
        ingress_rules: ingress_rules(
            "spec.controlPlaneLoadBalancer.ingressRules",
            &said.ingress_rules,
            errors,
        ),
        preserve_client_ip: said.preserve_client_ip.unwrap_or_default(),
    })
}

/// Fields that say how a load balancer is made, where none is made. Upstream refuses them, too.
pub(super) fn fields_of_disabled(said: &LoadBalancer) -> Vec<SpecError> {
    const FIELDS: [&str; 10] = [
        "name",
        "crossZoneLoadBalancing",
        "subnets",
        "healthCheckProtocol",
        "additionalSecurityGroups",
        "additionalListeners",
        "ingressRules",
        "preserveClientIP",
        "disableHostsRewrite",
        "targetGroupIPType",
    ];
    let fields = serde_json::to_value(said).unwrap_or_default();
    let is_set = |field: &&str| fields.get(*field).is_some_and(|it| asks_for_more(field, it));
    let problem = "must be empty when loadBalancerType is disabled";
    let error = |field| SpecError::new(format!("{PATH}.{field}"), problem);
    FIELDS.into_iter().filter(is_set).map(error).collect()
}

/// Upstream's v1alpha2 writes `Internet-facing`.
fn scheme(said: &LoadBalancer, errors: &mut Vec<SpecError>) -> Scheme {
    let scheme = said.scheme.as_deref().unwrap_or("internet-facing");
    match &*scheme.to_ascii_lowercase() {
        "internet-facing" => Scheme::InternetFacing,
        "internal" => Scheme::Internal,
        _ => {
            let right = "internet-facing or internal";
            errors.push(wrong_word(&format!("{PATH}.scheme"), scheme, right));
            Scheme::InternetFacing
        }
    }
}

fn health_check(said: &LoadBalancer) -> HealthCheckSpec {
    let check = said.health_check.clone().unwrap_or_default();
    HealthCheckSpec {
        protocol: said.health_check_protocol.clone(),
        path: check.path,
        interval: check.interval_seconds,
        timeout: check.timeout_seconds,
        healthy: check.threshold_count,
        unhealthy: check.unhealthy_threshold_count,
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
