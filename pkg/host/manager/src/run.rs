//! [`Run`]: queue, workers, start once caches are filled, periodic audit and orderly stop, written
//! once for all controllers. [`feed`] makes changes of a cache work on a queue.

use std::sync::Arc;
use std::time::Duration;

use client::applicable_for;
use futures::future::{BoxFuture, FutureExt, join_all};
use informer::{Delta, Informer, Subscription};
use kube_api::{Cached, OwnWrites};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::info;
use workqueue::{Key, Ready, Reconcile, WorkQueue, WorkerOptions, run_workers};

use crate::context::{Context, Failure};

/// Time limit of one key, unless [`Run::item_limit`] sets another one.
const ITEM_LIMIT: Duration = Duration::from_secs(60);

/// The work on one queue; made by [`Context::run`], begun by [`Run::until_stopped`].
#[must_use = "it begins with until_stopped"]
pub struct Run<R: Reconcile> {
    context: Context,
    queue: WorkQueue<R::Key>,
    reconcile: Arc<R>,
    workers: usize,
    item_limit: Duration,
    ready: Vec<Ready<R::Key>>,
    /// Subscriptions.
    feeds: Vec<Box<dyn Send>>,
    caches: Vec<BoxFuture<'static, ()>>,
    caches_limit: Option<Duration>,
    audit: Option<(Duration, Audit)>,
}

type Audit = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Context {
    /// Handles the keys of `queue` with `reconcile`: see [`Run`], which begins with
    /// [`Run::until_stopped`].
    pub fn run<R: Reconcile>(&self, queue: &WorkQueue<R::Key>, reconcile: Arc<R>) -> Run<R> {
        Run::new(self.clone(), queue.clone(), reconcile)
    }
}

impl<R: Reconcile> Run<R> {
    fn new(context: Context, queue: WorkQueue<R::Key>, reconcile: Arc<R>) -> Self {
        Self {
            context,
            queue,
            reconcile,
            workers: 1,
            item_limit: ITEM_LIMIT,
            ready: Vec::new(),
            feeds: Vec::new(),
            caches: Vec::new(),
            caches_limit: None,
            audit: None,
        }
    }

    /// How many keys are handled at once; 1 by default.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How long one handling may take before it is cut off; 60 s by default. Waits for the client's
    /// throttle count. A worker stuck for five times as long makes the controller unhealthy.
    pub fn item_limit(mut self, limit: Duration) -> Self {
        self.item_limit = limit;
        self
    }

    /// Every object of this cache that comes, changes or goes is work on the keys that `keys` names
    /// for it: see [`feed`]. The workers start once it is filled. May be given several times, for
    /// caches of any kinds.
    pub fn feed<T, I>(
        mut self,
        cache: &Informer<T>,
        keys: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Self
    where
        T: Cached,
        I: IntoIterator<Item = R::Key>,
    {
        self.feeds.push(Box::new(feed(cache, &self.queue, keys)));
        self.start_filled(cache)
    }

    /// The workers start once this cache, which they read, has delivered its first list. A cache whose
    /// kind is dormant does not delay them.
    pub fn start_filled<T: Cached>(mut self, cache: &Informer<T>) -> Self {
        let cache = cache.clone();
        self.caches.push(async move { cache.synced_or_dormant().await }.boxed());
        self
    }

    /// The workers start after this as well. May be given several times.
    pub fn start_after(mut self, begin: impl Future<Output = ()> + Send + 'static) -> Self {
        self.caches.push(begin.boxed());
        self
    }

    /// The run fails when it has not started within this time. Without it, it waits as long as it
    /// takes.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.caches_limit = Some(limit);
        self
    }

    /// Asked before a key is handled; what it returns is awaited first. May be given several times.
    pub fn ready<F>(mut self, ready: impl Fn(&R::Key) -> Option<F> + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.ready.push(Box::new(move |key| Some(Box::pin(ready(key)?))));
        self
    }

    /// A key is handled only once this cache shows what was last written to the object of that key,
    /// as noted in `writes` (`rule:read-your-writes`). For each kind that is written under the
    /// queue's keys. The workers start once it is filled.
    pub fn reads_own_writes<T: Cached>(self, cache: &Informer<T>, writes: &OwnWrites) -> Self
    where
        R::Key: AsRef<str>,
    {
        self.reads_own_writes_of(cache, writes, |key| Some(key.as_ref()))
    }

