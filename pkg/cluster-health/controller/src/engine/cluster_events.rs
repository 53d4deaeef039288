//! The events of clusters: published transitions and causes, the first of a run of failures, and
//! [`Notices`] about ends of credentials and addresses that are down.

use super::notices::Notice;

use events::{EventType, ObjectRef, Recorder};
use health::{Change, Code, Effect, Report, Standing, Verdict};
use jiff::Timestamp;

use super::flavour::now;
use super::member_cluster::MemberCluster;

/// Tells what a probe, or the lack of probes, did (`rule:events-follow-what-is-published`).
pub(crate) fn tell(
    recorder: &Recorder,
    member: &MemberCluster,
    report: Option<&Report>,
    effect: Effect,
) {
    let say = |kind, reason, message| recorder.event(object(member), kind, reason, message);
    let published = matches!(effect.change, Change::Ready { .. });
    // What is published at once is told by that.
    if let Some(report) = report.filter(|_| effect.first_failure && !published) {
        let reason = first_failure_reason(report);
        say(EventType::Warning, reason, health::one_line(&sentence(report)));
    }
    if published || effect.new_cause {
        let (standing, message) = member.view(|it| {
            let standing = it.member.published().map(|published| published.standing);
            (standing, health::explain(it.member, now().monotonic))
        });
        match standing {
            // The first word about a cluster that is well is no news.
            Some(Standing::Ready) if matches!(effect.change, Change::Ready { from: None, .. }) => {}
            Some(standing) => {
                let (kind, reason) = transition(standing);
                say(kind, reason, message);
            }
            None => {}
        }
    }
    if effect.flapping {
        let text = "readiness keeps changing; from now on it takes more successes in a row to be \
                    called ready"
            .to_owned();
        say(EventType::Warning, "ClusterFlapping", text);
    }
}

/// Tells what is new of the way to the cluster.
pub(crate) fn record_notices(recorder: &Recorder, member: &MemberCluster, now: Timestamp) {
    for Notice { kind, reason, text } in member.notices(now) {
        recorder.event(object(member), kind, reason, text);
    }
}

fn sentence(report: &Report) -> String {
    match &report.detail {
        Some(detail) => format!("{}: {detail}", report.finding),
        None => report.finding.to_string(),
    }
}

fn first_failure_reason(report: &Report) -> &'static str {
    match (report.finding.verdict(), report.finding.code()) {
        (Verdict::Config, _) => "MalformedClusterConfig",
        (_, Some(Code::Unauthorized | Code::Forbidden)) => "CredentialRejected",
        // Its health was retrieved.
        (_, Some(Code::NodesNotReady)) => "NodesNotReady",
        _ => "RetrievingClusterHealthFailed",
    }
}

fn transition(standing: Standing) -> (EventType, &'static str) {
    match standing {
        Standing::Ready => (EventType::Normal, "ClusterReady"),
        Standing::NotReady => (EventType::Warning, "ClusterNotReady"),
        Standing::Offline => (EventType::Warning, "ClusterOffline"),
        Standing::Malformed => (EventType::Warning, "MalformedClusterConfig"),
        Standing::Unknown => (EventType::Warning, "ClusterStatusUnknown"),
    }
}

fn object(member: &MemberCluster) -> ObjectRef {
    let resource = member.flavour.resource();
    let (namespace, name) = member.cluster.namespace_and_name();
    ObjectRef::new(&resource.api_version(), &resource.kind, namespace, name, &member.cluster.uid)
}
