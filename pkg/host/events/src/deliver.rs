//! Writes one observation to the API server, with retries within a time limit.
//!
//! Called by [`crate::worker`]. A repeat is a strategic-merge PATCH; an Event the server has
//! forgotten (they live for an hour) is created again under its old name. One that is there already is
//! counted on. Every write can be repeated blindly: counts are
//! absolute, and a POST whose answer was lost is known again by its reporter and time.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use resilience::KeyedLogGate;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, warn};

use crate::correlate::{Correlator, Earlier, Emission, Observation};
use crate::object::ObjectRef;
use crate::{DropReason, EventMetrics};

/// Tries per event, as in client-go.
const TRIES: u32 = 12;
/// Pause between tries; the first one is a random part of it, so that the recorders of a cluster
/// do not come back to a restarted server together.
const PAUSE: Duration = Duration::from_secs(5);
/// One event may keep its worker this long: client-go's two minutes halved.
const LIMIT: Duration = Duration::from_secs(60);
/// One try; a server that is silent for longer is not going to answer.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// One line about events lost for the same reason, however many they are.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Where events go.
#[derive(Clone)]
pub(crate) struct Sink {
    client: Client,
    source: Source,
    losses: Arc<KeyedLogGate<DropReason>>,
}

enum Failure {
    /// The namespace is being deleted: the event counts as written.
    Settled(String),
    /// The server will never take it.
    Permanent(String),
    /// A later try may succeed.
    Transient(String),
}

impl Sink {
    pub(crate) fn new(client: Client, source: Source) -> Self {
        Self { client, source, losses: Arc::new(KeyedLogGate::new(LOG_EVERY)) }
    }

    /// Component whose events these are.
    pub(crate) fn component(&self) -> &'static str {
        self.source.component
    }

    /// Writes `observation`, and says what it was counted on; an error says why it was given up. A
    /// panic below costs this event.
    pub(crate) async fn deliver(
        &self,
        observation: &Observation,
    ) -> Result<Option<Earlier>, DropReason> {
        match resilience::panics::contain(self.write_patiently(observation)).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(self.lost(observation, DropReason::Panicked, &panic.to_string())),
        }
    }

    async fn write_patiently(
        &self,
        observation: &Observation,
    ) -> Result<Option<Earlier>, DropReason> {
        let (logger, event) = (self.source.component, &observation.name);
        let give_up = Instant::now() + LIMIT;
        let mut last = String::new();
        for attempt in 0..TRIES {
            match self.attempt(observation, give_up).await {
                Ok(earlier) => return Ok(earlier),
                Err(Failure::Settled(err)) => {
                    debug!(logger, event, err, "The namespace of the event is terminating");
                    return Ok(None);
                }
                Err(Failure::Permanent(err)) => {
                    return Err(self.lost(observation, DropReason::Rejected, &err));
                }
                Err(Failure::Transient(err)) => last = err,
            }
            let pause = if attempt == 0 { PAUSE.mul_f64(resilience::draw()) } else { PAUSE };
            if attempt + 1 == TRIES || Instant::now() + pause >= give_up {
                break;
            }
            debug!(logger, event, err = last, "Event was not written, trying again");
            sleep(pause).await;
        }
        Err(self.lost(observation, DropReason::Unreachable, &last))
    }

    /// Tells of an event that is given up.
    fn lost(&self, observation: &Observation, reason: DropReason, err: &str) -> DropReason {
        if let Some(suppressed) = self.losses.pass(reason, Instant::now()) {
            let (logger, event) = (self.source.component, &observation.name);
            let why = reason.label();
            warn!(logger, event, why, err, suppressed, "Unable to write event");
        }
        reason
    }

    async fn attempt(
        &self,
        observation: &Observation,
        give_up: Instant,
    ) -> Result<Option<Earlier>, Failure> {
        let limit = give_up.min(Instant::now() + TRY_TIMEOUT);
        match timeout_at(limit, self.write(observation)).await {
            Ok(written) => written.map_err(classify),
            Err(_) => Err(Failure::Transient("the API server gave no answer in time".to_owned())),
        }
    }

    async fn write(&self, observation: &Observation) -> Result<Option<Earlier>, kube::Error> {
        let namespace = observation.object.event_namespace();
        let api = Api::<Event>::namespaced(self.client.clone(), namespace);
        if observation.count > 1 {
            let patch = Patch::Strategic(patch_of(observation, observation.count));
            match api.patch_metadata(&observation.name, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                patched => return patched.map(|_| None),
            }
        }
        let event = event_of(observation, &self.source);
        match api.create(&PostParams::default(), &event).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.count_on(&api, observation).await.map(Some)
            }
            created => created.map(|_| None),
        }
    }

    /// Counts on an Event that is there: of the leader before this one, unless it is from a try of ours
    /// whose answer was lost.
    async fn count_on(
        &self,
        api: &Api<Event>,
        observation: &Observation,
    ) -> Result<Earlier, kube::Error> {
        let (name, params) = (observation.name.as_str(), PatchParams::default());
        // Changes nothing and is answered by the Event: a GET would need one more right.
        let there = api.patch(name, &params, &Patch::Strategic(json!({}))).await?;
        let count = there.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
        let first = there.first_timestamp.as_ref().map(|time| time.0);
        if self.is_ours(&there, observation) {
            return Ok(Earlier { count, first });
        }
        let count = count.saturating_add(1);
        let patch = Patch::Strategic(patch_of(observation, count));
        api.patch_metadata(name, &params, &patch).await?;
        Ok(Earlier { count, first })
    }

    /// The server keeps times in whole seconds.
    fn is_ours(&self, there: &Event, observation: &Observation) -> bool {
        let at = there.last_timestamp.as_ref().map(|time| time.0.as_second());
        there.reporting_instance.as_ref() == Some(&self.source.instance)
            && at == Some(observation.last.as_second())
    }
}