    /// [`Run::reads_own_writes`] for keys of several kinds: `object` returns the key of the object in
    /// this cache that is written under a queue's key, if there is one.
    pub fn reads_own_writes_of<T: Cached>(
        self,
        cache: &Informer<T>,
        writes: &OwnWrites,
        object: impl Fn(&R::Key) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        let (shown, writes) = (cache.clone(), writes.clone());
        let run = self.ready(move |key| {
            writes.forget_if_many(|key, write| shown.has_now(key, write));
            let object = object(key)?;
            let (object, write) = (Arc::<str>::from(object), writes.last(object)?);
            let (cache, writes) = (shown.clone(), writes.clone());
            Some(async move {
                cache.shows(&object, &write).await;
                writes.shown(&object, &write);
            })
        });
        run.start_filled(cache)
    }

    /// Called for the first time `every` after the start, and then periodically, in parallel with the
    /// workers; what it finds it may add to the queue.
    pub fn audit<F>(
        mut self,
        every: Duration,
        audit: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.audit = Some((every, Box::new(move || audit().boxed())));
        self
    }

    /// Runs until [`Context::stop`]; returns when the keys in hand are done and nothing that was
    /// cut off can be carried out by the server any more.
    ///
    /// # Errors
    /// The caches were not filled in time, or too many different keys panicked.
    pub async fn until_stopped(mut self) -> Result<(), Failure> {
        let (stop, queue) = (self.context.stop.clone(), self.queue.clone());
        let caches = std::mem::take(&mut self.caches);
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                queue.shut_down();
                return Ok(());
            }
            filled = within(self.caches_limit, join_all(caches)) => filled?,
        }
        info!(queue = queue.name(), "Controller starting...");
        self.work().await?;
        info!(queue = queue.name(), "Controller terminated");
        Ok(())
    }

    async fn work(self) -> Result<(), Failure> {
        let Self { context, queue, reconcile, workers, item_limit, ready, feeds, audit, .. } = self;
        let _until_the_end = feeds;
        let _watching = context.work.watched.watch(queue.clone(), item_limit);
        let options = WorkerOptions {
            workers,
            limit: item_limit,
            ready: all(ready),
            metrics: context.work.metrics.clone(),
            panics: context.work.panics.clone(),
        };
        let running = run_workers(queue.clone(), reconcile, options);
        tokio::pin!(running);
        tokio::select! {
            biased;
            () = context.stop.cancelled() => {
                queue.shut_down();
                running.await?;
            }
            ended = &mut running => ended?,
            () = repeat(audit) => {}
        }
        // rule:no-release-with-open-writes
        if let Some(cut) = queue.last_cut() {
            sleep_until(cut + applicable_for(context.settings.write_timeout)).await;
        }
        Ok(())
    }
}

/// Waits for all of them.
fn all<K: Key>(ready: Vec<Ready<K>>) -> Option<Ready<K>> {
    if ready.is_empty() {
        return None;
    }
    Some(Box::new(move |key| {
        let waits: Vec<_> = ready.iter().filter_map(|ready| ready(key)).collect();
        if waits.is_empty() {
            return None;
        }
        Some(Box::pin(join_all(waits).map(drop)))
    }))
}

async fn within(limit: Option<Duration>, filled: impl Future) -> Result<(), Failure> {
    match limit {
        None => drop(filled.await),
        Some(limit) => {
            let filled = timeout(limit, filled).await;
            drop(filled.map_err(|_elapsed| Failure::CachesNotFilled(limit))?);
        }
    }
    Ok(())
}

/// Never ends.
async fn repeat(audit: Option<(Duration, Audit)>) {
    let Some((every, audit)) = audit else { return std::future::pending().await };
    let mut next = Instant::now() + every;
    loop {
        sleep_until(next).await;
        audit().await;
        next = Instant::now() + every;
    }
}

/// Adds the keys that `keys` names for an object whenever the object comes, changes or goes. Of one
/// that changes, its keys before are added too, so whoever it referred to hears that it does no
/// longer. Any number of caches may feed one queue; [`Run::feed`](crate::Run::feed) does this for a
/// run's own.
///
/// `keys` runs in the informer's task and must return at once. Who wants to hear of some changes
/// only subscribes by itself.
pub fn feed<T, K, I>(
    cache: &Informer<T>,
    queue: &WorkQueue<K>,
    keys: impl Fn(&T) -> I + Send + Sync + 'static,
) -> Subscription<T>
where
    T: Cached,
    K: Key,
    I: IntoIterator<Item = K>,
{
    let queue = queue.clone();
    cache.subscribe(move |delta| match delta {
        Delta::Added(object) | Delta::Deleted(object) => {
            for key in keys(object) {
                queue.add(key);
            }
        }
        Delta::Updated { old, new } => {
            let now: Vec<K> = keys(new).into_iter().collect();
            for key in keys(old).into_iter().filter(|key| !now.contains(key)) {
                queue.add(key);
            }
            for key in now {
                queue.add(key);
            }
        }
        Delta::ListStarts | Delta::ListEnds => {}
    })
}

#[cfg(test)]
mod tests;
