//! Target groups.

use aws_network::{HealthCheck, Lookup, Tags, TargetGroup};
use aws_sdk_elasticloadbalancingv2::types;

use crate::call::Call;
use crate::call_error::CallError;

use super::classic::UNCHECKED;
use super::flaws::Flaws;
use super::network_balancers::PAGE;
use super::pages::pages;
use super::{Describe, required};

/// The word for "the port that the target listens on".
const TRAFFIC_PORT: &str = "traffic-port";

impl Describe<'_> {
    /// Those of a name of the lookup or in its VPC, and those that listeners lead to. AWS frees
    /// those of a deleted load balancer late, when no listener leads to them any more. Their tags
    /// are another call.
    pub(super) async fn target_groups(
        self,
        lookup: &Lookup,
        used: Vec<String>,
    ) -> Result<Vec<(TargetGroup, Flaws)>, CallError> {
        let is_used = |arn: &String| used.contains(arn);
        let mut found = self.target_groups_found(lookup).await?;
        found.retain(|one| {
            one.target_group_name.as_ref().is_some_and(|name| lookup.names.contains(name))
                || one.target_group_arn.as_ref().is_some_and(is_used)
                || (lookup.vpc.is_some() && lookup.vpc == one.vpc_id)
        });
        let known: Vec<_> = found.iter().filter_map(|one| one.target_group_arn.clone()).collect();
        let unknown: Vec<_> =
            used.iter().filter(|arn| !arn.is_empty() && !known.contains(arn)).cloned().collect();
        if !unknown.is_empty() {
            let request = self.region.elbv2().describe_target_groups();
            found.extend(
                self.target_group_pages(request.set_target_group_arns(Some(unknown))).await?,
            );
        }
        Ok(found.into_iter().map(target_group).collect())
    }

    /// Names and tags of all that there are.
    pub(super) async fn target_group_tags(self) -> Result<Vec<(String, Tags)>, CallError> {
        let request = self.region.elbv2().describe_target_groups().page_size(PAGE);
        let found = self.target_group_pages(request).await?.into_iter();
        let pair = |one: types::TargetGroup| Some((one.target_group_arn?, one.target_group_name?));
        self.named_tags(found.filter_map(pair).collect()).await
    }

    async fn target_groups_found(
        self,
        lookup: &Lookup,
    ) -> Result<Vec<types::TargetGroup>, CallError> {
        let request = self.region.elbv2().describe_target_groups();
        let request = match (&lookup.names[..], &lookup.vpc) {
            ([name], None) => request.names(name),
            _ => request.page_size(PAGE),
        };
        self.target_group_pages(request).await
    }

    async fn target_group_pages(
        self,
        request: aws_sdk_elasticloadbalancingv2::operation::describe_target_groups::builders::DescribeTargetGroupsFluentBuilder,
    ) -> Result<Vec<types::TargetGroup>, CallError> {
        let found = pages(
            self.region,
            Call::balancer_read("DescribeTargetGroups"),
            |token| request.clone().set_marker(token).send(),
            |page| (page.target_groups, page.next_marker),
        );
        match found.await {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            found => found,
        }
    }
}

/// One of functions has no VPC, port and protocol.
fn target_group(found: types::TargetGroup) -> (TargetGroup, Flaws) {
    let mut flaws = Flaws::default();
    let health_check = flaws.part(health_check(&found)).unwrap_or(UNCHECKED);
    let group = TargetGroup {
        arn: flaws.id(found.target_group_arn, "ARN of a target group"),
        name: flaws.needed(found.target_group_name, "name of a target group", String::new()),
        vpc: found.vpc_id.unwrap_or_default(),
        health_check,
        preserve_client_ip: None,
        tags: Tags::new(),
    };
    (group, flaws)
}

fn health_check(found: &types::TargetGroup) -> Result<HealthCheck, CallError> {
    let port = match found.health_check_port.as_deref() {
        None | Some(TRAFFIC_PORT) => found.port.and_then(|port| u16::try_from(port).ok()),
        Some(text) => text.parse().ok(),
    };
    let protocol = found.health_check_protocol.as_ref();
    let number = |value: Option<i32>| {
        let number = value.and_then(|value| u32::try_from(value).ok());
        required(number, "number of a health check")
    };
    Ok(HealthCheck {
        protocol: required(protocol, "protocol of a health check")?.as_str().to_owned(),
        port: required(port, "port of a health check")?,
        path: found.health_check_path.clone(),
        interval: number(found.health_check_interval_seconds)?,
        timeout: number(found.health_check_timeout_seconds)?,
        healthy: number(found.healthy_threshold_count)?,
        unhealthy: number(found.unhealthy_threshold_count)?,
    })
}
