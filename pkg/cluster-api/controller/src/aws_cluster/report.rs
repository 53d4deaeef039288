//! [`Report`]: what one reconcile found out about an AWSCluster, and its status in all dialects.
//! Pure.

use aws::AwsError;
use aws_network::{
    Desired, DesiredLoadBalancer, LoadBalancerKind, LogicalId, Memory, NatPolicy, Observed, Part,
    Problem, ROLE_TAG, Reconciliation, Refusal, Role, Scheme, classify_read, outputs,
};
use jiff::Timestamp;
use objects::Object;
use serde_json::{Map, Value, json};

use crate::api::aws_cluster::{
    AwsCluster, AwsClusterStatus, BastionStatus, NetworkStatus, PlanStatus, ProvisionedOnce,
    VpcStatus,
};
use crate::api::cluster::Endpoint;
use crate::api::{Condition, Conditions};
use crate::contract::Contract;

pub(super) const READY: &str = "Ready";
/// Nothing is done but planned.
pub(super) const PLAN_ONLY: &str = "PlanOnly";
/// Whether AWS is accessible.
pub(super) const CREDENTIALS: &str = "PrincipalCredentialRetrieved";
/// Whether the namespace may use the identities.
const USAGE: &str = "PrincipalUsageAllowed";
/// Upstream's reason for identities without credentials.
const NOT_RETRIEVED: &str = "PrincipalCredentialRetrievalFailed";
const SUPPORTED: &str = "SpecSupported";
/// Upstream's reason for errors that need a change of the spec.
const INVALID: &str = "InvalidConfiguration";

/// Results of a reconcile. Fields that were not determined keep their published value.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Everything that the cluster needs is there, and its endpoint is published.
    pub(super) is_ready: bool,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) findings: Findings,
    /// Why it cannot go on without help.
    pub(super) failure: Failure,
    pub(super) conditions: Conditions,
    pub(super) plan: Option<PlanStatus>,
}

/// Whether it can go on without help.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Failure {
    /// The reconciliation ended before this was determined.
    #[default]
    NotJudged,
    None,
    /// Invalid for this reason.
    Invalid(String),
}

impl Report {
    /// A report of an AWSCluster that is not paused.
    pub(super) fn not_paused() -> Self {
        let mut report = Self::default();
        report.conditions.mark_false("Paused", "NotPaused", "");
        report
    }

    /// A report of an AWSCluster that is not paused, with the state of the credentials.
    pub(super) fn of_a_pass(denied: Option<&Denial>) -> Self {
        let mut report = Self::not_paused();
        let conditions = &mut report.conditions;
        match denied {
            Some(denial) if denial.is_about_usage => {
                conditions.mark_false(USAGE, denial.reason, &*denial.message);
                conditions.mark_false(CREDENTIALS, denial.reason, "no identity is permitted");
            }
            Some(denial) => {
                // Without the objects it is unknown whether they permit it.
                if denial.reason != NOT_RETRIEVED {
                    conditions.mark_true(USAGE, "UsageAllowed", "");
                }
                conditions.mark_false(CREDENTIALS, denial.reason, &*denial.message);
            }
            None => {
                conditions.mark_true(USAGE, "UsageAllowed", "");
                conditions.mark_true(CREDENTIALS, "CredentialsUsed", "");
            }
        }
        report
    }

    /// A report that no subnets can be chosen, because the zones of the region are unknown.
    pub(super) fn without_zones(region: &str, error: &AwsError) -> Self {
        let denied = denial(error);
        let mut report = match &denied {
            Some(denial) => Self::of_a_pass(Some(denial)),
            None => Self::default(),
        };
        if denied.is_none() {
            let message = format!("cannot read the zones of region {region}: {error}");
            report.conditions.mark_false(Part::Subnets.condition(), "Unavailable", message);
        }
        report.sum_up();
        report
    }

