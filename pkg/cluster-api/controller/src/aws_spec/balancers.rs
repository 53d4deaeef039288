//! The load balancers of the API server, as the spec of an AWSCluster states them, and their fields
//! that are refused before anything is made.

use std::collections::BTreeSet;

use aws_network::{
    HealthCheckSpec, INSTANCE_PORT, ListenerSpec, LoadBalancerKind, LoadBalancerSpec, Scheme,
    SpecError, default_load_balancer_name,
};

use super::rules::{asks_for_more, ingress_rules, wrong_word};
use crate::api::aws_cluster::{AdditionalListener, AwsClusterSpec, HealthCheck, LoadBalancer};

const PRIMARY: &str = "spec.controlPlaneLoadBalancer";
const SECONDARY: &str = "spec.secondaryControlPlaneLoadBalancer";

/// The Cluster that the load balancers belong to.
pub(super) struct Owner<'a> {
    /// Name of the Cluster.
    pub(super) cluster: &'a str,
    pub(super) namespace: &'a str,
    /// Port of the API server as clients see it.
    pub(super) api_port: u16,
    /// Whether its VPC has IPv6.
    pub(super) has_ipv6: bool,
    /// The primary one that was created, by name or ARN.
    pub(super) created: Option<&'a str>,
}

/// Errors of a spec.
pub(super) struct Errors<'a> {
    /// Errors that stop all work on the cluster.
    pub(super) fatal: &'a mut Vec<SpecError>,
    /// Fields without effect, which are refused as long as the cluster has nothing on AWS.
    pub(super) refused: &'a mut Vec<SpecError>,
}

impl Errors<'_> {
    fn refuse(&mut self, path: String, problem: impl Into<String>) {
        self.refused.push(SpecError::new(path, problem));
    }
}

/// `None` where the endpoint is given from outside.
pub(super) fn primary(
    spec: &AwsClusterSpec,
    owner: &Owner<'_>,
    errors: &mut Errors<'_>,
) -> Option<LoadBalancerSpec> {
    let none = LoadBalancer::default();
    let said = spec.control_plane_load_balancer.as_ref().unwrap_or(&none);
    let kind = match said.kind.as_deref() {
        None | Some("classic") => LoadBalancerKind::Classic,
        Some("nlb") => LoadBalancerKind::Network,
        Some("disabled") => {
            errors.refused.extend(fields_of_disabled(said));
            // Clients use its name, so it is not deleted before the cluster.
            if let Some(created) = owner.created {
                let problem = format!(
                    "load balancer {created} was created: it stays as it is until the AWSCluster is \
                     deleted; set the earlier type again"
                );
                errors.refuse(format!("{PRIMARY}.loadBalancerType"), problem);
            }
            return None;
        }
        Some(other @ ("alb" | "elb")) => {
            let problem = format!("{other:?} cannot forward TCP; use classic, nlb or disabled");
            errors.fatal.push(SpecError::new(format!("{PRIMARY}.loadBalancerType"), problem));
            return None;
        }
        Some(other) => {
            let path = format!("{PRIMARY}.loadBalancerType");
            errors.fatal.push(wrong_word(&path, other, "classic, nlb or disabled"));
            return None;
        }
    };
    let scheme = scheme(PRIMARY, said, Scheme::InternetFacing, errors.fatal);
    Some(load_balancer(PRIMARY, said, kind, scheme, owner, errors))
}

/// `None` as well where it is refused.
pub(super) fn secondary(
    spec: &AwsClusterSpec,
    primary: Option<&LoadBalancerSpec>,
    owner: &Owner<'_>,
    errors: &mut Errors<'_>,
) -> Option<LoadBalancerSpec> {
    let said = spec.secondary_control_plane_load_balancer.as_ref()?;
    let Some(primary) = primary else {
        errors.refuse(SECONDARY.to_owned(), "requires a primary load balancer; set spec.controlPlaneLoadBalancer.loadBalancerType to classic or nlb, or remove this \
             field");
        return None;
    };
    let before = errors.refused.len();
    if !matches!(said.kind.as_deref(), None | Some("nlb")) {
        errors.refuse(format!("{SECONDARY}.loadBalancerType"), "must be nlb");
    }
    let name = said.name.as_deref().unwrap_or_default();
    if name.is_empty() || *name == name_of(primary, owner) {
        errors.refuse(format!("{SECONDARY}.name"), "must be set and differ from the primary");
    }
    let scheme = scheme(SECONDARY, said, Scheme::Internal, errors.fatal);
    if scheme == primary.scheme {
        errors.refuse(format!("{SECONDARY}.scheme"), "must differ from the primary");
    }
    if errors.refused.len() > before {
        return None;
    }
    Some(load_balancer(SECONDARY, said, LoadBalancerKind::Network, scheme, owner, errors))
}

fn name_of(balancer: &LoadBalancerSpec, owner: &Owner<'_>) -> String {
    let default = || default_load_balancer_name(balancer.kind, owner.namespace, owner.cluster);
    balancer.name.clone().unwrap_or_else(default)
}

