//! [`Findings`]: what a leg has seen on AWS that others read, in the words of upstream's status.
//! Pure.

use aws_network::{
    Desired, DesiredLoadBalancer, LoadBalancerKind, LogicalId, Memory, Observed, ROLE_TAG, Role,
    Scheme, outputs,
};
use serde_json::{Map, Value, json};

use crate::api::aws_cluster::{BastionStatus, NetworkStatus, VpcStatus};

/// What was seen. What was not looked at is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Findings {
    pub(super) vpc: Option<VpcStatus>,
    /// The policy for NAT gateways of a network that is ours.
    pub(super) nat_mode: Option<&'static str>,
    pub(super) network: Option<NetworkStatus>,
    /// Whether bastions were looked for.
    pub(super) knows_bastions: bool,
    pub(super) bastion: Option<BastionStatus>,
    /// Zones, and whether each can have a control plane.
    pub(super) failure_domains: Vec<(String, bool)>,
    /// The DNS name of the load balancer.
    pub(super) host: Option<String>,
}

impl Findings {
    /// Of a cluster that shall be so.
    pub(super) fn of(desired: &Desired, observed: &Observed, memory: &Memory) -> Self {
        let vpc = vpc(desired, observed, memory);
        let seen = outputs(desired, observed, vpc.as_ref().map(|vpc| &*vpc.id));
        let has_groups = observed.security_groups.get().is_some();
        let is_managed = vpc.as_ref().is_some_and(|vpc| vpc.managed);
        Self {
            vpc,
            nat_mode: is_managed.then(|| desired.nat.word()),
            network: has_groups.then(|| NetworkStatus {
                security_groups: groups(desired, observed).into_iter().collect(),
                api_server_elb: balancer(desired, observed),
                nat_gateways_ips: seen.nat_addresses.iter().map(ToString::to_string).collect(),
            }),
            knows_bastions: observed.bastions.get().is_some(),
            bastion: bastion(desired, observed),
            failure_domains: seen.failure_domains,
            host: seen.endpoint,
        }
    }
}

fn vpc(desired: &Desired, observed: &Observed, memory: &Memory) -> Option<VpcStatus> {
    let all = observed.vpcs.all();
    let owned =
        |id: &str| all.iter().any(|found| found.id == id && desired.identity.owns(&found.tags));
    if let Some(id) = &desired.vpc_id {
        return Some(VpcStatus { id: id.clone(), managed: owned(id) });
    }
    let recorded = memory.id(&LogicalId::Vpc).filter(|id| owned(id));
    let mut ours = all.iter().filter(|found| desired.identity.owns(&found.tags));
    let id = recorded.map(str::to_owned).or_else(|| Some(ours.next()?.id.clone()))?;
    Some(VpcStatus { id, managed: true })
}

fn groups(desired: &Desired, observed: &Observed) -> Map<String, Value> {
    let mut groups = Map::new();
    for role in Role::ALL {
        let word = role.as_str();
        let mut ours = observed.security_groups.all().iter().filter(|found| {
            desired.identity.owns(&found.tags)
                && found.tags.get(ROLE_TAG).is_some_and(|it| it == word)
        });
        let found = match desired.groups.overrides.get(&role) {
            Some(id) => Some(json!({"id": id})),
            None => ours.next().map(|found| json!({"id": found.id, "name": found.name})),
        };
        if let Some(found) = found {
            groups.insert(word.to_owned(), found);
        }
    }
    groups
}

fn balancer(desired: &Desired, observed: &Observed) -> Option<Value> {
    let DesiredLoadBalancer { kind, name, .. } = desired.load_balancer.as_ref()?;
    match kind {
        LoadBalancerKind::Classic => {
            let found = observed.classic.all().iter().find(|found| found.name == *name)?;
            Some(json!({
                "name": name, "dnsName": found.dns_name, "scheme": scheme(found.scheme),
                "subnetIds": found.subnets, "securityGroupIds": found.groups,
                "loadBalancerType": "classic",
            }))
        }
        LoadBalancerKind::Network => {
            let found = observed.network.all().iter().find(|found| found.name == *name)?;
            Some(json!({
                "name": name, "arn": found.arn, "dnsName": found.dns_name,
                "scheme": scheme(found.scheme), "subnetIds": found.subnets,
                "securityGroupIds": found.groups, "loadBalancerType": "nlb",
            }))
        }
    }
}

fn scheme(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::InternetFacing => "internet-facing",
        Scheme::Internal => "internal",
    }
}

fn bastion(desired: &Desired, observed: &Observed) -> Option<BastionStatus> {
    let mut all = observed.bastions.all().iter();
    let ours = all.find(|found| found.is_live() && desired.identity.owns(&found.tags))?;
    Some(BastionStatus {
        id: ours.id.clone(),
        instance_state: Some(format!("{:?}", ours.state).to_lowercase()),
        public_ip: ours.public_ip.map(|address| address.to_string()),
        private_ip: None,
    })
}

#[cfg(test)]
mod tests;
