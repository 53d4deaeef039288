//! The deletion of an AWSCluster: it goes when nothing of it is left on AWS. A deletion that has to
//! leave resources of others names them, and the ways to end it
//! (`rule:a-deletion-names-what-it-leaves`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_network::{Goal, Other, Problem, Reconciliation, Rest, listed};
use events::EventType;
use objects::Object;
use workqueue::{Next, Retry};

use super::admission::Admission;
use super::aws_clusters::AwsClusters;
use super::owner::Owner;
use super::pass::Pass;
use super::reconciliations::{Pause, Turn};
use super::report::{READY, Report};
use super::{goal, stored_memory};
use crate::api::aws_cluster::{AwsCluster, AwsClusterStatus};
use crate::api::{
    ABANDON_ANNOTATION, ADOPT_ANNOTATION, AWS_CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, GROUP,
    INFRASTRUCTURE_GROUP, OWNER_ID_ANNOTATION,
};
use crate::kind_caches::Known;

const DELETING: &str = "Deleting";
const BEING_DELETED: &str = "the AWSCluster is being deleted";
/// Kinds whose objects run in the network of a cluster.
const DEPENDENTS: [(&str, &str); 4] = [
    (GROUP, "Machine"),
    (GROUP, "MachinePool"),
    (INFRASTRUCTURE_GROUP, "AWSMachine"),
    (INFRASTRUCTURE_GROUP, "AWSMachinePool"),
];
const DEPENDENTS_AGAIN: Duration = Duration::from_secs(20);
/// Something stands in the way.
const FAILED: &str = "DeletingFailed";
/// Something that is not ours is in the way.
pub(super) const CONFLICT: &str = "OwnershipConflict";
/// Until a deletion that only a person can help is looked at again.
const LEFT_AGAIN: Duration = Duration::from_secs(60);
const ABANDONED: &str = "AWS is not accessible and no created resource is known; resources on \
    AWS, if there are any, are left";

impl AwsClusters {
    pub(super) async fn end(
        &self,
        object: &Arc<Object<AwsCluster>>,
        owner: &Owner,
    ) -> Result<Next, Retry> {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        if !object.metadata.has_finalizer(AWS_CLUSTER_FINALIZER) {
            self.reconciliations.forget(key);
            return Ok(Next::Done);
        }
        if let Some(message) = self.dependents(object, &owner.name).await {
            let mut report = Report::not_paused();
            report.conditions.mark_true(DELETING, "WaitingForMachines", message);
            report.conditions.mark_false(READY, DELETING, BEING_DELETED);
            self.publish(object, &report, None).await.map_err(manager::retry)?;
            return Ok(Next::After(DEPENDENTS_AGAIN));
        }
        let access = match self.admission(object).await.map_err(manager::retry)? {
            Admission::Granted(access) => access,
            Admission::Noted => return Ok(Next::Done),
            Admission::Denied(denial) => {
                let report = Report::of_a_pass(Some(&denial));
                return self.withhold(object, report, FAILED, &denial.message).await;
            }
        };
        let removal = goal::absent(object, &owner.name, &self.options);
        let (identity, goal) = (removal.identity.clone(), Goal::Absent(removal));
        if self.options.plan_only {
            return self.only_plan(object, &identity, goal, &access).await;
        }
        let stored = || stored_memory::read(object);
        // Who says now that it may go does not wait for the next look.
        let is_news = is_stuck(object) && goal::may_be_abandoned(object);
        let reconciliation = match self.reconciliations.turn(key, uid, &goal, "", is_news, stored) {
            Turn::Rest(left) => return Ok(Next::After(left)),
            Turn::Publish(reconciliation, _)
            | Turn::Go(reconciliation)
            | Turn::Judge(reconciliation) => *reconciliation,
        };
        let pass = self.lead(object, &identity, reconciliation, &access).await;
        if pass.is_broken_off {
            return Ok(Next::Done);
        }
        if let (Rest::Reached, Some(doubt)) = (pass.rest, &access.doubt) {
            let report = Report::of_a_pass(Some(doubt));
            return self.withhold(object, report, FAILED, &doubt.message).await;
        }
        let others = of_no_living_owner(
            &pass.reconciliation.plan().others,
            &self.owners().unwrap_or_default(),
        );
        if pass.rest == Rest::Reached && others.is_empty() {
            let message = "all its resources on AWS are deleted";
            return self.let_go(object, EventType::Normal, "Deleted", message).await;
        }
        if pass.rest == Rest::Reached && goal::may_be_abandoned(object) {
            let message = abandoned(&others);
            return self.let_go(object, EventType::Warning, "Abandoned", &message).await;
        }
        let is_unseen = is_unseen(&pass, &object.status);
        if is_unseen && goal::may_be_abandoned(object) {
            return self.let_go(object, EventType::Warning, "Abandoned", ABANDONED).await;
        }
        let problems = pass.reconciliation.problems();
        let mut report = report_of(&pass, &problems, is_unseen);
        if problems.is_empty() && !others.is_empty() && is_all_gone(&pass.reconciliation) {
            let message = blocked(&others, identity.adopt);
            self.event_once(object, DELETING, CONFLICT, &message);
            report.conditions.mark_true(DELETING, CONFLICT, message);
        }
        let published = self.publish(object, &report, Some(pass.reconciliation.memory())).await;
        // The next pass comes at once, and publishes again.
        let length = match pass.rest {
            _ if published.is_err() => Duration::ZERO,
            Rest::Reached => LEFT_AGAIN,
            rest => self.length(rest),
        };
        let next = self.reconciliations.keep(
            key,
            uid,
            goal,
            pass.reconciliation,
            Pause { reads: pass.reads, ..Pause::of(length) },
        );
        self.report_problems(object, &pass.before, &problems);
        published.map_err(manager::retry)?;
        Ok(Next::After(next))
    }