fn load_balancer(
    path: &str,
    said: &LoadBalancer,
    kind: LoadBalancerKind,
    scheme: Scheme,
    owner: &Owner<'_>,
    errors: &mut Errors<'_>,
) -> LoadBalancerSpec {
    let is_network = kind == LoadBalancerKind::Network;
    let ip_type = said.target_group_ip_type.as_deref();
    let ipv6_targets = ipv6_targets(path, ip_type, is_network, owner, errors);
    if !is_network && !said.additional_listeners.is_empty() {
        errors.refuse(format!("{path}.additionalListeners"), "requires loadBalancerType nlb");
    }
    let listeners = if is_network {
        listeners(path, &said.additional_listeners, owner, errors)
    } else {
        Vec::new()
    };
    LoadBalancerSpec {
        kind,
        name: said.name.clone().filter(|name| !name.is_empty()),
        scheme,
        subnets: said.subnets.clone(),
        cross_zone: said.cross_zone_load_balancing.unwrap_or_default(),
        health_check: health_check(
            said.health_check_protocol.clone(),
            said.health_check.clone().unwrap_or_default(),
        ),
        additional_groups: said.additional_security_groups.clone(),
        ingress_rules: ingress_rules(
            &format!("{path}.ingressRules"),
            &said.ingress_rules,
            errors.fatal,
        ),
        preserve_client_ip: said.preserve_client_ip.unwrap_or_default(),
        ipv6_targets,
        listeners,
    }
}

fn listeners(
    path: &str,
    all: &[AdditionalListener],
    owner: &Owner<'_>,
    errors: &mut Errors<'_>,
) -> Vec<ListenerSpec> {
    let (mut ports, mut listeners) = (BTreeSet::new(), Vec::new());
    for (index, listener) in all.iter().enumerate() {
        let path = format!("{path}.additionalListeners[{index}]");
        let ip_type = listener.target_group_ip_type.as_deref();
        let ipv6_targets = ipv6_targets(&path, ip_type, true, owner, errors);
        let protocol = listener.protocol.as_deref().unwrap_or("TCP");
        if protocol != "TCP" {
            errors.refused.push(wrong_word(&format!("{path}.protocol"), protocol, "TCP"));
            continue;
        }
        let number = listener.port;
        let problem = match u16::try_from(number) {
            Err(_) | Ok(0) => "is not a port",
            Ok(port) if [owner.api_port, INSTANCE_PORT].contains(&port) => {
                "is the API server port; choose another one"
            }
            Ok(port) if !ports.insert(port) => "is in the list twice; remove one entry",
            Ok(port) => {
                let check = listener.health_check.clone().unwrap_or_default();
                let check_port = check_port(&path, &check, errors.fatal);
                let health_check = health_check(check.protocol.clone(), check);
                listeners.push(ListenerSpec { port, health_check, check_port, ipv6_targets });
                continue;
            }
        };
        errors.refuse(format!("{path}.port"), format!("{number} {problem}"));
    }
    listeners
}

/// `None` for the port of the listener.
fn check_port(path: &str, check: &HealthCheck, errors: &mut Vec<SpecError>) -> Option<u16> {
    let said = check.port.as_deref().filter(|port| !["", "traffic-port"].contains(port))?;
    let port = said.parse().ok().filter(|port| *port != 0);
    if port.is_none() {
        let right = "a port or traffic-port";
        errors.push(wrong_word(&format!("{path}.healthCheck.port"), said, right));
    }
    port
}

/// Whether the spec asks for IPv6 or IPv4 between the load balancer and its targets.
fn ipv6_targets(
    path: &str,
    ip_type: Option<&str>,
    is_network: bool,
    owner: &Owner<'_>,
    errors: &mut Errors<'_>,
) -> Option<bool> {
    let is_ipv6 = ip_type? == "ipv6";
    let problem = match (is_network, owner.has_ipv6) {
        _ if !is_ipv6 => return Some(false),
        (_, false) => "ipv6 requires vpc.ipv6",
        (false, true) => "ipv6 requires loadBalancerType nlb",
        (true, true) => return Some(true),
    };
    errors.refuse(format!("{path}.targetGroupIPType"), problem);
    None
}

/// Fields that say how a load balancer is made, where none is made. Upstream refuses them, too.
fn fields_of_disabled(said: &LoadBalancer) -> Vec<SpecError> {
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
    let error = |field| SpecError::new(format!("{PRIMARY}.{field}"), problem);
    FIELDS.into_iter().filter(is_set).map(error).collect()
}

/// Upstream's v1alpha2 writes `Internet-facing`.
fn scheme(path: &str, said: &LoadBalancer, default: Scheme, errors: &mut Vec<SpecError>) -> Scheme {
    let Some(scheme) = said.scheme.as_deref() else { return default };
    match &*scheme.to_ascii_lowercase() {
        "internet-facing" => Scheme::InternetFacing,
        "internal" => Scheme::Internal,
        _ => {
            let right = "internet-facing or internal";
            errors.push(wrong_word(&format!("{path}.scheme"), scheme, right));
            default
        }
    }
}

fn health_check(protocol: Option<String>, check: HealthCheck) -> HealthCheckSpec {
    HealthCheckSpec {
        protocol,
        path: check.path,
        interval: check.interval_seconds,
        timeout: check.timeout_seconds,
        healthy: check.threshold_count,
        unhealthy: check.unhealthy_threshold_count,
    }
}
