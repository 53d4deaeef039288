//! Classic load balancers.

use aws_network::{
    ClassicAttributes, ClassicListener, ClassicLoadBalancer, HealthCheck, Lookup, Reply, Scheme,
    Tags,
};
use aws_sdk_elasticloadbalancing::operation::describe_load_balancers::builders::DescribeLoadBalancersFluentBuilder;
use aws_sdk_elasticloadbalancing::types::{self, ListenerDescription, LoadBalancerDescription};

use super::answers::{Flaws, balancer_pages, one, tags_of_elb};
use super::{Describe, required};
use crate::call::{AwsError, Call};

/// Names that fit in one DescribeTags.
const NAMES: usize = 20;
/// Results in one page that the call allows.
const PAGE: i32 = 400;

/// The health check of what has none, which is no check that anybody wants. AWS
/// gives every one a check, emulations do not.
pub(super) const UNCHECKED: HealthCheck = HealthCheck {
    protocol: String::new(),
    port: 0,
    path: None,
    interval: 0,
    timeout: 0,
    healthy: 0,
    unhealthy: 0,
};

impl Describe<'_> {
    /// One name is asked for by name. Of several, one that does not exist would spoil the call.
    pub(super) async fn classic(
        self,
        lookup: &Lookup,
    ) -> Result<Vec<ClassicLoadBalancer>, AwsError> {
        let request = self.region.elb().describe_load_balancers();
        let request = match (&lookup.names[..], &lookup.vpc) {
            ([name], None) => request.load_balancer_names(name),
            _ => request.page_size(PAGE),
        };
        let found = match self.classic_pages(request).await {
            Err(error) if error.is_not_found() => Vec::new(),
            found => found?,
        };
        let mut all = Vec::new();
        for (one, flaws) in found.into_iter().map(balancer) {
            // Their tags are another call, so the name says which may be ours.
            let is_named = lookup.names.contains(&one.name);
            if flaws.admits(is_named)? && (is_named || lookup.vpc.as_ref() == Some(&one.vpc)) {
                all.push(one);
            }
        }
        Ok(all)
    }

    /// All that there are.
    pub(super) async fn all_classic(self) -> Result<Vec<ClassicLoadBalancer>, AwsError> {
        let request = self.region.elb().describe_load_balancers().page_size(PAGE);
        self.admit(self.classic_pages(request).await?.into_iter().map(balancer))
    }

    /// The names of all that there are.
    pub(super) async fn classic_names(self) -> Result<Vec<String>, AwsError> {
        let request = self.region.elb().describe_load_balancers().page_size(PAGE);
        let found = self.classic_pages(request).await?;
        Ok(found.into_iter().filter_map(|one| one.load_balancer_name).collect())
    }

    async fn classic_pages(
        self,
        request: DescribeLoadBalancersFluentBuilder,
    ) -> Result<Vec<LoadBalancerDescription>, AwsError> {
        balancer_pages!(self, "DescribeLoadBalancers", request, load_balancer_descriptions)
    }

    pub(super) async fn classic_attributes(self, name: &str) -> Result<Reply, AwsError> {
        let request =
            self.region.elb().describe_load_balancer_attributes().load_balancer_name(name);
        let call = Call::balancer_read("DescribeLoadBalancerAttributes");
        let attributes = match one(self.region, call, || request.clone().send()).await {
            Err(error) if error.is_not_found() => None,
            answer => {
                let found = answer?.load_balancer_attributes;
                Some(attributes(required(found, "attributes of a load balancer")?)?)
            }
        };
        Ok(Reply::ClassicAttributes { name: name.to_owned(), attributes })
    }

    pub(super) async fn classic_tags(
        self,
        names: &[String],
    ) -> Result<Vec<(String, Tags)>, AwsError> {
        let mut found = Vec::new();
        for names in names.chunks(NAMES) {
            match self.tags_of(names).await {
                // One of them is gone: each is asked for by itself.
                Err(error) if error.is_not_found() && names.len() > 1 => {
                    for name in names {
                        match self.tags_of(std::slice::from_ref(name)).await {
                            Err(error) if error.is_not_found() => {}
                            tags => found.extend(tags?),
                        }
                    }
                }
                Err(error) if error.is_not_found() => {}
                tags => found.extend(tags?),
            }
        }
        Ok(found)
    }

    async fn tags_of(self, names: &[String]) -> Result<Vec<(String, Tags)>, AwsError> {
        let names = Some(names.to_vec());
        let request = self.region.elb().describe_tags().set_load_balancer_names(names);
        let call = Call::balancer_read("DescribeTags");
        let answer = one(self.region, call, || request.clone().send()).await?;
        let described = answer.tag_descriptions.unwrap_or_default().into_iter();
        let pair =
            |one: types::TagDescription| Some((one.load_balancer_name?, tags_of_elb(one.tags)));
        Ok(described.filter_map(pair).collect())
    }
}

