//! Reads from a member what a check judges. Of what cannot be read the check learns only why.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Check, CheckEvidence, CheckKind, Code, SeenLease, Workload};
use http::StatusCode;
use jiff::Timestamp;
use probe::{Client, Prober, Read, Reader};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::paging::{Abort, Collect, Member, MemberReader, Unread, list};

/// Requests of one run.
const REQUESTS_MAX: usize = 4;
/// The longest answer, except for pages of Nodes, which are not held.
const ANSWER_MAX: usize = 1 << 20;
const NODES: &str = "/api/v1/nodes";
const PAGE_NODES: usize = 500;
/// The Leases of the first 500 Nodes by name stand for all.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=500";

/// Ready Nodes, and all.
pub(crate) type NodeCount = (usize, usize);

/// Makes one run of a check, for which no probe waits. `nodes` are those of a list that
/// was made for another purpose and is new enough.
pub(crate) async fn examine(
    prober: &Prober,
    client: &Arc<Client>,
    check: &Check,
    nodes: Option<NodeCount>,
) -> CheckEvidence {
    let limit = check.timeout;
    let run = async {
        match &check.kind {
            CheckKind::NodesReady { .. } => match nodes {
                Some((ready, total)) => CheckEvidence::Nodes { ready, total },
                None => count_nodes(prober, client).await,
            },
            CheckKind::NodeLeases { .. } => leases(prober, client, limit).await,
            CheckKind::ApiService { name } => {
                let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
                let what = format!("APIService {name}");
                object(prober, client, (&path, &what), limit, by_condition).await
            }
            CheckKind::Available { kind, namespace, name } => {
                let (plural, kind, judge) = workload(*kind);
                let path = format!("/apis/apps/v1/namespaces/{namespace}/{plural}/{name}");
                let what = format!("{kind} {namespace}/{name}");
                object(prober, client, (&path, &what), limit, judge).await
            }
        }
    };
    timeout(limit, run).await.unwrap_or_else(|_| nothing(format!("no answer within {limit:?}")))
}

fn nothing(why: impl Into<Box<str>>) -> CheckEvidence {
    CheckEvidence::Nothing(why.into())
}

async fn count_nodes(prober: &Prober, client: &Arc<Client>) -> CheckEvidence {
    let mut member =
        Bounded { member: MemberReader::borrowing(prober, client), left: REQUESTS_MAX };
    match list(&mut member, NODES, &[], PAGE_NODES, Counter::default).await {
        Ok(Counter { ready, total }) => CheckEvidence::Nodes { ready, total },
        Err(abort) => nothing(format!("cannot list the Nodes: {abort}")),
    }
}

/// Sends so many requests at most.
struct Bounded<M> {
    member: M,
    left: usize,
}

impl<M: Member> Member for Bounded<M> {
    fn get<'a>(
        &'a mut self,
        path: &'a str,
        take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
        let Some(left) = self.left.checked_sub(1) else {
            let why = format!("the list takes more than {REQUESTS_MAX} requests");
            return Box::pin(std::future::ready(Err(Unread::Failed(why.into()))));
        };
        self.left = left;
        self.member.get(path, take)
    }
}

#[derive(Default)]
struct Counter {
    ready: usize,
    total: usize,
}

impl Collect for Counter {
    type Item = Observed;

    fn add(&mut self, node: Observed) -> Result<(), Abort> {
        self.total += 1;
        self.ready += usize::from(node.is("Ready"));
        Ok(())
    }
}

/// The fields of an object that a check judges.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Observed {
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    conditions: Option<Vec<Condition>>,
    available_replicas: i64,
    number_available: i64,
    desired_number_scheduled: i64,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    #[serde(default)]
    message: Option<Box<str>>,
}

impl Observed {
    fn find(&self, kind: &str) -> Option<&Condition> {
        let conditions = self.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| *condition.kind == *kind)
    }

    fn is(&self, kind: &str) -> bool {
        self.find(kind).is_some_and(|condition| &*condition.status == "True")
    }
}

