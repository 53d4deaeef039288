//! [`Names`]: the addresses of hosts, looked up once for all who ask at the same time and
//! remembered for a while, so that slow names do not delay other lookups
//! (`rule:slow-names-do-not-block-others`).

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};

/// How long an answer is good. The system's resolver does not tell how long the name server meant.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long an answer that is no longer good is kept, for when the next lookup is slow.
const KEPT: Duration = Duration::from_secs(600);
/// How long the next lookup may take before the answer that is no longer good is used.
const PATIENCE: Duration = Duration::from_millis(500);

type Answer = Result<Arc<[IpAddr]>, Arc<io::Error>>;
type Resolve = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;
type Known = Mutex<HashMap<Box<str>, Name>>;

/// The addresses of hosts.
pub struct Names {
    resolve: Arc<Resolve>,
    known: Arc<Known>,
    turns: Arc<Turns>,
}

/// The state of one host.
#[derive(Default)]
struct Name {
    /// The last good answer, and since when.
    answer: Option<(Arc<[IpAddr]>, Instant)>,
    /// The lookup under way.
    lookup: Option<Lookup>,
    /// The last lookup was slow.
    is_slow: bool,
    /// When the last lookup ended.
    looked_up: Option<Instant>,
}

/// A lookup on a task of its own, which goes on when no caller waits for it any more.
#[derive(Clone)]
struct Lookup(watch::Receiver<Option<Answer>>);

/// The next step for an asker.
enum Step {
    /// The answer is good.
    Known(Arc<[IpAddr]>),
    /// Wait for the lookup under way.
    Join(Lookup),
    /// No lookup is under way.
    Begin,
}

impl Name {
    fn good(&self, now: Instant) -> Option<&Arc<[IpAddr]>> {
        let (addresses, since) = self.answer.as_ref()?;
        (now.saturating_duration_since(*since) < REMEMBERED).then_some(addresses)
    }

    /// The answer of a lookup that panicked.
    fn under_way(&self) -> Option<&Lookup> {
        self.lookup.as_ref().filter(|lookup| lookup.0.has_changed().is_ok())
    }

    fn is_worth_keeping(&self, now: Instant) -> bool {
        let is_young = |since: Instant| now.saturating_duration_since(since) < KEPT;
        self.under_way().is_some()
            || self.answer.as_ref().is_some_and(|(_, since)| is_young(*since))
            || (self.is_slow && self.looked_up.is_some_and(is_young))
    }
}

impl Lookup {
    async fn answer(mut self) -> Answer {
        let found = self.0.wait_for(Option::is_some).await;
        let answer = found.ok().and_then(|found| found.clone());
        answer.unwrap_or_else(|| Err(Arc::new(io::Error::other("the lookup was aborted"))))
    }
}

impl Default for Names {
    /// Asks the resolver of the system.
    fn default() -> Self {
        Self::new(|host| {
            let addresses = async move { tokio::net::lookup_host((host, 0)).await };
            addresses.map(|found| Ok(found?.map(|address| address.ip()).collect())).boxed()
        })
    }
}

impl Names {
    /// Asks `resolve`.
    pub fn new(
        resolve: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self { resolve: Arc::new(resolve), known: Arc::default(), turns: Arc::default() }
    }

    /// The addresses of `host` for `asker`, at least one. An answer that is no longer good is used
    /// while the next lookup is slow. Giving up the future does not give up the lookup.
    ///
    /// # Errors
    /// The host has no address, or the lookup failed. The next call asks again.
    pub async fn addresses(&self, host: &str, asker: &Asker) -> Answer {
        let old = {
            let known = self.known.lock();
            let name = known.get(host);
            if let Some(good) = name.and_then(|name| name.good(Instant::now())) {
                return Ok(Arc::clone(good));
            }
            name.and_then(|name| name.answer.as_ref()).map(|(addresses, _)| Arc::clone(addresses))
        };
        match old {
            None => self.look_up(host, asker).await,
            Some(old) => timeout(PATIENCE, self.look_up(host, asker)).await.unwrap_or(Ok(old)),
        }
    }

    /// Forgets the addresses: no server could be reached there. The next call asks again.
    pub fn forget(&self, host: &str) {
        if let Some(name) = self.known.lock().get_mut(host) {
            name.answer = None;
        }
    }