    /// The conditions of all parts of the network. Whether everything that the cluster needs is
    /// there.
    pub(super) fn judge(
        &mut self,
        desired: &Desired,
        reconciliation: &Reconciliation,
        problems: &[Problem],
    ) -> bool {
        self.conditions.gone.push(PLAN_ONLY);
        let parts = aws_network::conditions(
            desired,
            reconciliation.observed(),
            reconciliation.plan(),
            problems,
        );
        for part in Part::OF_A_CLUSTER {
            if parts.iter().all(|condition| condition.part != part) {
                self.conditions.gone.push(part.condition());
            }
        }
        let has_no_nat = |part: Part| part == Part::NatGateways && desired.nat == NatPolicy::None;
        for part in &parts {
            let is_disabled = part.is_true && has_no_nat(part.part);
            let reason = if is_disabled { "Disabled" } else { part.reason };
            self.conditions.state(part.part.condition(), part.is_true, reason, &*part.message);
        }
        let mut needed = parts.iter().filter(|part| part.part.is_mandatory());
        let invalid = needed.find(|part| !part.is_true && part.reason == INVALID);
        self.failure = invalid.map_or(Failure::None, |part| Failure::Invalid(part.message.clone()));
        aws_network::is_ready(&parts)
    }

    /// Fields that are set and not acted upon.
    pub(super) fn unsupported(&mut self, fields: &[String]) {
        if fields.is_empty() {
            self.conditions.gone.push(SUPPORTED);
        } else {
            let message = format!("not supported and ignored: {}", fields.join(", "));
            self.conditions.mark_false(SUPPORTED, "Unsupported", message);
        }
    }

    pub(super) fn invalid(&mut self, message: &str) {
        self.conditions.mark_false(READY, INVALID, message);
        self.failure = Failure::Invalid(message.to_owned());
    }

    /// Says how it is as a whole: the first part that is not as it should be, or nothing.
    pub(super) fn sum_up(&mut self) {
        let mandatory = |it: &&Condition| {
            let mut parts = Part::OF_A_CLUSTER.into_iter().filter(|part| part.is_mandatory());
            parts.any(|part| part.condition() == it.kind)
        };
        let mut lacking = self.conditions.stated.iter().filter(|it| !it.holds());
        let part = lacking.clone().find(mandatory);
        let no_access = || {
            lacking.find(|it| [USAGE, CREDENTIALS].contains(&&*it.kind)).filter(|_| !self.is_ready)
        };
        let summary = match part.or_else(no_access) {
            Some(part) => {
                let message = format!("{}: {}", part.kind, part.message);
                Condition::new(READY, false, &part.reason, message)
            }
            None if self.is_ready => Condition::new(READY, true, "Ready", ""),
            None => Condition::new(
                READY,
                false,
                "NotReady",
                "the endpoint of the Cluster is not published yet",
            ),
        };
        self.conditions.stated.push(summary);
    }

    /// Writes the findings into the fields of all dialects, so that every reader sees them without
    /// a conversion. Zones and conditions take the form of the contract.
    pub(super) fn publish(
        &self,
        object: &Object<AwsCluster>,
        status: &mut AwsClusterStatus,
        now: Timestamp,
        contract: Contract,
    ) {
        self.publish_milestones(status);
        self.publish_findings(status, contract);
        self.publish_failure(status);
        self.conditions.publish(&mut status.conditions, object.metadata.generation, now);
        status.conditions.iter_mut().for_each(|condition| contract.shape(condition));
        status.plan.clone_from(&self.plan);
        status.observed_generation = Some(object.metadata.generation);
    }

    /// Milestones never go back: kubeconfigs and certificates depend on them, as in all of Cluster
    /// API.
    fn publish_milestones(&self, status: &mut AwsClusterStatus) {
        let ready = self.is_ready || status.was_ready();
        status.ready = Some(ready);
        status.initialization = Some(ProvisionedOnce { provisioned: Some(ready) });
        if let Some(endpoint) = &self.endpoint {
            status.api_endpoints = vec![endpoint.clone()];
        }
    }

