//! One leg of a pass: asks it what to do and does that, until it rests, or looks only. The
//! reconciler calls it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_network::{
    Memory, Outcome, Pass, Planned, Problem, Query, Reply, Rest, SEND_WITHIN, Step, Timestamp,
};
use futures::{StreamExt as _, stream};
use tokio::time::Instant;

use crate::call_error::CallError;
use crate::executor::Executor;

/// So many calls of one cluster are under way at once.
const IN_FLIGHT: usize = 6;

/// For so long a plan holds. Creates that rest on an intent leave within [`SEND_WITHIN`].
const PLAN_HOLDS: Duration = Duration::from_secs(60);

/// What a leg needs of its surroundings.
pub trait Surroundings: Sync {
    /// The time, as the memory counts it.
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_secs())
    }

    /// Stores the memory of the cluster durably. False when it could not be stored.
    fn store(&self, memory: &Memory) -> impl Future<Output = bool> + Send;

    /// Whether the process is asked to stop: no step is begun any more.
    fn is_over(&self) -> bool {
        false
    }

    /// Hears of a read that has failed.
    fn unread(&self, _error: &CallError) {}

    /// Hears what became of a write.
    fn wrote(&self, _planned: &Planned, _outcome: &Outcome) {}
}

/// Carries out what a pass asks for until it rests, or until its surroundings are over.
pub async fn run_leg(
    pass: &mut Pass,
    executor: &Executor,
    surroundings: &impl Surroundings,
) -> Rest {
    while !surroundings.is_over() {
        match pass.next(surroundings.now()) {
            Step::Read(queries) => ask(pass, executor, surroundings, queries, Source::Aws).await,
            Step::Poll(queries) => {
                ask(pass, executor, surroundings, queries, Source::AnyRound).await;
            }
            Step::Persist(memory) => {
                let is_stored = surroundings.store(&memory).await;
                pass.persisted(is_stored);
            }
            Step::Write(writes) => write(pass, executor, surroundings, writes).await,
            Step::Rest(rest) => return rest,
        }
    }
    Rest::For(0)
}

/// Reads all that a pass needs to plan its first write, and sends none.
///
/// # Errors
/// Some of it cannot be read, or the surroundings are over: then there is nothing to tell.
pub async fn look(
    pass: &Pass,
    executor: &Executor,
    surroundings: &impl Surroundings,
) -> Result<Pass, Vec<Problem>> {
    let mut looked = pass.clone();
    while !surroundings.is_over() {
        let mut next = looked.clone();
        match next.next(surroundings.now()) {
            Step::Read(queries) | Step::Poll(queries) => {
                ask(&mut next, executor, surroundings, queries, Source::Aws).await;
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

/// Where an answer may come from.
#[derive(Clone, Copy)]
enum Source {
    /// A read of our own.
    Aws,
    /// That, or a read for many clusters.
    AnyRound,
}

async fn ask(
    pass: &mut Pass,
    executor: &Executor,
    surroundings: &impl Surroundings,
    queries: Vec<Query>,
    source: Source,
) {
    let mut answers = stream::iter(queries.into_iter().map(|query| async move {
        let answer = Box::pin(answer(executor, surroundings, &query, source)).await;
        (query, answer)
    }))
    .buffer_unordered(IN_FLIGHT);
    while let Some((query, answer)) = answers.next().await {
        match answer {
            Ok((reply, began)) => pass.answer(query, reply, began),
            Err(error) => {
                tracing::debug!(?query, %error, "A read of AWS has failed");
                surroundings.unread(&error);
                pass.unanswered(query, error.refused());
            }
        }
    }
}

/// The answer to a query, and when its read began.
async fn answer(
    executor: &Executor,
    surroundings: &impl Surroundings,
    query: &Query,
    source: Source,
) -> Result<(Reply, Timestamp), CallError> {
    match source {
        Source::AnyRound => executor.poll(query, || surroundings.now()).await,
        Source::Aws => {
            let began = surroundings.now();
            Ok((executor.read(query).await?, began))
        }
    }
}

async fn write(
    pass: &mut Pass,
    executor: &Executor,
    surroundings: &impl Surroundings,
    writes: Vec<Planned>,
) {
    let planned_at = Instant::now();
    let mut outcomes = stream::iter(writes.into_iter().map(|planned| async move {
        let leaves_by = planned_at + holds(&planned);
        let outcome = Box::pin(executor.write(&planned.action, leaves_by)).await;
        (planned, outcome)
    }))
    .buffer_unordered(IN_FLIGHT);
    while let Some((planned, outcome)) = outcomes.next().await {
        surroundings.wrote(&planned, &outcome);
        pass.written(&planned, outcome, surroundings.now());
    }
    executor.has_written(surroundings.now());
}

fn holds(planned: &Planned) -> Duration {
    match planned.action.creates() {
        Some((logical, _)) if !logical.is_protected() => Duration::from_secs(SEND_WITHIN),
        _ => PLAN_HOLDS,
    }
}