fn classify(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => match status.code {
            _ if namespace_terminates(&status) => Failure::Settled(status.to_string()),
            429 | 500.. => Failure::Transient(status.to_string()),
            _ => Failure::Permanent(status.to_string()),
        },
        // The request would be built wrongly the next time, too.
        kube::Error::BuildRequest(err) => Failure::Permanent(err.to_string()),
        other => Failure::Transient(other.to_string()),
    }
}

fn namespace_terminates(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Number of workers.
pub(crate) const WORKERS: usize = 4;
/// Remembered by all workers together, as much as client-go's single one.
const MEMORY: usize = 4096;

/// An event on its way to its worker, with the place it takes in the queue.
pub(crate) struct Queued {
    pub(crate) emission: Emission,
    pub(crate) recorded: Instant,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// The worker of an object, always the same.
pub(crate) fn worker_of(object: &ObjectRef) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(object);
    // The remainder is below WORKERS.
    usize::try_from(hash % WORKERS as u64).unwrap_or_default()
}

/// Writes what comes through `queue`; after `closing` turned true, only what is in it already.
pub(crate) async fn write_events(
    mut queue: mpsc::UnboundedReceiver<Queued>,
    mut closing: watch::Receiver<bool>,
    sink: Sink,
    metrics: EventMetrics,
) {
    let mut correlator = Correlator::new(sink.component(), MEMORY / WORKERS);
    loop {
        let next = tokio::select! {
            biased;
            // A closer that vanished without a word closes, too.
            _ = closing.wait_for(|closed| *closed), if !queue.is_closed() => {
                queue.close();
                continue;
            }
            next = queue.recv() => next,
        };
        let Some(Queued { emission, recorded, slot }) = next else { return };
        match correlator.observe(emission, recorded) {
            Some(observation) => match sink.deliver(&observation).await {
                Ok(Some(earlier)) => correlator.adopt(&observation, earlier),
                Ok(None) => {}
                Err(reason) => metrics.drop_one(reason),
            },
            None => metrics.drop_one(DropReason::Spam),
        }
        // Kept until here: an event being written still waits.
        drop(slot);
    }
}

/// Author of the events of one recorder.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// `source.component` and `reportingComponent`.
    pub(crate) component: &'static str,
    /// `reportingInstance`: the identity of this process.
    pub(crate) instance: String,
}

/// The Event to create.
fn event_of(observation: &Observation, source: &Source) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(observation.name.clone()),
            namespace: Some(observation.object.event_namespace().to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: reference(&observation.object),
        type_: Some(observation.event_type.as_str().to_owned()),
        reason: Some(observation.reason.to_owned()),
        message: Some(observation.message.clone()),
        count: Some(i32::try_from(observation.count).unwrap_or(i32::MAX)),
        first_timestamp: Some(Time(observation.first)),
        last_timestamp: Some(Time(observation.last)),
        source: Some(EventSource { component: Some(source.component.to_owned()), host: None }),
        reporting_component: Some(source.component.to_owned()),
        reporting_instance: Some(source.instance.clone()),
        ..Event::default()
    }
}

/// The patch of an Event that happened again, for the `count`-th time. The message is part of it for folded events,
/// which show the newest one.
fn patch_of(observation: &Observation, count: u32) -> Value {
    let Observation { last, message, .. } = observation;
    json!({ "count": count, "lastTimestamp": Time(*last), "message": message })
}

fn reference(object: &ObjectRef) -> ObjectReference {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ObjectReference {
        api_version: some(&object.api_version),
        kind: some(&object.kind),
        namespace: some(&object.namespace),
        name: some(&object.name),
        uid: some(&object.uid),
        ..ObjectReference::default()
    }
}
