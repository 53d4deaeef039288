//! The load balancers of a spec, with the defaults of its dialect.

use super::checks::Errors;
use crate::desired::{DesiredListener, DesiredLoadBalancer, DesiredSubnet, INSTANCE_PORT, Rank};
use crate::load_balancers::{HealthCheck, Scheme};
use crate::spec::{
    Dialect, HealthCheckSpec, ListenerSpec, LoadBalancerKind, LoadBalancerSpec, Spec, SpecError,
};
use crate::tags::{default_load_balancer_name, target_group_name};

/// Regions in which AWS takes no security groups for network load balancers.
const WITHOUT_GROUPS: [&str; 3] = ["us-iso-east-1", "us-iso-west-1", "us-isob-east-1"];

/// A load balancer of clients on the internet needs a public subnet, and in an availability zone.
pub(super) fn check_subnets(
    spec: &Spec,
    rank: Rank,
    balancer: &LoadBalancerSpec,
    subnets: &[DesiredSubnet],
    (errors, doubts): Errors<'_>,
) {
    let facing = balancer.scheme == Scheme::InternetFacing && spec.vpc_id.is_none();
    let mut public = subnets.iter().filter(|subnet| subnet.public).peekable();
    let errors = if public.peek().is_none() { errors } else { doubts };
    if facing && balancer.subnets.is_empty() && !public.any(|subnet| subnet.edge.is_none()) {
        let problem = "an internet-facing load balancer needs a public subnet";
        errors.push(SpecError::new(rank.path(), problem));
    }
}

pub(super) fn read(
    spec: &Spec,
    rank: Rank,
    balancer: &LoadBalancerSpec,
    errors: &mut Vec<SpecError>,
) -> DesiredLoadBalancer {
    let path = rank.path();
    check_name(path, balancer, errors);
    let name = balancer.name.clone().unwrap_or_else(|| {
        default_load_balancer_name(balancer.kind, &spec.namespace, &spec.identity.cluster)
    });
    let listeners = balancer.listeners.iter().map(|it| listener(path, &name, it, errors));
    let listeners = listeners.collect();
    let is_network = balancer.kind == LoadBalancerKind::Network;
    // The name of the secondary one is never published.
    let is_published = rank == Rank::Primary && spec.endpoint_published;
    let default = default_health_check(spec.dialect, balancer.kind);
    DesiredLoadBalancer {
        rank,
        kind: balancer.kind,
        name,
        scheme: balancer.scheme,
        subnets: balancer.subnets.clone(),
        takes_groups: !is_network || !WITHOUT_GROUPS.contains(&&*spec.region),
        additional_groups: balancer.additional_groups.clone(),
        port: spec.api_port,
        health_check: health_check(path, balancer, default, errors),
        cross_zone: balancer.cross_zone,
        preserve_client_ip: balancer.preserve_client_ip,
        ipv6_targets: balancer.ipv6_targets,
        additional_listeners: listeners,
        may_be_created: !is_published || spec.allow_load_balancer_recreate,
    }
}

fn check_name(path: &str, balancer: &LoadBalancerSpec, errors: &mut Vec<SpecError>) {
    let Some(name) = &balancer.name else { return };
    let allowed = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let edged = name.starts_with('-') || name.ends_with('-');
    if !allowed || edged || !(1..=32).contains(&name.len()) {
        let problem = format!("{name:?} is not 1 to 32 letters, digits and inner hyphens");
        errors.push(SpecError::new(format!("{path}.name"), problem));
    }
}

const TCP: [&str; 3] = ["TCP", "HTTP", "HTTPS"];

fn default_health_check(dialect: Dialect, kind: LoadBalancerKind) -> HealthCheck {
    if (dialect, kind) == (Dialect::V1Alpha2, LoadBalancerKind::Classic) {
        let (protocol, port, path) = ("SSL".to_owned(), INSTANCE_PORT, None);
        HealthCheck { protocol, port, path, interval: 10, timeout: 5, healthy: 5, unhealthy: 3 }
    } else {
        by_tcp(INSTANCE_PORT)
    }
}

fn health_check(
    path: &str,
    balancer: &LoadBalancerSpec,
    default: HealthCheck,
    errors: &mut Vec<SpecError>,
) -> HealthCheck {
    let known = match balancer.kind {
        LoadBalancerKind::Classic => ["TCP", "SSL", "HTTP", "HTTPS"].as_slice(),
        LoadBalancerKind::Network => &TCP,
    };
    let check = filled(default, "/readyz", &balancer.health_check);
    let [protocol, times] = ["healthCheckProtocol", "healthCheck"].map(|it| format!("{path}.{it}"));
    check_health(&protocol, &times, known, &check, errors);
    check
}

/// An additional listener, whose health check asks its own port by default.
fn listener(
    path: &str,
    balancer: &str,
    spec: &ListenerSpec,
    errors: &mut Vec<SpecError>,
) -> DesiredListener {
    let port = spec.port;
    let default = by_tcp(spec.check_port.unwrap_or(port));
    // AWS asks for this path where none is given.
    let health_check = filled(default, "/", &spec.health_check);
    let path = format!("{path}.additionalListeners[port={port}].healthCheck");
    check_health(&format!("{path}.protocol"), &path, &TCP, &health_check, errors);
    let target_group = target_group_name(balancer, port);
    let ipv6_targets = spec.ipv6_targets;
    DesiredListener { port, target_group, instance_port: port, health_check, ipv6_targets }
}

fn by_tcp(port: u16) -> HealthCheck {
    let (protocol, path) = ("TCP".to_owned(), None);
    HealthCheck { protocol, port, path, interval: 5, timeout: 4, healthy: 2, unhealthy: 6 }
}

fn filled(default: HealthCheck, default_path: &str, spec: &HealthCheckSpec) -> HealthCheck {
    let protocol = spec.protocol.as_deref().unwrap_or(&default.protocol).to_ascii_uppercase();
    let path = spec.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(default_path);
    HealthCheck {
        path: protocol.starts_with("HTTP").then(|| path.to_owned()),
        interval: spec.interval.unwrap_or(default.interval),
        timeout: spec.timeout.unwrap_or(default.timeout),
        healthy: spec.healthy.unwrap_or(default.healthy),
        unhealthy: spec.unhealthy.unwrap_or(default.unhealthy),
        port: default.port,
        protocol,
    }
}

fn check_health(
    protocol: &str,
    times: &str,
    known: &[&str],
    check: &HealthCheck,
    errors: &mut Vec<SpecError>,
) {
    if !known.contains(&check.protocol.as_str()) {
        let problem = format!("{:?} is not one of {}", check.protocol, known.join(", "));
        errors.push(SpecError::new(protocol, problem));
    }
    if check.timeout >= check.interval {
        let problem = format!(
            "the timeout of {} s must be less than the interval of {} s",
            check.timeout, check.interval
        );
        errors.push(SpecError::new(times, problem));
    }
}
