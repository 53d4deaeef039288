//! [`Executor`]: answers the queries and carries out the writes of one cluster. [`run_pass`]
//! leads a reconciliation from step to step until it rests.

use std::time::Duration;

use aws_network::{
    Action, FoundZone, Identity, Memory, Observed, Outcome, Planned, Problem, Query,
    Reconciliation, Reply, Rest, SEND_WITHIN, Scope, Step, Timestamp,
};
use futures::{StreamExt as _, stream};
use resilience::{Fence, wall_now};
use tokio::time::Instant;

use crate::call::{AwsError, Call};
use crate::describe::{Describe, filter_of};
use crate::gate::{WriteGate, simulated};
use crate::limits::{Class, Service};
use crate::perform::{Performed, classic, network_balancers, perform};
use crate::polls::Asker;
use crate::region::Region;
use crate::requests;

/// Reads and writes for one cluster.
#[derive(Clone, Debug)]
pub struct Executor {
    region: Region,
    fence: Fence,
    cluster_tag: String,
}

impl Executor {
    /// Makes an executor that checks `fence` before each write.
    pub fn new(region: Region, identity: &Identity, fence: Fence) -> Self {
        Self { region: region.counting(), fence, cluster_tag: identity.cluster_tag() }
    }

    /// Number of requests that it has sent to read, repeated ones included.
    pub fn reads(&self) -> u32 {
        self.region.reads()
    }

    /// Answers a query as a whole. What does not exist is missing from the reply.
    pub async fn read(&self, query: &Query) -> Result<Reply, AwsError> {
        if let Some(cloud) = simulated() {
            let read = || cloud.read(&self.cluster_tag, query);
            return requests::send(&self.region, Call::ec2_read("simulated"), None, read).await;
        }
        self.describe().answer(query).await
    }

    /// Answers a query about what takes its time, and tells when the read began. NAT gateways,
    /// which take minutes, are read for all clusters of the region at once.
    pub(crate) async fn poll(
        &self,
        query: &Query,
        clock: impl Fn() -> Timestamp,
    ) -> Result<(Reply, Timestamp), AwsError> {
        let (describe, tag) = (self.describe(), &self.cluster_tag);
        let scope = match query {
            Query::NatGateways(scope) if simulated().is_none() => scope,
            _ => {
                let began = clock();
                return Ok((self.read(query).await?, began));
            }
        };
        let (polls, filter, value) = match scope {
            Scope::Vpc(id) => (self.region.nats_by_vpc(), "vpc-id", id),
            Scope::Tagged => (self.region.nats_by_tag(), "tag-key", tag),
        };
        let asker = Asker { cluster_tag: tag.clone(), value: value.clone() };
        let fetch = |values| describe.nat_gateways(filter_of(filter, values));
        let (found, began) = polls.ask(asker, clock, fetch).await?;
        Ok((Reply::NatGateways(describe.among(scope, &found)), began))
    }

    /// Has what was read for others before now not serve this cluster.
    pub(crate) fn has_written(&self, now: Timestamp) {
        self.region.nats_by_vpc().wrote(&self.cluster_tag, now);
        self.region.nats_by_tag().wrote(&self.cluster_tag, now);
    }

    /// All zones of the region, in order.
    pub async fn zones(&self) -> Result<Vec<FoundZone>, AwsError> {
        let Some(cloud) = simulated() else { return self.describe().zones().await };
        requests::send(&self.region, Call::ec2_read("simulated"), None, || cloud.zones()).await
    }

    /// Whether a sweep would serve other clusters, too. Otherwise it saves nothing.
    pub fn shares_sweeps(&self) -> bool {
        simulated().is_none() && self.describe().shares_sweeps()
    }

    fn describe(&self) -> Describe<'_> {
        Describe { region: &self.region, cluster_tag: &self.cluster_tag }
    }

    /// Carries out a write, unless the fence is closed or `leaves_by` has passed.
    pub async fn write(&self, action: &Action, leaves_by: Instant) -> Outcome {
        let call = call_of(action);
        let sent = requests::send(&self.region, call, Some(leaves_by), || async {
            let gate = WriteGate::new(&self.fence, leaves_by);
            let performed = Box::pin(self.perform(&gate, action)).await;
            performed.map_err(|error| as_seen_by(&gate, error))
        });
        match sent.await {
            Ok(answer) => Outcome::Done(answer),
            Err(error) => {
                tracing::debug!(operation = call.operation, %error, "Cannot write to AWS");
                match error {
                    AwsError::Refused(refused) => Outcome::Refused(refused),
                    AwsError::Unanswered { .. } => Outcome::Unknown,
                    AwsError::NotSent { .. } | AwsError::NotAssumed { .. } => Outcome::NotSent,
                }
            }
        }
    }

    async fn perform(&self, gate: &WriteGate, action: &Action) -> Performed {
        if let Some(cloud) = simulated() {
            gate.pass_simulated()?;
            return cloud.write(&self.fence, action).await;
        }
        let region = &self.region;
        match action {
            Action::Elb(action) => classic::perform(&region.gated_elb(gate), action).await,
            Action::ElbV2(action) => {
                network_balancers::perform(&region.gated_elbv2(gate), action).await
            }
            action => perform(&region.gated_ec2(gate), action).await,
        }
    }
}

