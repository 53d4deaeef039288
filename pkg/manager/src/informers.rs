//! One informer per type for all controllers of the process (`host.md` 11).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use informer::{Informer, InformerMetrics};
use model::Cached;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// A watch that hears nothing for this long, bookmarks included, is dead (`host.md` 9.3).
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Between a panic of a watch and its next run.
const PAUSE: Duration = Duration::from_secs(1);

/// Hands out informers and starts each with its first user.
#[derive(Clone)]
pub struct Informers {
    client: kube::Client,
    metrics: InformerMetrics,
    stop: CancellationToken,
    running: Arc<Mutex<HashMap<TypeId, Running>>>,
}

struct Running {
    informer: Box<dyn Any + Send>,
    state: Box<dyn Fn() -> Result<(), String> + Send>,
}

impl Informers {
    pub(crate) fn new(
        client: kube::Client,
        metrics: InformerMetrics,
        stop: CancellationToken,
    ) -> Self {
        Self { client, metrics, stop, running: Arc::default() }
    }

    /// The same source with no informer started yet: a restarted controller's first list must be
    /// younger than the last write of its failed run.
    pub(crate) fn fresh(&self) -> Self {
        Self { running: Arc::default(), ..self.clone() }
    }

    /// The shared informer of a type, running from now on.
    pub fn get<T: Cached>(&self) -> Informer<T> {
        let mut running = self.running.lock();
        let known = running.get(&TypeId::of::<T>());
        if let Some(informer) = known.and_then(|known| known.informer.downcast_ref::<Informer<T>>())
        {
            return informer.clone();
        }
        let informer = Informer::<T>::new(self.client.clone(), self.metrics.clone());
        tokio::spawn(keep_running(informer.clone(), self.stop.clone()));
        let watched = informer.clone();
        running.insert(
            TypeId::of::<T>(),
            Running {
                informer: Box::new(informer.clone()),
                state: Box::new(move || state(&watched)),
            },
        );
        informer
    }

    /// Whether every cache is filled and alive; the error names the first that is not.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.running.lock().values().try_for_each(|running| (running.state)())
    }
}

/// A panic in the watch, or in a subscriber, must not leave everybody blind: the next run lists
/// anew and delivers what differs.
async fn keep_running<T: Cached>(informer: Informer<T>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let run = AssertUnwindSafe(informer.run(stop.clone())).catch_unwind().await;
        if run.is_err() {
            error!(resource = T::RESOURCE, "The watch panicked and is started again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn state<T: Cached>(informer: &Informer<T>) -> Result<(), String> {
    if !informer.is_synced() {
        return Err(format!("the first list of {} is not complete", T::RESOURCE));
    }
    let silent = informer.silent_for();
    if silent > SILENCE {
        return Err(format!("nothing heard of {} for {} s", T::RESOURCE, silent.as_secs()));
    }
    Ok(())
}
