//! Network load balancers, their listeners and target groups.

use std::collections::BTreeMap;

use aws_network::{
    BalancerState, HealthCheck, Lookup, NetworkListener, NetworkLoadBalancer, Reply, Scheme, Tags,
    TargetAttributes, TargetGroup,
};
use aws_sdk_elasticloadbalancingv2::operation::describe_load_balancers::builders::DescribeLoadBalancersFluentBuilder;
use aws_sdk_elasticloadbalancingv2::types::{
    self, IpAddressType, LoadBalancerSchemeEnum, LoadBalancerStateEnum,
    TargetGroupIpAddressTypeEnum,
};

use super::answers::{Flaws, balancer_pages, one, tags_of_elbv2};
use super::classic::UNCHECKED;
use super::{Describe, required};
use crate::call::{AwsError, Call};
use crate::perform::network_balancers::{
    DRAINING_INTERVAL, PRESERVE_CLIENT_IP, TERMINATES_CONNECTIONS,
};

/// ARNs that fit in one DescribeTags.
const ARNS: usize = 20;
/// Results in one page that the calls allow.
pub(super) const PAGE: i32 = 400;

impl Describe<'_> {
    /// Load balancers and target groups of a lookup, with what describes them.
    pub(super) async fn network_balancers(self, lookup: &Lookup) -> Result<Reply, AwsError> {
        let mut balancers = Vec::new();
        for found in self.second_generation(lookup).await? {
            let (mut balancer, mut flaws) = balancer(found);
            balancer.listeners = self.listeners(&balancer.arn, &mut flaws).await?;
            balancers.push((balancer, flaws));
        }
        let listeners = balancers.iter().flat_map(|(balancer, _)| &balancer.listeners);
        let used = listeners.map(|listener| listener.target_group.clone()).collect();
        let mut groups = self.target_groups(lookup, used).await?;
        let arns = balancers.iter().flat_map(|(balancer, _)| {
            let listeners = balancer.listeners.iter().map(|listener| &listener.arn);
            std::iter::once(&balancer.arn).chain(listeners)
        });
        let arns = arns.chain(groups.iter().map(|(group, _)| &group.arn)).cloned().collect();
        let mut tags = self.tags_of_arns(arns).await?;
        for (balancer, _) in &mut balancers {
            balancer.tags = tags.remove(&balancer.arn).unwrap_or_default();
            for listener in &mut balancer.listeners {
                listener.tags = tags.remove(&listener.arn).unwrap_or_default();
            }
        }
        for (group, _) in &mut groups {
            group.tags = tags.remove(&group.arn).unwrap_or_default();
        }
        Ok(Reply::NetworkLoadBalancers(
            self.admit(balancers.into_iter())?,
            self.admit(groups.into_iter())?,
        ))
    }

    /// One name is asked for by name. With several, a missing one would fail the call, and one call
    /// for each costs more than a page of 400.
    async fn second_generation(
        self,
        lookup: &Lookup,
    ) -> Result<Vec<types::LoadBalancer>, AwsError> {
        let request = self.region.elbv2().describe_load_balancers();
        let request = match (&lookup.names[..], &lookup.vpc) {
            ([name], None) => request.names(name),
            _ => request.page_size(PAGE),
        };
        let mut found = match self.balancer_pages(request).await {
            Err(error) if error.is_not_found() => Vec::new(),
            found => found?,
        };
        found.retain(|one| {
            let is_named = |name: &String| lookup.names.contains(name);
            one.load_balancer_name.as_ref().is_some_and(is_named)
                || (lookup.vpc.is_some() && lookup.vpc == one.vpc_id)
        });
        Ok(found)
    }

    /// All that there are, without listeners and tags.
    pub(super) async fn all_network(self) -> Result<Vec<NetworkLoadBalancer>, AwsError> {
        let request = self.region.elbv2().describe_load_balancers().page_size(PAGE);
        self.admit(self.balancer_pages(request).await?.into_iter().map(balancer))
    }

    /// Names and tags of all that there are.
    pub(super) async fn network_balancer_tags(self) -> Result<Vec<(String, Tags)>, AwsError> {
        let request = self.region.elbv2().describe_load_balancers().page_size(PAGE);
        let found = self.balancer_pages(request).await?.into_iter();
        let pair =
            |one: types::LoadBalancer| Some((one.load_balancer_arn?, one.load_balancer_name?));
        self.named_tags(found.filter_map(pair).collect()).await
    }

    /// The tags of what has these names, by ARN.
    pub(super) async fn named_tags(
        self,
        mut names: BTreeMap<String, String>,
    ) -> Result<Vec<(String, Tags)>, AwsError> {
        let tags = self.tags_of_arns(names.keys().cloned().collect()).await?;
        Ok(tags.into_iter().filter_map(|(arn, tags)| Some((names.remove(&arn)?, tags))).collect())
    }

    async fn balancer_pages(
        self,
        request: DescribeLoadBalancersFluentBuilder,
    ) -> Result<Vec<types::LoadBalancer>, AwsError> {
        balancer_pages!(self, "DescribeLoadBalancers", request, load_balancers)
    }

    /// None when the load balancer is gone by now.
    async fn listeners(
        self,
        arn: &str,
        flaws: &mut Flaws,
    ) -> Result<Vec<NetworkListener>, AwsError> {
        let request = self.region.elbv2().describe_listeners().load_balancer_arn(arn);
        let request = request.page_size(PAGE);
        match balancer_pages!(self, "DescribeListeners", request, listeners) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            found => {
                Ok(found?.into_iter().filter_map(|found| flaws.part(listener(found))).collect())
            }
        }
    }

    async fn tags_of_arns(self, arns: Vec<String>) -> Result<BTreeMap<String, Tags>, AwsError> {
        let mut found = BTreeMap::new();
        for arns in arns.chunks(ARNS) {
            let request =
                self.region.elbv2().describe_tags().set_resource_arns(Some(arns.to_vec()));
            let call = Call::balancer_read("DescribeTags");
            let answer = one(self.region, call, || request.clone().send()).await?;
            for described in answer.tag_descriptions.unwrap_or_default() {
                if let Some(arn) = described.resource_arn {
                    found.insert(arn, tags_of_elbv2(described.tags));
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn network_attributes(
        self,
        load_balancer: &str,
        target_groups: &[String],
    ) -> Result<Reply, AwsError> {
        let (elbv2, region) = (self.region.elbv2(), self.region);
        let request = elbv2.describe_load_balancer_attributes().load_balancer_arn(load_balancer);
        let call = Call::balancer_read("DescribeLoadBalancerAttributes");
        let answer = one(region, call, || request.clone().send()).await?;
        let mut all = answer.attributes.into_iter().flatten().map(|one| (one.key, one.value));
        let cross_zone = all.any(|one| is_set(one, "load_balancing.cross_zone.enabled"));
        let mut found = Vec::new();
        for target_group in target_groups {
            let request = elbv2.describe_target_group_attributes().target_group_arn(target_group);
            let call = Call::balancer_read("DescribeTargetGroupAttributes");
            let answer = one(region, call, || request.clone().send()).await?;
            let all = answer.attributes.unwrap_or_default();
            found.push((target_group.clone(), target_attributes(&all)));
        }
        let load_balancer = load_balancer.to_owned();
        Ok(Reply::NetworkAttributes { load_balancer, cross_zone, target_groups: found })
    }
}

/// An attribute that is not in an answer is off, or zero.
fn target_attributes(all: &[types::TargetGroupAttribute]) -> TargetAttributes {
    let value = |key: &str| {
        let found = all.iter().find(|one| one.key.as_deref() == Some(key));
        found.and_then(|one| one.value.as_deref()).unwrap_or_default()
    };
    TargetAttributes {
        preserve_client_ip: value(PRESERVE_CLIENT_IP) == "true",
        terminates_connections: value(TERMINATES_CONNECTIONS) == "true",
        draining_interval: value(DRAINING_INTERVAL).parse().unwrap_or_default(),
    }
}

fn is_set((key, value): (Option<String>, Option<String>), wanted: &str) -> bool {
    key.as_deref() == Some(wanted) && value.as_deref() == Some("true")
}

fn balancer(found: types::LoadBalancer) -> (NetworkLoadBalancer, Flaws) {
    let mut flaws = Flaws::default();
    let zones = found.availability_zones.unwrap_or_default().into_iter();
    let state = found.state.and_then(|state| state.code);
    let balancer = NetworkLoadBalancer {
        arn: flaws.id(found.load_balancer_arn, "ARN of a load balancer"),
        name: flaws.needed(found.load_balancer_name, "name of a load balancer", String::new()),
        vpc: found.vpc_id.unwrap_or_default(),
        scheme: match found.scheme {
            Some(LoadBalancerSchemeEnum::Internal) => Scheme::Internal,
            _ => Scheme::InternetFacing,
        },
        is_dualstack: found.ip_address_type == Some(IpAddressType::Dualstack),
        dns_name: found.dns_name.unwrap_or_default(),
        state: match state {
            Some(LoadBalancerStateEnum::Active | LoadBalancerStateEnum::ActiveImpaired) => {
                BalancerState::Active
            }
            Some(LoadBalancerStateEnum::Failed) => BalancerState::Failed,
            _ => BalancerState::Provisioning,
        },
        subnets: zones.filter_map(|zone| zone.subnet_id).collect(),
        groups: found.security_groups.unwrap_or_default(),
        cross_zone: None,
        listeners: Vec::new(),
        tags: Tags::new(),
    };
    (balancer, flaws)
}

/// A listener of a gateway load balancer has no port.
fn listener(found: types::Listener) -> Result<NetworkListener, AwsError> {
    let port = found.port.and_then(|port| u16::try_from(port).ok());
    let mut actions = found.default_actions.unwrap_or_default().into_iter();
    Ok(NetworkListener {
        arn: required(found.listener_arn, "ARN of a listener")?,
        port: required(port, "port of a listener")?,
        target_group: actions.find_map(|action| action.target_group_arn).unwrap_or_default(),
        tags: Tags::new(),
    })
}

/// The word for "the port that the target listens on".
const TRAFFIC_PORT: &str = "traffic-port";

impl Describe<'_> {
    /// Target groups with a name of the lookup or in its VPC, and those that listeners lead to. AWS
    /// frees those of a deleted load balancer late, when no listener leads to them any more. Their
    /// tags are another call.
    pub(super) async fn target_groups(
        self,
        lookup: &Lookup,
        used: Vec<String>,
    ) -> Result<Vec<(TargetGroup, Flaws)>, AwsError> {
        let is_used = |arn: &String| used.contains(arn);
        let request = self.region.elbv2().describe_target_groups();
        let request = match (&lookup.names[..], &lookup.vpc) {
            ([name], None) => request.names(name),
            _ => request.page_size(PAGE),
        };
        let mut found = self.target_group_pages(request).await?;
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

    /// All that there are, without tags.
    pub(super) async fn all_target_groups(self) -> Result<Vec<TargetGroup>, AwsError> {
        let request = self.region.elbv2().describe_target_groups().page_size(PAGE);
        self.admit(self.target_group_pages(request).await?.into_iter().map(target_group))
    }

    /// Names and tags of all that there are.
    pub(super) async fn target_group_tags(self) -> Result<Vec<(String, Tags)>, AwsError> {
        let request = self.region.elbv2().describe_target_groups().page_size(PAGE);
        let found = self.target_group_pages(request).await?.into_iter();
        let pair = |one: types::TargetGroup| Some((one.target_group_arn?, one.target_group_name?));
        self.named_tags(found.filter_map(pair).collect()).await
    }

    async fn target_group_pages(
        self,
        request: aws_sdk_elasticloadbalancingv2::operation::describe_target_groups::builders::DescribeTargetGroupsFluentBuilder,
    ) -> Result<Vec<types::TargetGroup>, AwsError> {
        match balancer_pages!(self, "DescribeTargetGroups", request, target_groups) {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            found => found,
        }
    }
}

/// A target group of functions has no VPC, port and protocol.
fn target_group(found: types::TargetGroup) -> (TargetGroup, Flaws) {
    let mut flaws = Flaws::default();
    let health_check = flaws.part(health_check(&found)).unwrap_or(UNCHECKED);
    let group = TargetGroup {
        arn: flaws.id(found.target_group_arn, "ARN of a target group"),
        name: flaws.needed(found.target_group_name, "name of a target group", String::new()),
        vpc: found.vpc_id.unwrap_or_default(),
        is_ipv6: found.ip_address_type == Some(TargetGroupIpAddressTypeEnum::Ipv6),
        health_check,
        attributes: None,
        tags: Tags::new(),
    };
    (group, flaws)
}

fn health_check(found: &types::TargetGroup) -> Result<HealthCheck, AwsError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_load_balancer_differs_from_one_in_creation() {
        let read = |code: &str| {
            let state = types::LoadBalancerState::builder().code(code.into()).build();
            balancer(types::LoadBalancer::builder().load_balancer_arn("a").state(state).build())
                .0
                .state
        };
        assert_eq!(read("provisioning"), BalancerState::Provisioning);
        assert_eq!(read("active_impaired"), BalancerState::Active);
        assert_eq!(read("failed"), BalancerState::Failed);
        assert_eq!(read("new"), BalancerState::Provisioning);
    }
}