/// A request that the gate did not let pass was not sent, whatever the error.
fn as_seen_by(gate: &WriteGate, error: AwsError) -> AwsError {
    match error {
        AwsError::Unanswered { reason } if !gate.has_passed() => AwsError::NotSent { reason },
        error => error,
    }
}

fn call_of(action: &Action) -> Call {
    let service = match action {
        Action::Elb(_) | Action::ElbV2(_) => Service::LoadBalancers,
        _ => Service::Ec2,
    };
    let class = match action {
        Action::RunBastion { .. } => Class::Run,
        _ => Class::Write,
    };
    let (operation, is_repeatable) = (action.operation(), action.is_repeatable());
    Call { service, class, operation, is_repeatable }
}

/// Concurrent calls of one cluster.
const IN_FLIGHT: usize = 6;

/// For so long a plan holds. Creates that rest on an intent leave within [`SEND_WITHIN`].
const PLAN_HOLDS: Duration = Duration::from_secs(60);

/// Callbacks of a pass to the reconciler.
pub trait PassHooks: Sync {
    /// The time, as the memory counts it.
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(wall_now().as_second()).unwrap_or_default())
    }

    /// Stores the memory of the cluster durably. False when it could not be stored.
    fn store(&self, memory: &Memory) -> impl Future<Output = bool> + Send;

    /// Whether the process is asked to stop: no step is begun any more.
    fn is_over(&self) -> bool {
        false
    }

    /// Hears of a read that has failed.
    fn unread(&self, _error: &AwsError) {}

    /// Hears what became of a write.
    fn wrote(&self, _planned: &Planned, _outcome: &Outcome) {}
}

/// Carries out what a reconciliation asks for until it rests, or until the hooks end it.
pub async fn run_pass(
    reconciliation: &mut Reconciliation,
    executor: &Executor,
    hooks: &impl PassHooks,
) -> Rest {
    while !hooks.is_over() {
        match reconciliation.next(hooks.now()) {
            Step::Read(queries) => {
                Box::pin(ask(reconciliation, executor, hooks, queries, Source::Aws)).await;
            }
            Step::Poll(queries) => {
                Box::pin(ask(reconciliation, executor, hooks, queries, Source::AnyRound)).await;
            }
            Step::Persist(memory) => {
                let is_stored = hooks.store(&memory).await;
                reconciliation.persisted(is_stored);
            }
            Step::Write(writes) => write(reconciliation, executor, hooks, writes).await,
            Step::Rest(rest) => return rest,
        }
    }
    Rest::For(0)
}

/// Reads all that a reconciliation needs to plan its first write, and sends none.
///
/// # Errors
/// Problems of the reads that failed; none when the hooks end the pass.
pub async fn look(
    reconciliation: &Reconciliation,
    executor: &Executor,
    hooks: &impl PassHooks,
) -> Result<Reconciliation, Vec<Problem>> {
    let mut looked = reconciliation.clone();
    while !hooks.is_over() {
        let mut next = looked.clone();
        match next.next(hooks.now()) {
            Step::Read(queries) | Step::Poll(queries) => {
                ask(&mut next, executor, hooks, queries, Source::Aws).await;
            }
            _ => return Ok(looked),
        }
        let failures = next.failures();
        if !failures.is_empty() {
            return Err(failures);
        }
        looked = next;
    }
    Err(Vec::new())
}

/// What sweeps show of a cluster at rest.
#[derive(Debug)]
pub enum Judged {
    /// All is as it shall be, by reads that began at this time or later.
    AtRest(Box<Reconciliation>, Timestamp),
    /// The cluster needs a pass of its own, with reads of its own.
    Differs,
    /// A sweep has failed.
    Unread,
}

/// Judges a cluster at rest, whose reconciliation was resumed, by sweeps. Nothing is written to AWS.
pub async fn judge(
    resumed: &Reconciliation,
    executor: &Executor,
    hooks: &impl PassHooks,
) -> Judged {
    let mut judged = resumed.clone();
    let earlier = (!resumed.is_deep_check_due(hooks.now())).then(|| resumed.earlier());
    let is_deep =
        |judged: &Reconciliation| judged.memory().deep_checked != resumed.memory().deep_checked;
    let mut began = hooks.now();
    while !hooks.is_over() {
        match judged.next(hooks.now()) {
            Step::Read(queries) | Step::Poll(queries) => {
                let source = Source::Sweep(earlier);
                let asked = ask(&mut judged, executor, hooks, queries, source);
                let oldest = Box::pin(asked).await;
                began = oldest.map_or(began, |oldest| oldest.min(began));
                if !judged.failures().is_empty() {
                    return Judged::Unread;
                }
            }
            Step::Persist(memory) if judged.plan().is_settled() => {
                let is_stored = hooks.store(&memory).await;
                judged.persisted(is_stored);
            }
            // A deep check that became due meanwhile has not read what is of the last pass.
            Step::Rest(Rest::Reached) if earlier.is_some() && is_deep(&judged) => {
                return Judged::Differs;
            }
            Step::Rest(Rest::Reached) => return Judged::AtRest(Box::new(judged), began),
            _ => return Judged::Differs,
        }
    }
    Judged::Differs
}