    /// AWS may not be called for one that is deleted. It stays until that is mended, or until its
    /// user lets it go where nothing is known to have been made
    /// (`rule:abandoned-only-by-its-user`).
    pub(super) async fn withhold(
        &self,
        object: &Arc<Object<AwsCluster>>,
        mut report: Report,
        reason: &'static str,
        message: &str,
    ) -> Result<Next, Retry> {
        self.reconciliations.forget(&object.metadata.key);
        let memory = stored_memory::read(object);
        let is_unseen = memory.records.is_empty() && !was_seen(&object.status);
        if is_unseen && goal::may_be_abandoned(object) {
            return self.let_go(object, EventType::Warning, "Abandoned", ABANDONED).await;
        }
        let message = with_way_out(message.to_owned(), is_unseen);
        self.event_once(object, DELETING, reason, &message);
        report.conditions.mark_true(DELETING, reason, message);
        report.conditions.mark_false(READY, DELETING, BEING_DELETED);
        self.publish(object, &report, None).await.map_err(manager::retry)?;
        Ok(Next::After(LEFT_AGAIN))
    }

    async fn let_go(
        &self,
        object: &Arc<Object<AwsCluster>>,
        severity: EventType,
        reason: &'static str,
        message: &str,
    ) -> Result<Next, Retry> {
        self.reconciliations.forget(&object.metadata.key);
        self.event(object, severity, reason, message);
        let removed = self.client.remove_finalizer(object, AWS_CLUSTER_FINALIZER).await;
        removed.map(|_| Next::Done).map_err(manager::retry)
    }

    /// Machines that run in the network of the cluster, or may.
    async fn dependents(&self, object: &Object<AwsCluster>, cluster: &str) -> Option<String> {
        let namespace = object.metadata.namespace().unwrap_or_default();
        let mut left = Vec::new();
        for (group, kind) in DEPENDENTS {
            let (kind_cache, known) = self.machines.known(group, kind).await;
            if let Known::Nothing(why) = known {
                return Some(format!("{kind}s: {why}"));
            }
            kind_cache.objects.frozen(|all| {
                let of_it = all.values().filter(|it| {
                    it.metadata.namespace() == Some(namespace)
                        && it
                            .metadata
                            .labels
                            .get(CLUSTER_NAME_LABEL)
                            .is_some_and(|it| it == cluster)
                });
                left.extend(of_it.map(|it| format!("{kind} {}", it.metadata.name())));
            });
        }
        left.sort();
        let left: Vec<_> = left.iter().map(String::as_str).collect();
        (!left.is_empty()).then(|| format!("waiting for the deletion of {}", listed(&left)))
    }
}