    fn publish_failure(&self, status: &mut AwsClusterStatus) {
        let message = match &self.failure {
            Failure::NotJudged => return,
            Failure::None => None,
            Failure::Invalid(message) => Some(message.clone()),
        };
        status.error_reason = message.as_ref().map(|_| INVALID.to_owned());
        status.error_message = message;
        status.failure_reason.clone_from(&status.error_reason);
        status.failure_message.clone_from(&status.error_message);
    }

    fn publish_findings(&self, status: &mut AwsClusterStatus, contract: Contract) {
        let found = &self.findings;
        if let Some(vpc) = &found.vpc {
            status.resources.get_or_insert_default().vpc = Some(vpc.clone());
            status.nat_gateway_mode = found.nat_mode.map(str::to_owned);
        }
        if let Some(network) = &found.network {
            status.network = Some(network.clone());
            status.network_status = Some(network.clone());
        }
        if found.knows_bastions {
            status.bastion.clone_from(&found.bastion);
        }
        if !found.failure_domains.is_empty() {
            status.failure_domains = Some(contract.failure_domains(&found.failure_domains));
        }
    }
}

/// Observed parts of the cluster; `None` if not read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Findings {
    pub(super) vpc: Option<VpcStatus>,
    /// The policy in effect for NAT gateways of a network that is ours; `None` where the spec's cannot
    /// be followed.
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
    /// Findings for a cluster of this desired state.
    pub(super) fn of(desired: &Desired, observed: &Observed, memory: &Memory) -> Self {
        let vpc = vpc(desired, observed, memory);
        let seen = outputs(desired, observed, vpc.as_ref().map(|vpc| &*vpc.id));
        let has_groups = observed.security_groups.get().is_some();
        let is_managed = vpc.as_ref().is_some_and(|vpc| vpc.managed);
        Self {
            vpc,
            nat_mode: desired.nat_in_effect(memory).filter(|_| is_managed).map(NatPolicy::word),
            network: has_groups.then(|| NetworkStatus {
                security_groups: groups(desired, observed).into_iter().collect(),
                api_server_elb: balancer(desired.load_balancer.as_ref(), observed),
                secondary_api_server_elb: balancer(
                    desired.secondary_load_balancer.as_ref(),
                    observed,
                ),
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
        |id: &str| observed.vpcs.of_id(id).is_some_and(|found| desired.identity.owns(&found.tags));
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

fn balancer(desired: Option<&DesiredLoadBalancer>, observed: &Observed) -> Option<Value> {
    let DesiredLoadBalancer { kind, name, .. } = desired?;
    match kind {
        LoadBalancerKind::Classic => {
            let found = observed.classic.of_id(name)?;
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

/// Why AWS is not accessible.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The namespace is not permitted to use an identity.
    pub(super) is_about_usage: bool,
}

impl Denial {
    pub(super) fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message, is_about_usage: false }
    }

    /// An identity has no credentials.
    pub(super) fn of_credentials(message: String) -> Self {
        Self::new(NOT_RETRIEVED, message)
    }
}

/// Whether a failure of a read is about who asks.
pub(super) fn denial(error: &AwsError) -> Option<Denial> {
    let reason = match error {
        // No read is held back by anything but credentials that are not there.
        AwsError::NotAssumed { .. } => "CredentialProviderBuildFailed",
        AwsError::NotSent { .. } => "CredentialsNotFound",
        AwsError::Refused(refused) => match classify_read(refused) {
            Refusal::Permission => "PermissionDenied",
            Refusal::Clock => "ClockSkew",
            _ => return None,
        },
        AwsError::Unanswered { .. } => return None,
    };
    Some(Denial::new(reason, error.to_string()))
}

#[cfg(test)]
mod tests;
