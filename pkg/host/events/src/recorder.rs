//! The two handles of an event pipeline: one to record events, one to end it.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use resilience::{task, wall_now};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::correlate::Emission;
use crate::deliver::{Queued, Sink, Source, WORKERS, worker_of, write_events};
use crate::object::{EventType, ObjectRef};
use crate::{DropReason, EventMetrics};

/// Events that may wait, the ones being written included; client-go's number.
pub(crate) const QUEUE: usize = 1000;

/// Records events. Clones share one queue.
#[derive(Clone)]
pub struct Recorder(Option<Arc<Inner>>);

struct Inner {
    component: &'static str,
    queues: [mpsc::UnboundedSender<Queued>; WORKERS],
    slots: Arc<Semaphore>,
    metrics: EventMetrics,
}

/// Writes what the [`Recorder`] records, until flushed. Dropping it drops what was not written.
#[must_use = "dropping the broadcaster stops the writing of events"]
pub struct Broadcaster {
    component: &'static str,
    closing: watch::Sender<bool>,
    workers: JoinSet<()>,
    slots: Arc<Semaphore>,
    metrics: EventMetrics,
}

/// Starts a pipeline that writes events as `component` (shown in the FROM column of `kubectl
/// describe`) and `instance` (the identity of this process) through `client`, which should have
/// a throttle of its own. Must be called inside a tokio runtime.
pub fn start(
    client: Client,
    component: &'static str,
    instance: &str,
    metrics: EventMetrics,
) -> (Recorder, Broadcaster) {
    let sink = Sink::new(client, Source { component, instance: instance.to_owned() });
    let (closing, closed) = watch::channel(false);
    let mut workers = JoinSet::new();
    let queues = std::array::from_fn(|_| {
        let (sender, receiver) = mpsc::unbounded_channel();
        let writing = write_events(receiver, closed.clone(), sink.clone(), metrics.clone());
        workers.spawn(task(writing));
        sender
    });
    let slots = Arc::new(Semaphore::new(QUEUE));
    let recorder = Recorder(Some(Arc::new(Inner {
        component,
        queues,
        slots: Arc::clone(&slots),
        metrics: metrics.clone(),
    })));
    (recorder, Broadcaster { component, closing, workers, slots, metrics })
}

impl Recorder {
    /// A recorder that records nothing, for code that must leave no trace.
    pub fn mute() -> Self {
        Self(None)
    }

    /// Logs the event and queues it to be written. Never blocks and never fails: what cannot be
    /// queued is dropped and counted. `reason` is one CamelCase word.
    pub fn event(
        &self,
        object: ObjectRef,
        event_type: EventType,
        reason: &'static str,
        message: String,
    ) {
        if let Some(inner) = &self.0 {
            inner.event(object, event_type, reason, message);
        }
    }
}

impl Inner {
    fn event(
        &self,
        object: ObjectRef,
        event_type: EventType,
        reason: &'static str,
        message: String,
    ) {
        self.log(&object, event_type, reason, &message);
        let worker = worker_of(&object);
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            self.metrics.drop_one(DropReason::QueueFull);
            return;
        };
        let time = wall_now();
        let emission = Emission { object: Arc::new(object), event_type, reason, message, time };
        let queued = Queued { emission, recorded: Instant::now(), slot };
        if self.queues[worker].send(queued).is_err() {
            self.metrics.drop_one(DropReason::Shutdown);
        }
    }

    /// A Warning is heard at any verbosity. The text of the event is `note`, as in events.k8s.io:
    /// `message` is the name that `tracing` gives to the text of the line.
    fn log(&self, object: &ObjectRef, event_type: EventType, reason: &str, note: &str) {
        let logger = self.component;
        let (name, object_kind, r#type) =
            (object.display_name(), &object.kind, event_type.as_str());
        match event_type {
            EventType::Warning => {
                info!(
                    logger,
                    object = name,
                    kind = object_kind,
                    r#type,
                    reason,
                    note,
                    "Event occurred"
                );
            }
            EventType::Normal => {
                info!(
                    v = 3,
                    logger,
                    object = name,
                    kind = object_kind,
                    r#type,
                    reason,
                    note,
                    "Event occurred"
                );
            }
        }
    }
}

impl Broadcaster {
    /// Takes no more events, writes those that wait, and returns when they are written or
    /// `limit` has passed; the rest is dropped and counted.
    pub async fn flush(mut self, limit: Duration) {
        self.closing.send_replace(true);
        let workers = &mut self.workers;
        let written = timeout(limit, async { while workers.join_next().await.is_some() {} }).await;
        if written.is_err() {
            let waiting = QUEUE - self.slots.available_permits();
            self.workers.shutdown().await;
            self.metrics.drop_many(DropReason::Shutdown, waiting as u64);
            warn!(
                logger = self.component,
                count = waiting,
                "Events were not written before the shutdown"
            );
        }
    }
}

#[cfg(test)]
mod tests;