/// Whether nothing of ours was seen: at most another look is awaited.
fn is_all_gone(reconciliation: &Reconciliation) -> bool {
    let plan = reconciliation.plan();
    plan.reads.is_empty() && plan.actions.is_empty() && plan.waits.is_empty()
}

/// AWS cannot be read, and no creation is known
/// (`rule:abandoned-only-by-its-user`).
fn is_unseen(pass: &Pass, status: &AwsClusterStatus) -> bool {
    let is_unread = pass.denied.is_some() || pass.reconciliation.observed().vpcs.get().is_none();
    is_unread && pass.reconciliation.memory().records.is_empty() && !was_seen(status)
}

/// Whether something of it was there once: what others made may have been taken over.
fn was_seen(status: &AwsClusterStatus) -> bool {
    let vpc = status.resources.as_ref().and_then(|resources| resources.vpc.as_ref());
    status.was_ready() || vpc.is_some_and(|vpc| vpc.managed)
}

/// Whether the condition names the annotation that abandons the network.
fn is_stuck(object: &Object<AwsCluster>) -> bool {
    let mut conditions = object.status.conditions.iter();
    conditions.any(|it| it.kind == DELETING && it.message.contains(ABANDON_ANNOTATION))
}

fn report_of(pass: &Pass, problems: &[Problem], is_unseen: bool) -> Report {
    let mut report = Report::of_a_pass(pass.denied.as_ref());
    let reason = if problems.is_empty() { DELETING } else { FAILED };
    let message = with_way_out(left_over(&pass.reconciliation, problems), is_unseen);
    report.conditions.mark_true(DELETING, reason, message);
    report.conditions.mark_false(READY, DELETING, BEING_DELETED);
    report
}

/// A message that also says how a user ends the deletion of what was never seen on AWS.
fn with_way_out(message: String, is_unseen: bool) -> String {
    if !is_unseen {
        return message;
    }
    format!(
        "{message}; no created resource is known; if nothing was created, set the annotation \
         {ABANDON_ANNOTATION}=true to finish the deletion"
    )
}

/// The resources that a deletion waits for, and its problems.
fn left_over(reconciliation: &Reconciliation, problems: &[Problem]) -> String {
    let problems = problems.iter().map(|problem| problem.message.as_str());
    let waits = reconciliation.plan().waits.iter().map(|wait| wait.what.as_str());
    let all: Vec<_> = problems.chain(waits).collect();
    if all.is_empty() { "AWS may not list all resources yet".to_owned() } else { listed(&all) }
}

/// Maximum of resources that a condition names.
const NAMED: usize = 2;
/// Maximum of resources that the event of a deletion names.
const NAMED_AT_THE_END: usize = 20;

/// Resources without a living owner: another AWSCluster of the same name deletes its own.
pub(super) fn of_no_living_owner(others: &[Other], living: &BTreeSet<String>) -> Vec<Other> {
    let lives = |other: &&Other| other.owner_id.as_ref().is_some_and(|id| living.contains(id));
    others.iter().filter(|other| !lives(other)).cloned().collect()
}