    async fn look_up(&self, host: &str, asker: &Asker) -> Answer {
        let under_way = self.known.lock().get(host).and_then(Name::under_way).cloned();
        if let Some(lookup) = under_way {
            return lookup.answer().await;
        }
        // Not yet begun, so that other askers of this host do not wait for our turn.
        let turn = asker.turn().await;
        match self.step(host) {
            Step::Known(addresses) => Ok(addresses),
            Step::Join(lookup) => lookup.answer().await,
            Step::Begin => self.begin(host, turn).answer().await,
        }
    }

    /// Somebody else may have asked meanwhile.
    fn step(&self, host: &str) -> Step {
        let known = self.known.lock();
        let Some(name) = known.get(host) else { return Step::Begin };
        match (name.good(Instant::now()), name.under_way()) {
            (Some(good), _) => Step::Known(Arc::clone(good)),
            (None, Some(lookup)) => Step::Join(lookup.clone()),
            (None, None) => Step::Begin,
        }
    }

    fn begin(&self, host: &str, turn: Option<OwnedSemaphorePermit>) -> Lookup {
        let (done, found) = watch::channel(None);
        let is_slow = {
            let mut known = self.known.lock();
            if known.len() == known.capacity() {
                let now = Instant::now();
                known.retain(|_, name| name.is_worth_keeping(now));
            }
            let name = known.entry(host.into()).or_default();
            name.lookup = Some(Lookup(found.clone()));
            name.is_slow
        };
        let (resolve, turns) = (Arc::clone(&self.resolve), Arc::clone(&self.turns));
        let (known, host) = (Arc::clone(&self.known), host.to_owned());
        tokio::spawn(async move {
            let asked = host.clone();
            let (found, is_slow) = turns.run(is_slow, async move { resolve(asked).await }).await;
            let answer = match found {
                Ok(addresses) if addresses.is_empty() => {
                    Err(Arc::new(io::ErrorKind::NotFound.into()))
                }
                Ok(addresses) => Ok(addresses.into()),
                Err(error) => Err(Arc::new(error)),
            };
            let now = Instant::now();
            if let Some(name) = known.lock().get_mut(&*host) {
                name.answer = answer.as_ref().ok().map(|found| (Arc::clone(found), now));
                (name.lookup, name.is_slow, name.looked_up) = (None, is_slow, Some(now));
            }
            done.send_replace(Some(answer));
            drop(turn);
        });
        Lookup(found)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({} known)", self.known.lock().len())
    }
}

/// Lookups under way that are not known to be slow.
pub(crate) const QUICK: usize = 64;
/// Lookups under way that are.
pub(crate) const SLOW: usize = 192;
/// A lookup that takes this long is slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_millis(250);
/// Lookups under way of one asker.
pub(crate) const OF_AN_ASKER: usize = 2;

/// An asker for addresses, such as one member cluster. It has two lookups under way at most, however
/// many hosts it names.
#[derive(Clone, Debug)]
pub struct Asker(Arc<Semaphore>);

impl Default for Asker {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(OF_AN_ASKER)))
    }
}

impl Asker {
    /// `None` only when the semaphore is closed, which never happens.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

/// The turns of lookups, slow names apart from all others.
#[derive(Debug)]
pub(crate) struct Turns {
    quick: Semaphore,
    slow: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { quick: Semaphore::new(QUICK), slow: Semaphore::new(SLOW) }
    }
}

impl Turns {
    /// Carries out `lookup` of a name that was slow the last time or not, when it has its turn; what
    /// it found, and whether it was slow. A lookup that turns out to be slow leaves its turn to
    /// others as soon as there is one among the slow ones.
    pub(crate) async fn run<T>(
        &self,
        was_slow: bool,
        lookup: impl Future<Output = T>,
    ) -> (T, bool) {
        let mut lookup = pin!(lookup);
        if was_slow {
            let _turn = self.slow.acquire().await;
            let begun = Instant::now();
            return (lookup.await, begun.elapsed() >= SLOW_AFTER);
        }
        let quick = self.quick.acquire().await;
        if let Ok(found) = timeout(SLOW_AFTER, &mut lookup).await {
            return (found, false);
        }
        let found = tokio::select! {
            found = &mut lookup => found,
            _slow = self.slow.acquire() => {
                drop(quick);
                lookup.await
            }
        };
        (found, true)
    }
}

#[cfg(test)]
mod tests;
