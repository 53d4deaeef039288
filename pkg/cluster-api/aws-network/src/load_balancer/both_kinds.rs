//! Code that the plans of both kinds of load balancer share.

use std::collections::BTreeSet;

use crate::action::{Action, ElbV2Action};
use crate::desired::DesiredLoadBalancer;
use crate::identity::{Ownership, Tags};
use crate::load_balancers::Scheme;
use crate::memory::Absence;
use crate::plan::{Part, Plan, Reason, Situation};
use crate::query::Query;
use crate::tags::difference;
use crate::vpc::Home;

/// Seconds until the DNS name of a new load balancer is looked for again.
const DNS_NAME: u64 = 15;

/// Where the load balancer lies, as far as that exists.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) vpc: String,
    pub(super) subnets: Vec<String>,
    /// Whether all of these have IPv6.
    pub(super) has_ipv6: bool,
    pub(super) groups: Vec<String>,
}

/// The input of a plan for the load balancer.
pub(super) struct Input<'a> {
    /// The part of the cluster that the load balancer is.
    pub(super) part: Part,
    pub(super) situation: &'a Situation<'a>,
    pub(super) home: &'a Home<'a>,
    pub(super) wanted: &'a DesiredLoadBalancer,
    pub(super) site: Option<Site>,
    /// Whether instances are reached by IPv6, in whichever subnet they are.
    pub(super) reaches_ipv6: bool,
}

impl Input<'_> {
    /// Whether a load balancer of our name may be made
    /// (`rule:a-published-endpoint-is-not-replaced`).
    pub(super) fn may_be_made(&self, plan: &mut Plan) -> bool {
        let Self { situation, wanted, .. } = self;
        let absence = situation.memory.absence(&wanted.logical_id(), situation.now);
        if wanted.may_be_created || absence != Absence::Certain {
            return true;
        }
        let message = format!(
            "load balancer {} does not exist any more. A new load balancer has another DNS name, \
             which kubeconfigs and certificates do not contain: set the annotation \
             aws.cluster.x-k8s.io/allow-lb-recreate=true to create it",
            wanted.name
        );
        plan.problem(self.part, Reason::LoadBalancerMissing, message);
        false
    }

    /// Whether a load balancer of our name is ours; otherwise that is the problem, for names are
    /// unique in an account.
    pub(super) fn is_ours(&self, vpc: &str, tags: &Tags, id: &str, plan: &mut Plan) -> bool {
        let ownership = self.situation.ownership(tags, id, &self.wanted.logical_id());
        let is_ours = ownership == Ownership::Ours && vpc == self.home.id;
        if !is_ours {
            let (cluster, name) = (&self.situation.identity().cluster, &self.wanted.name);
            let message = format!(
                "a load balancer in {vpc} that does not belong to cluster {cluster} has the name \
                 {name}"
            );
            plan.problem(self.part, Reason::OwnershipConflict, message);
        }
        is_ours
    }

    pub(super) fn check_scheme(&self, found: Scheme, plan: &mut Plan) {
        if self.wanted.scheme != found {
            let message = format!(
                "the scheme of load balancer {} cannot change; the spec has another scheme",
                self.wanted.name
            );
            plan.problem(self.part, Reason::Immutable, message);
        }
    }

    pub(super) fn await_name(&self, dns_name: &str, look: Query, plan: &mut Plan) {
        if dns_name.is_empty() {
            let what = format!("load balancer {} has no DNS name yet", self.wanted.name);
            plan.wait(self.part, what, DNS_NAME, look);
        }
    }

    pub(super) fn tags(&self) -> Tags {
        self.situation.desired.load_balancer_tags(&self.wanted.name)
    }

    /// Tags to set, and keys to remove.
    pub(super) fn tag_drift(&self, present: &Tags) -> (Tags, Vec<String>) {
        difference(present, &self.tags(), &self.situation.desired.retired_tags)
    }

    /// Corrects the tags of a resource of the second generation.
    pub(super) fn repair_tags(&self, arn: &str, present: &Tags, plan: &mut Plan) {
        let (tags, keys) = self.tag_drift(present);
        let arns = || vec![arn.to_owned()];
        if !tags.is_empty() {
            let add = ElbV2Action::AddTags { arns: arns(), tags };
            plan.act(self.part, Action::ElbV2(add));
        }
        if !keys.is_empty() {
            let remove = ElbV2Action::RemoveTags { arns: arns(), keys };
            plan.act(self.part, Action::ElbV2(remove));
        }
    }
}

pub(super) fn as_set(ids: &[String]) -> BTreeSet<&String> {
    ids.iter().collect()
}
