//! The load balancer of the API server, as a spec says it.

use aws_network::{HealthCheckSpec, LoadBalancerKind, LoadBalancerSpec, Scheme, SpecError};

use super::rules;
use super::wrong_word::wrong_word;
use crate::api::aws_cluster::LoadBalancer;

const PATH: &str = "spec.controlPlaneLoadBalancer";

/// `None` where the endpoint is given from outside.
pub(super) fn read(
    said: Option<&LoadBalancer>,
    errors: &mut Vec<SpecError>,
) -> Option<LoadBalancerSpec> {
    let none = LoadBalancer::default();
    let said = said.unwrap_or(&none);
    let kind = match said.load_balancer_type.as_deref() {
        None | Some("classic") => LoadBalancerKind::Classic,
        Some("nlb") => LoadBalancerKind::Network,
        Some("disabled") => return None,
        Some(other @ ("alb" | "elb")) => {
            let path = format!("{PATH}.loadBalancerType");
            let problem = format!("{other:?} is not supported; use classic, nlb or disabled");
            errors.push(SpecError { path, problem });
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
        ingress_rules: rules::read(
            "spec.controlPlaneLoadBalancer.ingressRules",
            &said.ingress_rules,
            errors,
        ),
        preserve_client_ip: said.preserve_client_ip.unwrap_or_default(),
    })
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