fn balancer(found: LoadBalancerDescription) -> (ClassicLoadBalancer, Flaws) {
    let mut flaws = Flaws::default();
    let check = found.health_check.as_ref().map_or(Ok(UNCHECKED), health_check);
    let listeners = found.listener_descriptions.unwrap_or_default().into_iter();
    let balancer = ClassicLoadBalancer {
        name: flaws.id(found.load_balancer_name, "name of a load balancer"),
        vpc: found.vpc_id.unwrap_or_default(),
        scheme: match found.scheme.as_deref() {
            Some("internal") => Scheme::Internal,
            _ => Scheme::InternetFacing,
        },
        dns_name: found.dns_name.unwrap_or_default(),
        listeners: listeners.filter_map(listener).collect(),
        health_check: flaws.part(check).unwrap_or(UNCHECKED),
        subnets: found.subnets.unwrap_or_default(),
        groups: found.security_groups.unwrap_or_default(),
        attributes: None,
        tags: None,
    };
    (balancer, flaws)
}

fn listener(described: ListenerDescription) -> Option<ClassicListener> {
    let listener = described.listener?;
    let is_tcp = |protocol: &str| protocol.eq_ignore_ascii_case("tcp");
    let instance_protocol = listener.instance_protocol.as_deref();
    Some(ClassicListener {
        port: u16::try_from(listener.load_balancer_port).ok()?,
        instance_port: u16::try_from(listener.instance_port).ok()?,
        tcp: is_tcp(&listener.protocol) && instance_protocol.is_none_or(is_tcp),
    })
}

fn attributes(found: types::LoadBalancerAttributes) -> Result<ClassicAttributes, AwsError> {
    let connections = required(found.connection_settings, "idle timeout")?;
    Ok(ClassicAttributes {
        idle_timeout: u32::try_from(connections.idle_timeout)
            .map_err(|_| AwsError::without("idle timeout"))?,
        cross_zone: found.cross_zone_load_balancing.is_some_and(|cross| cross.enabled),
    })
}

fn health_check(found: &types::HealthCheck) -> Result<HealthCheck, AwsError> {
    let (protocol, port, path) =
        read_target(&found.target).ok_or_else(|| AwsError::without("target of a health check"))?;
    let number = |value: i32| {
        u32::try_from(value).map_err(|_| AwsError::without("number of a health check"))
    };
    Ok(HealthCheck {
        protocol,
        port,
        path,
        interval: number(found.interval)?,
        timeout: number(found.timeout)?,
        healthy: number(found.healthy_threshold)?,
        unhealthy: number(found.unhealthy_threshold)?,
    })
}

/// Reads a target such as `TCP:6443` or `HTTPS:6443/readyz`.
fn read_target(text: &str) -> Option<(String, u16, Option<String>)> {
    let (protocol, rest) = text.split_once(':')?;
    let (port, path) = match rest.find('/') {
        Some(place) => rest.split_at(place),
        None => (rest, ""),
    };
    let path = Some(path.to_owned()).filter(|path| !path.is_empty());
    Some((protocol.to_owned(), port.parse().ok()?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_health_checks_are_read_with_and_without_a_path() {
        let read = |text| read_target(text);
        assert_eq!(read("SSL:6443"), Some(("SSL".to_owned(), 6443, None)));
        let path = Some("/readyz".to_owned());
        assert_eq!(read("HTTPS:6443/readyz"), Some(("HTTPS".to_owned(), 6443, path)));
        assert_eq!((read("TCP"), read("TCP:http")), (None, None));
    }
}
