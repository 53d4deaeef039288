//! Load balancers of the second generation.

use aws_network::{Answer, ElbV2Action, Scheme, Tags, TargetAttributes};
use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, IpAddressType, LoadBalancerAttribute, LoadBalancerSchemeEnum,
    LoadBalancerTypeEnum, ProtocolEnum, Tag, TargetGroupAttribute, TargetGroupIpAddressTypeEnum,
    TargetTypeEnum,
};

use super::{Performed, done, made, unbuildable};
use crate::call::AwsError;

/// Keys of the attributes of a target group.
pub(crate) const PRESERVE_CLIENT_IP: &str = "preserve_client_ip.enabled";
pub(crate) const TERMINATES_CONNECTIONS: &str =
    "target_health_state.unhealthy.connection_termination.enabled";
pub(crate) const DRAINING_INTERVAL: &str =
    "target_health_state.unhealthy.draining_interval_seconds";

/// The health check of a target group, which two calls set.
macro_rules! with_health_check {
    ($call:expr, $check:expr) => {
        $call
            .health_check_enabled(true)
            .health_check_protocol(ProtocolEnum::from($check.protocol.as_str()))
            .health_check_port($check.port.to_string())
            .set_health_check_path($check.path.clone())
            .health_check_interval_seconds(number($check.interval)?)
            .health_check_timeout_seconds(number($check.timeout)?)
            .healthy_threshold_count(number($check.healthy)?)
            .unhealthy_threshold_count(number($check.unhealthy)?)
    };
}

pub(crate) async fn perform(elbv2: &Client, action: &ElbV2Action) -> Performed {
    match action {
        ElbV2Action::Create { name, scheme, dualstack, subnets, groups, tags, .. } => {
            let internal =
                (*scheme == Scheme::Internal).then_some(LoadBalancerSchemeEnum::Internal);
            let call = elbv2
                .create_load_balancer()
                .name(name)
                .r#type(LoadBalancerTypeEnum::Network)
                .set_scheme(internal)
                .set_ip_address_type(dualstack.then_some(IpAddressType::Dualstack))
                .set_subnets(Some(subnets.clone()))
                .set_security_groups(Some(groups.clone()))
                .set_tags(Some(tag_list(tags)));
            let found = call.send().await?.load_balancers.into_iter().flatten().next();
            let (arn, dns_name) =
                found.map(|found| (found.load_balancer_arn, found.dns_name)).unwrap_or_default();
            Ok(Answer { dns_name, ..made(arn, "ARN of the load balancer")? })
        }
        ElbV2Action::CreateTargetGroup { vpc, name, port, ipv6, check, tags, .. } => {
            let call = elbv2.create_target_group().name(name).vpc_id(vpc).port(i32::from(*port));
            let call = call.protocol(ProtocolEnum::Tcp).target_type(TargetTypeEnum::Instance);
            let ipv6 = ipv6.then_some(TargetGroupIpAddressTypeEnum::Ipv6);
            let call = call.set_ip_address_type(ipv6);
            let call = with_health_check!(call, check).set_tags(Some(tag_list(tags)));
            let found = call.send().await?.target_groups.into_iter().flatten().next();
            made(found.and_then(|found| found.target_group_arn), "ARN of the target group")
        }
        ElbV2Action::CreateListener { load_balancer, port, target_group, tags } => {
            let call = elbv2.create_listener().load_balancer_arn(load_balancer);
            let call = call.port(i32::from(*port)).protocol(ProtocolEnum::Tcp);
            let call =
                call.default_actions(forward_to(target_group)).set_tags(Some(tag_list(tags)));
            let found = call.send().await?.listeners.into_iter().flatten().next();
            made(found.and_then(|found| found.listener_arn), "ARN of the listener")
        }
        ElbV2Action::ConfigureHealthCheck { target_group, check } => {
            let call = elbv2.modify_target_group().target_group_arn(target_group);
            done(with_health_check!(call, check).send().await)
        }
        ElbV2Action::SetCrossZone { load_balancer, enabled } => {
            let attribute = LoadBalancerAttribute::builder()
                .key("load_balancing.cross_zone.enabled")
                .value(enabled.to_string());
            let call = elbv2.modify_load_balancer_attributes().load_balancer_arn(load_balancer);
            done(call.attributes(attribute.build()).send().await)
        }
        ElbV2Action::MakeDualstack { load_balancer } => {
            let call = elbv2.set_ip_address_type().load_balancer_arn(load_balancer);
            done(call.ip_address_type(IpAddressType::Dualstack).send().await)
        }
        ElbV2Action::SetSubnets { load_balancer, subnets } => {
            let call = elbv2.set_subnets().load_balancer_arn(load_balancer);
            done(call.set_subnets(Some(subnets.clone())).send().await)
        }
        ElbV2Action::SetGroups { load_balancer, groups } => {
            let call = elbv2.set_security_groups().load_balancer_arn(load_balancer);
            done(call.set_security_groups(Some(groups.clone())).send().await)
        }
        ElbV2Action::SetTargetAttributes { target_group, attributes } => {
            let TargetAttributes { preserve_client_ip, terminates_connections, draining_interval } =
                attributes;
            let pairs = [
                (PRESERVE_CLIENT_IP, preserve_client_ip.to_string()),
                (TERMINATES_CONNECTIONS, terminates_connections.to_string()),
                (DRAINING_INTERVAL, draining_interval.to_string()),
            ];
            let pair = |(key, value)| TargetGroupAttribute::builder().key(key).value(value).build();
            let call = elbv2.modify_target_group_attributes().target_group_arn(target_group);
            done(call.set_attributes(Some(pairs.map(pair).to_vec())).send().await)
        }
        ElbV2Action::DeleteListener { listener } => {
            done(elbv2.delete_listener().listener_arn(listener).send().await)
        }
        ElbV2Action::AddTags { arns, tags } => {
            let call = elbv2.add_tags().set_resource_arns(Some(arns.clone()));
            done(call.set_tags(Some(tag_list(tags))).send().await)
        }
        ElbV2Action::RemoveTags { arns, keys } => {
            let call = elbv2.remove_tags().set_resource_arns(Some(arns.clone()));
            done(call.set_tag_keys(Some(keys.clone())).send().await)
        }
        ElbV2Action::Delete { load_balancer } => {
            done(elbv2.delete_load_balancer().load_balancer_arn(load_balancer).send().await)
        }
        ElbV2Action::DeleteTargetGroup { target_group } => {
            done(elbv2.delete_target_group().target_group_arn(target_group).send().await)
        }
    }
}

fn forward_to(target_group: &str) -> Action {
    Action::builder().r#type(ActionTypeEnum::Forward).target_group_arn(target_group).build()
}

fn number(value: u32) -> Result<i32, AwsError> {
    i32::try_from(value).map_err(unbuildable)
}

fn tag_list(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}
