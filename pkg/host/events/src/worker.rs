//! The workers behind a recorder, each with its own queue and its own memory of past events.
//!
//! Started by [`crate::start`]. An object always has the same worker, so a worker needs no lock for
//! what it remembers, and the events of an object are written in order. A server that is stuck on
//! one event delays the objects of that worker only.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::Instant;

use crate::correlate::{Correlator, Emission};
use crate::deliver::Sink;
use crate::metrics::{DropReason, EventMetrics};
use crate::object::ObjectRef;

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
pub(crate) async fn run(
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
