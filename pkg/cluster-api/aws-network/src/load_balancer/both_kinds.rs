//! Code that the plans of both kinds of load balancer share.

use std::collections::BTreeSet;

use crate::desired::DesiredLoadBalancer;
use crate::identity::Ownership;
use crate::load_balancers::Scheme;
use crate::memory::{Absence, LogicalId};
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::{Lookup, Query};
use crate::vpc::Home;

/// Seconds until the DNS name of a new load balancer is looked for again.
const DNS_NAME: u64 = 15;

/// Where the load balancer lies, as far as that exists.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) vpc: String,
    pub(super) subnets: Vec<String>,
    pub(super) groups: Vec<String>,
}

/// Whether a load balancer of our name may be made (`rule:a-published-endpoint-is-not-replaced`).
pub(super) fn may_be_made(
    situation: &Situation<'_>,
    wanted: &DesiredLoadBalancer,
    plan: &mut Plan,
) -> bool {
    let is_settling =
        situation.memory.absence(&LogicalId::LoadBalancer, situation.now) != Absence::Certain;
    if !wanted.may_be_created && !is_settling {
        let message = format!(
            "load balancer {} does not exist any more. A new load balancer has another DNS name, \
             which kubeconfigs and certificates do not contain: set the annotation \
             aws.cluster.x-k8s.io/allow-lb-recreate=true to create it",
            wanted.name
        );
        plan.problem(Part::LoadBalancer, Reason::LoadBalancerMissing, message);
        return false;
    }
    true
}

/// Whether a load balancer of our name is ours; otherwise that is the problem, for names are unique
/// in an account.
pub(super) fn is_ours(
    situation: &Situation<'_>,
    home: &Home<'_>,
    name: &str,
    vpc: &str,
    ownership: Ownership,
    plan: &mut Plan,
) -> bool {
    let is_ours = ownership == Ownership::Ours && vpc == home.id;
    if !is_ours {
        let cluster = &situation.identity().cluster;
        let message = format!(
            "a load balancer in {vpc} that does not belong to cluster {cluster} has the name {name}"
        );
        plan.problem(Part::LoadBalancer, Reason::OwnershipConflict, message);
    }
    is_ours
}

pub(super) fn check_scheme(wanted: &DesiredLoadBalancer, found: Scheme, plan: &mut Plan) {
    if wanted.scheme != found {
        let message = format!(
            "the scheme of load balancer {} cannot change; the spec has another scheme",
            wanted.name
        );
        plan.problem(Part::LoadBalancer, Reason::Immutable, message);
    }
}

pub(super) fn await_name(
    wanted: &DesiredLoadBalancer,
    dns_name: &str,
    look: Query,
    plan: &mut Plan,
) {
    if dns_name.is_empty() {
        let what = format!("load balancer {} has no DNS name yet", wanted.name);
        plan.wait(Part::LoadBalancer, what, DNS_NAME, look);
    }
}

pub(super) fn lookup(wanted: &DesiredLoadBalancer) -> Lookup {
    Lookup { names: vec![wanted.name.clone()], vpc: None }
}

pub(super) fn as_set(ids: &[String]) -> BTreeSet<&String> {
    ids.iter().collect()
}
