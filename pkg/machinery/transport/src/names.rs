//! [`Names`]: the addresses of hosts, looked up once for all who ask at the same time and remembered
//! for a while (`rule:names-are-looked-up-once`).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long an answer is good. The system's resolver does not tell how long the name server meant.
const REMEMBERED: Duration = Duration::from_secs(60);

type Answer = Result<Arc<[IpAddr]>, Arc<io::Error>>;
type Resolve = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// The addresses of hosts.
pub struct Names {
    resolve: Box<Resolve>,
    known: Mutex<HashMap<Box<str>, Lookup>>,
}

#[derive(Clone)]
struct Lookup {
    began: Instant,
    answer: Shared<BoxFuture<'static, Answer>>,
}

impl Lookup {
    /// One that has no answer yet is joined however long it takes: the system's resolver holds a
    /// thread for each.
    fn is_good(&self, now: Instant) -> bool {
        self.answer.peek().is_none() || now.saturating_duration_since(self.began) < REMEMBERED
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
        Self { resolve: Box::new(resolve), known: Mutex::default() }
    }

    /// The addresses of `host`, at least one. Giving up the future does not give up the lookup.
    ///
    /// # Errors
    /// It has none, or nobody could say. The next call asks again.
    pub async fn addresses(&self, host: &str) -> Answer {
        let lookup = self.lookup(host);
        let answer = lookup.answer.clone().await;
        if answer.is_err() {
            self.forget_if(host, |known| known.answer.ptr_eq(&lookup.answer));
        }
        answer
    }

    /// Asks again next time: nobody could be reached at these addresses.
    pub fn forget(&self, host: &str) {
        self.forget_if(host, |known| known.answer.peek().is_some());
    }

    fn lookup(&self, host: &str) -> Lookup {
        let (mut known, now) = (self.known.lock(), Instant::now());
        if let Some(lookup) = known.get(host).filter(|lookup| lookup.is_good(now)) {
            return lookup.clone();
        }
        if known.len() == known.capacity() {
            known.retain(|_, lookup| lookup.is_good(now));
        }
        let found = (self.resolve)(host.to_owned()).map(|found| match found {
            Ok(addresses) if addresses.is_empty() => Err(Arc::new(io::ErrorKind::NotFound.into())),
            Ok(addresses) => Ok(addresses.into()),
            Err(error) => Err(Arc::new(error)),
        });
        let lookup = Lookup { began: now, answer: found.boxed().shared() };
        known.insert(host.into(), lookup.clone());
        lookup
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
