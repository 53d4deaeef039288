//! The load balancer of a spec, with the defaults of its dialect.

use crate::desired::{DesiredLoadBalancer, DesiredSubnet, INSTANCE_PORT};
use crate::load_balancers::{HealthCheck, Scheme};
use crate::spec::{Dialect, HealthCheckSpec, LoadBalancerKind, LoadBalancerSpec, Spec, SpecError};
use crate::tags::load_balancer_name;

const PATH: &str = "spec.controlPlaneLoadBalancer";

pub(super) fn read(
    spec: &Spec,
    subnets: &[DesiredSubnet],
    errors: &mut Vec<SpecError>,
) -> Option<DesiredLoadBalancer> {
    let balancer = spec.load_balancer.as_ref()?;
    check_name(balancer, errors);
    let facing = balancer.scheme == Scheme::InternetFacing && spec.vpc_id.is_none();
    if facing && balancer.subnets.is_empty() && !subnets.iter().any(|subnet| subnet.public) {
        errors.push(SpecError::new(PATH, "an internet-facing load balancer needs a public subnet"));
    }
    Some(DesiredLoadBalancer {
        kind: balancer.kind,
        name: balancer.name.clone().unwrap_or_else(|| default_name(spec, balancer.kind)),
        scheme: balancer.scheme,
        subnets: balancer.subnets.clone(),
        additional_groups: balancer.additional_groups.clone(),
        port: spec.api_port,
        health_check: health_check(spec.dialect, balancer.kind, &balancer.health_check, errors),
        cross_zone: balancer.cross_zone,
        preserve_client_ip: balancer.preserve_client_ip,
        may_be_created: !spec.endpoint_published || spec.allow_load_balancer_recreate,
    })
}

fn default_name(spec: &Spec, kind: LoadBalancerKind) -> String {
    let cluster = &spec.identity.cluster;
    match kind {
        LoadBalancerKind::Classic => load_balancer_name(cluster),
        LoadBalancerKind::Network => load_balancer_name(&format!("{}-{cluster}", spec.namespace)),
    }
}

fn check_name(balancer: &LoadBalancerSpec, errors: &mut Vec<SpecError>) {
    let Some(name) = &balancer.name else { return };
    let allowed = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let edged = name.starts_with('-') || name.ends_with('-');
    if !allowed || edged || !(1..=32).contains(&name.len()) {
        let problem = format!("{name:?} is not 1 to 32 letters, digits and inner hyphens");
        errors.push(SpecError::new(format!("{PATH}.name"), problem));
    }
}

fn default_health_check(dialect: Dialect, kind: LoadBalancerKind) -> HealthCheck {
    let (port, path) = (INSTANCE_PORT, None);
    match (dialect, kind) {
        (Dialect::V1Alpha2, LoadBalancerKind::Classic) => {
            let protocol = "SSL".to_owned();
            HealthCheck { protocol, port, path, interval: 10, timeout: 5, healthy: 5, unhealthy: 3 }
        }
        _ => {
            let protocol = "TCP".to_owned();
            HealthCheck { protocol, port, path, interval: 5, timeout: 4, healthy: 2, unhealthy: 6 }
        }
    }
}

fn health_check(
    dialect: Dialect,
    kind: LoadBalancerKind,
    spec: &HealthCheckSpec,
    errors: &mut Vec<SpecError>,
) -> HealthCheck {
    let default = default_health_check(dialect, kind);
    let protocol = spec.protocol.as_deref().unwrap_or(&default.protocol).to_ascii_uppercase();
    let check = HealthCheck {
        path: protocol
            .starts_with("HTTP")
            .then(|| spec.path.clone().unwrap_or_else(|| "/readyz".to_owned())),
        interval: spec.interval.unwrap_or(default.interval),
        timeout: spec.timeout.unwrap_or(default.timeout),
        healthy: spec.healthy.unwrap_or(default.healthy),
        unhealthy: spec.unhealthy.unwrap_or(default.unhealthy),
        port: default.port,
        protocol,
    };
    let known = match kind {
        LoadBalancerKind::Classic => ["TCP", "SSL", "HTTP", "HTTPS"].as_slice(),
        LoadBalancerKind::Network => ["TCP", "HTTP", "HTTPS"].as_slice(),
    };
    if !known.contains(&check.protocol.as_str()) {
        let problem = format!("{:?} is not one of {}", check.protocol, known.join(", "));
        errors.push(SpecError::new(format!("{PATH}.healthCheckProtocol"), problem));
    }
    if check.timeout >= check.interval {
        let problem = format!(
            "the timeout of {} s must be less than the interval of {} s",
            check.timeout, check.interval
        );
        errors.push(SpecError::new(format!("{PATH}.healthCheck"), problem));
    }
    check
}
