//! One informer per type for all controllers of the process (`host.md` 11).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use informer::{Informer, InformerMetrics};
use model::Cached;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// A watch that hears nothing for this long, bookmarks included, is dead (`host.md` 9.3).
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Hands out informers and starts each with its first user.
#[derive(Clone)]
pub struct Informers {
    client: kube::Client,
    metrics: InformerMetrics,
    stop: CancellationToken,
    generation: Arc<Generation>,
    /// All that live, for the health check.
    generations: Arc<Mutex<Vec<Weak<Generation>>>>,
}

/// Informers that are used together. They end with the last user of the generation.
struct Generation {
    running: Mutex<HashMap<TypeId, Running>>,
    stop: CancellationToken,
    /// Cancelled when one of the informers has panicked.
    broken: CancellationToken,
}

impl Generation {
    fn under(process: &CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::default(),
            stop: process.child_token(),
            broken: CancellationToken::new(),
        })
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.stop.cancel();
    }
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
        let generation = Generation::under(&stop);
        let generations = Arc::new(Mutex::new(vec![Arc::downgrade(&generation)]));
        Self { client, metrics, stop, generation, generations }
    }

    /// The same source with no informer started yet: a restarted controller's first list must be
    /// younger than the last write of its failed run. The other controllers keep theirs.
    pub(crate) fn fresh(&self) -> Self {
        let generation = Generation::under(&self.stop);
        let mut generations = self.generations.lock();
        generations.retain(|old| old.strong_count() > 0);
        generations.push(Arc::downgrade(&generation));
        Self { generation, ..self.clone() }
    }

    /// The shared informer of a type, running from now on.
    pub fn get<T: Cached>(&self) -> Informer<T> {
        let mut running = self.generation.running.lock();
        let known = running.get(&TypeId::of::<T>());
        if let Some(informer) = known.and_then(|known| known.informer.downcast_ref::<Informer<T>>())
        {
            return informer.clone();
        }
        let informer = Informer::<T>::new(self.client.clone(), self.metrics.clone());
        let (stop, broken) = (self.generation.stop.clone(), self.generation.broken.clone());
        tokio::spawn(run(informer.clone(), stop, broken));
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

    /// Waits until one of these informers has panicked. Whoever uses them must then start anew with
    /// fresh ones: the panic may have cut a delivery short, and nothing tells what was missed.
    pub(crate) async fn broken(&self) {
        self.generation.broken.cancelled().await;
    }

    /// The check `informer-sync`: every cache in use is filled and alive; the error names the first
    /// that is not. Keeps no informer alive.
    pub(crate) fn check(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let generations = Arc::clone(&self.generations);
        move || {
            let live: Vec<_> = generations.lock().iter().filter_map(Weak::upgrade).collect();
            live.iter().try_for_each(|generation| {
                generation.running.lock().values().try_for_each(|running| (running.state)())
            })
        }
    }
}

async fn run<T: Cached>(informer: Informer<T>, stop: CancellationToken, broken: CancellationToken) {
    if AssertUnwindSafe(informer.run(stop)).catch_unwind().await.is_err() {
        error!(resource = T::RESOURCE, "The watch, or a handler of it, panicked");
        broken.cancel();
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
