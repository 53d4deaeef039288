//! Load balancers of the second generation.

use aws_network::{Answer, ElbV2Action, HealthCheck, Scheme, Tags};
use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, LoadBalancerAttribute, LoadBalancerSchemeEnum, LoadBalancerTypeEnum,
    ProtocolEnum, Tag, TargetGroupAttribute, TargetTypeEnum,
};

use super::performed::{DONE, Performed, made, unbuildable};
use crate::call::AwsError;

pub(super) async fn perform(elbv2: &Client, action: &ElbV2Action) -> Performed {
    match action {
        ElbV2Action::Create { .. } => return create(elbv2, action).await,
        ElbV2Action::CreateTargetGroup { .. } => return create_group(elbv2, action).await,
        ElbV2Action::CreateListener { load_balancer, port, target_group } => {
            return create_listener(elbv2, load_balancer, *port, target_group).await;
        }
        ElbV2Action::ConfigureHealthCheck { target_group, check } => {
            configure_health_check(elbv2, target_group, check).await?;
        }
        ElbV2Action::SetCrossZone { load_balancer, enabled } => {
            let attribute = LoadBalancerAttribute::builder()
                .key("load_balancing.cross_zone.enabled")
                .value(enabled.to_string());
            let call = elbv2.modify_load_balancer_attributes().load_balancer_arn(load_balancer);
            call.attributes(attribute.build()).send().await?;
        }
        ElbV2Action::SetSubnets { load_balancer, subnets } => {
            let call = elbv2.set_subnets().load_balancer_arn(load_balancer);
            call.set_subnets(Some(subnets.clone())).send().await?;
        }
        ElbV2Action::SetGroups { load_balancer, groups } => {
            let call = elbv2.set_security_groups().load_balancer_arn(load_balancer);
            call.set_security_groups(Some(groups.clone())).send().await?;
        }
        ElbV2Action::SetPreserveClientIp { target_group, enabled } => {
            let attribute = TargetGroupAttribute::builder()
                .key("preserve_client_ip.enabled")
                .value(enabled.to_string());
            let call = elbv2.modify_target_group_attributes().target_group_arn(target_group);
            call.attributes(attribute.build()).send().await?;
        }
        ElbV2Action::DeleteListener { listener } => {
            elbv2.delete_listener().listener_arn(listener).send().await?;
        }
        ElbV2Action::AddTags { arns, tags } => {
            let call = elbv2.add_tags().set_resource_arns(Some(arns.clone()));
            call.set_tags(Some(tag_list(tags))).send().await?;
        }
        ElbV2Action::RemoveTags { arns, keys } => {
            let call = elbv2.remove_tags().set_resource_arns(Some(arns.clone()));
            call.set_tag_keys(Some(keys.clone())).send().await?;
        }
        ElbV2Action::Delete { load_balancer } => {
            elbv2.delete_load_balancer().load_balancer_arn(load_balancer).send().await?;
        }
        ElbV2Action::DeleteTargetGroup { target_group } => {
            elbv2.delete_target_group().target_group_arn(target_group).send().await?;
        }
    }
    DONE
}

async fn create(elbv2: &Client, action: &ElbV2Action) -> Performed {
    let ElbV2Action::Create { name, scheme, subnets, groups, tags, .. } = action else {
        return DONE;
    };
    let internal = (*scheme == Scheme::Internal).then_some(LoadBalancerSchemeEnum::Internal);
    let call = elbv2
        .create_load_balancer()
        .name(name)
        .r#type(LoadBalancerTypeEnum::Network)
        .set_scheme(internal)
        .set_subnets(Some(subnets.clone()))
        .set_security_groups(Some(groups.clone()))
        .set_tags(Some(tag_list(tags)));
    let found = call.send().await?.load_balancers.unwrap_or_default().into_iter().next();
    let (arn, dns_name) =
        found.map(|found| (found.load_balancer_arn, found.dns_name)).unwrap_or_default();
    Ok(Answer { dns_name, ..made(arn, "ARN of the load balancer")? })
}

async fn create_group(elbv2: &Client, action: &ElbV2Action) -> Performed {
    let ElbV2Action::CreateTargetGroup { vpc, name, port, check, tags } = action else {
        return DONE;
    };
    let call = elbv2
        .create_target_group()
        .name(name)
        .vpc_id(vpc)
        .port(i32::from(*port))
        .protocol(ProtocolEnum::Tcp)
        .target_type(TargetTypeEnum::Instance)
        .health_check_enabled(true)
        .health_check_protocol(ProtocolEnum::from(check.protocol.as_str()))
        .health_check_port(check.port.to_string())
        .set_health_check_path(check.path.clone())
        .health_check_interval_seconds(number(check.interval)?)
        .health_check_timeout_seconds(number(check.timeout)?)
        .healthy_threshold_count(number(check.healthy)?)
        .unhealthy_threshold_count(number(check.unhealthy)?)
        .set_tags(Some(tag_list(tags)));
    let found = call.send().await?.target_groups.unwrap_or_default().into_iter().next();
    made(found.and_then(|found| found.target_group_arn), "ARN of the target group")
}

async fn configure_health_check(elbv2: &Client, group: &str, check: &HealthCheck) -> Performed {
    let call = elbv2
        .modify_target_group()
        .target_group_arn(group)
        .health_check_enabled(true)
        .health_check_protocol(ProtocolEnum::from(check.protocol.as_str()))
        .health_check_port(check.port.to_string())
        .set_health_check_path(check.path.clone())
        .health_check_interval_seconds(number(check.interval)?)
        .health_check_timeout_seconds(number(check.timeout)?)
        .healthy_threshold_count(number(check.healthy)?)
        .unhealthy_threshold_count(number(check.unhealthy)?);
    call.send().await?;
    DONE
}

async fn create_listener(
    elbv2: &Client,
    load_balancer: &str,
    port: u16,
    target_group: &str,
) -> Performed {
    let call = elbv2
        .create_listener()
        .load_balancer_arn(load_balancer)
        .port(i32::from(port))
        .protocol(ProtocolEnum::Tcp)
        .default_actions(forward_to(target_group));
    let found = call.send().await?.listeners.unwrap_or_default().into_iter().next();
    made(found.and_then(|found| found.listener_arn), "ARN of the listener")
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