/// Why a deletion cannot end, and what its user can do.
pub(super) fn blocked(others: &[Other], adopts: bool) -> String {
    let all = named(others, NAMED);
    let have = if others.len() == 1 { "has" } else { "have" };
    let is_upstreams = others.iter().any(|other| other.owner_id.is_none());
    let owners: BTreeSet<_> = others.iter().filter_map(|other| other.owner_id.as_ref()).collect();
    let mut ways = Vec::new();
    if is_upstreams && !adopts {
        ways.push(format!("{ADOPT_ANNOTATION}=true"));
    }
    ways.extend(owners.iter().take(1).map(|id| format!("{OWNER_ID_ANNOTATION}={id}")));
    let keep = format!("the annotation {ABANDON_ANNOTATION}=true to keep them");
    let ways = match ways.as_slice() {
        [] => format!("an EKS cluster uses the VPC, which cannot be adopted; set {keep}"),
        ways => format!("set the annotation {} to delete them, or {keep}", ways.join(" or ")),
    };
    format!(
        "cannot finish deletion: {all} {have} the cluster tag but not the owner-id of this AWSCluster; {ways}"
    )
}

pub(super) fn abandoned(others: &[Other]) -> String {
    let all = named(others, NAMED_AT_THE_END);
    format!("left on AWS, with the cluster tag but not the owner-id of this AWSCluster: {all}")
}

fn named(others: &[Other], limit: usize) -> String {
    let ids: Vec<_> = others.iter().map(|other| other.id.as_str()).collect();
    let first = ids.iter().take(limit).copied().collect::<Vec<_>>().join(", ");
    match ids.len().checked_sub(limit) {
        Some(more @ 1..) => format!("{first} and {more} more"),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// rule:abandoned-only-by-its-user
    #[test]
    fn what_was_taken_over_from_others_is_known_though_none_of_it_was_made_here() {
        let was_seen = |status: Value| was_seen(&serde_json::from_value(status).unwrap());
        assert!(!was_seen(json!({})));
        assert!(!was_seen(json!({"ready": false, "resources": {"zones": ["a"]}})));
        assert!(!was_seen(json!({"resources": {"vpc": {"id": "vpc-1", "managed": false}}})));
        assert!(was_seen(json!({"ready": true})));
        assert!(was_seen(json!({"initialization": {"provisioned": true}})));
        assert!(was_seen(json!({"resources": {"vpc": {"id": "vpc-1", "managed": true}}})));
    }
}

#[cfg(test)]
mod left_behind_tests {
    use super::*;

    fn other(id: &str, owner_id: Option<&str>) -> Other {
        Other { id: id.to_owned(), owner_id: owner_id.map(str::to_owned) }
    }

    #[test]
    fn a_deletion_that_is_blocked_names_two_resources_and_the_ways_out() {
        let all = ["vpc-1", "sg-2", "sg-3", "sg-4", "sg-5"].map(|id| other(id, None));
        let wanted = "cannot finish deletion: vpc-1, sg-2 and 3 more have the cluster tag but not the owner-id of this AWSCluster; \
                      set the annotation aws.cluster.x-k8s.io/adopt=true to delete them, or the annotation aws.cluster.x-k8s.io/allow-abandon=true to keep them";
        assert_eq!(blocked(&all, false), wanted);
        // Adoption was asked for and refused: that is so for EKS only.
        let refused = blocked(&all, true);
        assert!(!refused.contains("/adopt=true") && refused.contains("EKS"), "{refused}");
        let vanished = blocked(&[other("vpc-1", Some("x"))], false);
        assert!(vanished.starts_with("cannot finish deletion: vpc-1 has the"), "{vanished}");
        assert!(
            vanished.contains("annotation aws.cluster.x-k8s.io/owner-id=x to delete"),
            "{vanished}"
        );
        assert!(!vanished.contains("/adopt=true"), "{vanished}");
    }

    #[test]
    fn resources_of_an_awscluster_that_lives_do_not_block_another_of_the_same_name() {
        let all = [other("a", None), other("b", Some("lives")), other("c", Some("gone"))];
        let living = BTreeSet::from(["lives".to_owned()]);
        let left = of_no_living_owner(&all, &living);
        assert_eq!(left, [other("a", None), other("c", Some("gone"))]);
    }

    #[test]
    fn an_event_names_twenty_resources_and_how_many_more_there_are() {
        let all: Vec<_> = (0..25).map(|number| other(&format!("sg-{number}"), None)).collect();
        assert!(abandoned(&all).ends_with("sg-18, sg-19 and 5 more"), "{}", abandoned(&all));
    }
}
