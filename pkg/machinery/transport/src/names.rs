//! [`Names`]: the addresses of hosts, looked up once for all who ask at the same time and
//! remembered for a while (`rule:names-are-looked-up-once`).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// How long an answer is good. The system's resolver does not tell how long the name server meant.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Lookups under way. Each holds one of the runtime's threads for blocking work, which also read
/// files.
const AT_ONCE: usize = 64;

type Answer = Result<Arc<[IpAddr]>, Arc<io::Error>>;
type Found = Option<(Answer, Instant)>;
type Resolve = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// The addresses of hosts.
pub struct Names {
    resolve: Arc<Resolve>,
    known: Mutex<HashMap<Box<str>, Lookup>>,
    turns: Arc<Semaphore>,
}

/// A lookup of a task of its own, which goes on when nobody waits for it any more.
#[derive(Clone)]
struct Lookup {
    /// The answer, once it is there, and since when.
    found: watch::Receiver<Found>,
}

impl Lookup {
    /// One that has no answer yet is joined however long it takes: the system's resolver holds a
    /// thread for each. One that panicked never gets any.
    fn is_good(&self, now: Instant) -> bool {
        match &*self.found.borrow() {
            Some((_, since)) => now.saturating_duration_since(*since) < REMEMBERED,
            None => self.found.has_changed().is_ok(),
        }
    }

    async fn answer(&mut self) -> Answer {
        let found = self.found.wait_for(Option::is_some).await;
        let answer = found.ok().and_then(|found| found.as_ref().map(|(answer, _)| answer.clone()));
        answer.unwrap_or_else(|| Err(Arc::new(io::Error::other("the lookup broke off"))))
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
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        Self { resolve: Arc::new(resolve), known: Mutex::default(), turns }
    }

    /// The addresses of `host`, at least one. Giving up the future does not give up the lookup.
    ///
    /// # Errors
    /// It has none, or nobody could say. The next call asks again.
    pub async fn addresses(&self, host: &str) -> Answer {
        let mut lookup = self.lookup(host);
        let answer = lookup.answer().await;
        if answer.is_err() {
            self.forget_if(host, |known| known.found.same_channel(&lookup.found));
        }
        answer
    }

    /// Asks again next time: nobody could be reached at these addresses.
    pub fn forget(&self, host: &str) {
        self.forget_if(host, |known| known.found.borrow().is_some());
    }

    fn lookup(&self, host: &str) -> Lookup {
        let (mut known, now) = (self.known.lock(), Instant::now());
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_good(now)) {
            return lookup.clone();
        }
        if known.len() == known.capacity() {
            known.retain(|_, lookup| lookup.is_good(now));
        }
        let lookup = self.begin(host.to_owned());
        known.insert(host.into(), lookup.clone());
        lookup
    }

    fn begin(&self, host: String) -> Lookup {
        let (done, found) = watch::channel(None);
        let (resolve, turns) = (Arc::clone(&self.resolve), Arc::clone(&self.turns));
        tokio::spawn(async move {
            // Fails only when the semaphore is closed, which nobody does.
            let _turn = turns.acquire_owned().await;
            let answer = match resolve(host).await {
                Ok(addresses) if addresses.is_empty() => {
                    Err(Arc::new(io::ErrorKind::NotFound.into()))
                }
                Ok(addresses) => Ok(addresses.into()),
                Err(error) => Err(Arc::new(error)),
            };
            done.send_replace(Some((answer, Instant::now())));
        });
        Lookup { found }
    }

    fn forget_if(&self, host: &str, matches: impl Fn(&Lookup) -> bool) {
        let mut known = self.known.lock();
        if known.get(host).is_some_and(matches) {
            known.remove(host);
        }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({} known)", self.known.lock().len())
    }
}

#[cfg(test)]
mod tests;