/// Where an answer may come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// A read of our own.
    Aws,
    /// Read for this cluster or for many clusters.
    AnyRound,
    /// A sweep, completed by what an earlier pass saw, where it has the answer.
    Sweep(Option<&'a Observed>),
}

/// Asks all queries. When the oldest read of an answer began.
async fn ask(
    reconciliation: &mut Reconciliation,
    executor: &Executor,
    hooks: &impl PassHooks,
    queries: Vec<Query>,
    source: Source<'_>,
) -> Option<Timestamp> {
    let mut oldest = None::<Timestamp>;
    let mut answers = stream::iter(queries.into_iter().map(|query| async move {
        let answer = Box::pin(answer(executor, hooks, &query, source)).await;
        (query, answer)
    }))
    .buffer_unordered(IN_FLIGHT);
    while let Some((query, answer)) = answers.next().await {
        match answer {
            Ok((reply, began)) => {
                oldest = Some(oldest.map_or(began, |oldest| oldest.min(began)));
                reconciliation.answer(query, reply, began);
            }
            Err(error) => {
                tracing::debug!(?query, %error, "Cannot read from AWS");
                hooks.unread(&error);
                reconciliation.unanswered(query, error.refused());
            }
        }
    }
    oldest
}

/// The answer to a query, and when its read began.
async fn answer(
    executor: &Executor,
    hooks: &impl PassHooks,
    query: &Query,
    source: Source<'_>,
) -> Result<(Reply, Timestamp), AwsError> {
    match source {
        Source::AnyRound => return executor.poll(query, || hooks.now()).await,
        Source::Sweep(earlier) => {
            let swept = executor.describe().swept(query, earlier, || hooks.now());
            if let Some(swept) = Box::pin(swept).await? {
                return Ok(swept);
            }
        }
        Source::Aws => {}
    }
    let began = hooks.now();
    executor.describe().note(query, began);
    Ok((executor.read(query).await?, began))
}

async fn write(
    reconciliation: &mut Reconciliation,
    executor: &Executor,
    hooks: &impl PassHooks,
    writes: Vec<Planned>,
) {
    let (planned_at, now) = (Instant::now(), hooks.now());
    let writes = writes.into_iter().map(|planned| {
        let leaves_by = planned_at + holds(&planned.action, reconciliation.memory(), now);
        (planned, leaves_by)
    });
    let writes: Vec<_> = writes.collect();
    let mut outcomes = stream::iter(writes.into_iter().map(|(planned, leaves_by)| async move {
        let outcome = Box::pin(executor.write(&planned.action, leaves_by)).await;
        (planned, outcome)
    }))
    .buffer_unordered(IN_FLIGHT);
    while let Some((planned, outcome)) = outcomes.next().await {
        hooks.wrote(&planned, &outcome);
        reconciliation.written(&planned, outcome, hooks.now());
    }
    executor.has_written(hooks.now());
}

/// Time left to send a write.
fn holds(action: &Action, memory: &Memory, now: Timestamp) -> Duration {
    match action.creates() {
        Some((logical, _)) if !logical.is_protected() => {
            let intent = memory.records.get(&logical);
            let age = intent.map_or(SEND_WITHIN, |intent| intent.since.age(now));
            Duration::from_secs(SEND_WITHIN.saturating_sub(age))
        }
        _ => PLAN_HOLDS,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aws_network::{LogicalId, Record};

    use super::*;

    /// rule:intent-before-unprotected-create
    #[test]
    fn a_create_that_rests_on_an_intent_leaves_within_ten_seconds_of_it() {
        let mut memory = Memory::default();
        let intent = Record { since: Timestamp(100), id: None, attempt: 0 };
        memory.records.insert(LogicalId::InternetGateway, intent);
        let create = Action::CreateInternetGateway { tags: BTreeMap::new() };
        for (now, left) in [(100, 10), (104, 6), (110, 0), (200, 0)] {
            assert_eq!(holds(&create, &memory, Timestamp(now)), Duration::from_secs(left), "{now}");
        }
        let protected = Action::DeleteVpc { vpc: "vpc-1".to_owned() };
        assert_eq!(holds(&protected, &memory, Timestamp(200)), PLAN_HOLDS);
    }
}