async fn leases(prober: &Prober, client: &Arc<Client>, limit: Duration) -> CheckEvidence {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Lease>,
    }
    #[derive(Deserialize)]
    struct Lease {
        metadata: Name,
        #[serde(default)]
        spec: LeaseSpec,
    }
    #[derive(Deserialize)]
    struct Name {
        name: Box<str>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct LeaseSpec {
        renew_time: Option<Timestamp>,
    }
    let seen = |lease: Lease| SeenLease {
        name: health::hash(&lease.metadata.name),
        renewed: lease.spec.renew_time,
    };
    let what = "the Leases in kube-node-lease";
    match read(&mut prober.borrowing_reader(client), (LEASES, what), limit).await {
        Ok(Found::Object(Read { body, date, .. })) => match decode::<List>(&body, what) {
            Ok(list) => {
                CheckEvidence::Leases { leases: list.items.into_iter().map(seen).collect(), date }
            }
            Err(evidence) => evidence,
        },
        Ok(Found::Missing) => nothing(format!("cannot read {what}: they do not exist")),
        Err(evidence) => evidence,
    }
}

/// Whether an object is available, and what it says about that.
type Judge = fn(&Observed, &str) -> (bool, String);

/// `what` is the object, as people name it.
async fn object(
    prober: &Prober,
    client: &Arc<Client>,
    (path, what): (&str, &str),
    limit: Duration,
    judge: Judge,
) -> CheckEvidence {
    let judged = match read(&mut prober.borrowing_reader(client), (path, what), limit).await {
        Ok(Found::Missing) => Ok((false, format!("{what} does not exist"))),
        Ok(Found::Object(read)) => {
            decode::<Observed>(&read.body, what).map(|object| judge(&object, what))
        }
        Err(evidence) => Err(evidence),
    };
    match judged {
        Ok((available, about)) => CheckEvidence::Object { available, about: about.into() },
        Err(evidence) => evidence,
    }
}

/// Never shows what it could not read.
fn decode<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, CheckEvidence> {
    let failed = |_| nothing(format!("cannot read {what}: the answer is not of the expected form"));
    serde_json::from_slice(body).map_err(failed)
}

/// An object that was asked for.
enum Found {
    Object(Read),
    /// The API is there, and has no such object.
    Missing,
}

async fn read(
    reader: &mut Reader<'_>,
    (path, what): (&str, &str),
    limit: Duration,
) -> Result<Found, CheckEvidence> {
    let refused = |why: &str| nothing(format!("cannot read {what}: {why}"));
    let read = reader.get(path, ANSWER_MAX, limit).await.map_err(|error| match error.code {
        Code::Body => refused("the answer is longer than 1 MiB"),
        Code::Timeout => refused("no answer in time"),
        _ => refused(&error.to_string()),
    })?;
    match read.status {
        StatusCode::OK => Ok(Found::Object(read)),
        StatusCode::NOT_FOUND if names_an_object(&read.body) => Ok(Found::Missing),
        StatusCode::NOT_FOUND => Err(refused("the cluster does not serve its kind")),
        StatusCode::FORBIDDEN => Err(refused("the right to get or list it is missing")),
        other => Err(refused(&format!("the API server answered {}", other.as_u16()))),
    }
}

/// Whether an answer of status 404 is about an object, and not about its kind.
fn names_an_object(body: &[u8]) -> bool {
    kube_api::Status::read(body).is_some_and(|status| !status.details.name.is_empty())
}

/// Plural, kind, and how it is judged.
fn workload(kind: Workload) -> (&'static str, &'static str, Judge) {
    match kind {
        Workload::Deployment => ("deployments", "Deployment", by_condition),
        Workload::StatefulSet => ("statefulsets", "StatefulSet", |set, what| {
            let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let available = set.status.as_ref().map_or(0, |status| status.available_replicas);
            by_count(available, wanted, what)
        }),
        Workload::DaemonSet => ("daemonsets", "DaemonSet", |set, what| {
            let of = |count: fn(&Status) -> i64| set.status.as_ref().map_or(0, count);
            by_count(of(|it| it.number_available), of(|it| it.desired_number_scheduled), what)
        }),
    }
}

fn by_condition(object: &Observed, what: &str) -> (bool, String) {
    if object.is("Available") {
        return (true, format!("{what} is available"));
    }
    let message = object.find("Available").and_then(|it| it.message.as_deref());
    let message = message.filter(|it| !it.is_empty()).map(|it| format!(": {it}"));
    (false, format!("{what} is not available{}", message.unwrap_or_default()))
}

fn by_count(available: i64, wanted: i64, what: &str) -> (bool, String) {
    (available >= wanted, format!("{available} of {wanted} Pods of {what} are available"))
}

#[cfg(test)]
mod tests;
