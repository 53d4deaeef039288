//! The loop of an informer as a state machine: list, watch, and what follows each failure.
//!
//! | what happens | what follows |
//! |---|---|
//! | server unreachable, 429 or 5xx at the opening of a watch, 429 inside | wait, watch again from the same version |
//! | 410, at the opening or inside | list again; at once if the last list served for 30 s |
//! | server closes the watch, or the connection breaks or goes silent | watch again at once |
//! | server closes the watch within a second and without an event | wait, list again |
//! | an object that cannot be read, any other refusal | wait, list again |
//! | a list fails, or is older than what is known | wait, list again |
//!
//! The store stays as it is during all of this: old knowledge is better than none.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use model::Cached;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::backoff::Backoff;
use crate::decode::Event;
use crate::fault::Fault;
use crate::informer::Shared;
use crate::list::{Listed, Lister};
use crate::request;
use crate::stream::{self, Stream};

/// A watch shorter than this and without an event is a server's way of failing.
const SHORT: Duration = Duration::from_secs(1);
/// A list that expired sooner is no reason to list at once again: this server compacts faster
/// than it serves.
const WORTHWHILE: Duration = Duration::from_secs(30);

enum State<T> {
    /// What the server has is unknown.
    Listing,
    /// The store is as new as its version; a watch has to be opened from there.
    Opening,
    Watching(Stream<T>),
}

pub(crate) struct Reflector<T> {
    shared: Arc<Shared<T>>,
    lister: Lister,
    backoff: Backoff,
    listed_at: Option<Instant>,
    /// Reason of the failure logged last, until something works again.
    complained: Option<&'static str>,
}

impl<T: Cached> Reflector<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        let (lister, backoff) = (Lister::default(), Backoff::new());
        Self { shared, lister, backoff, listed_at: None, complained: None }
    }

    pub(crate) async fn run(mut self) -> Infallible {
        let mut state = State::Listing;
        loop {
            state = match state {
                State::Listing => self.list().await,
                State::Opening => self.open().await,
                State::Watching(stream) => self.watch(stream).await,
            };
        }
    }

    async fn list(&mut self) -> State<T> {
        self.shared.metrics.lists.inc();
        let started = Instant::now();
        let listed = match self.lister.list(&self.shared, lifetime()).await {
            Ok(listed) => self.apply_list(listed),
            Err(fault) => Err(fault),
        };
        match listed {
            Ok(next) => {
                self.shared.metrics.list_duration.observe(started.elapsed().as_secs_f64());
                self.listed_at = Some(Instant::now());
                self.content();
                next
            }
            Err(fault) => {
                self.pause(&fault).await;
                State::Listing
            }
        }
    }

    fn apply_list(&mut self, listed: Listed<T>) -> Result<State<T>, Fault> {
        let known = self.shared.version();
        if listed.version < known {
            return Err(Fault::Past { listed: listed.version, known });
        }
        self.shared.store.replace(listed.objects);
        self.shared.advance(listed.version);
        self.shared.set_synced();
        Ok(listed.stream.map_or(State::Opening, State::Watching))
    }

    async fn open(&mut self) -> State<T> {
        self.shared.metrics.watches.inc();
        let lifetime = lifetime();
        let request = request::watch_from::<T>(lifetime, self.shared.version());
        let opened = match request {
            Ok(request) => Stream::open(&self.shared.client, request, lifetime).await,
            Err(error) => Err(error.into()),
        };
        match opened {
            Ok(stream) => State::Watching(stream),
            Err(fault) if fault.is_outage() => {
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault) => self.relist(fault).await,
        }
    }

    /// Follows a watch to its end.
    async fn watch(&mut self, mut stream: Stream<T>) -> State<T> {
        let mut events = 0_u64;
        let end = loop {
            match stream.next(Duration::MAX).await {
                Ok(Some(Event::Error(status))) => {
                    break Err(stream::refusal(status, Duration::ZERO));
                }
                Ok(Some(event)) => self.apply(event),
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
            events += 1;
        };
        let resource = T::RESOURCE;
        match end {
            Err(fault) if fault.is_throttled() => {
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault @ (Fault::Transport(_) | Fault::Silent(_))) if stream.age() > SHORT => {
                self.shared.metrics.error(fault.reason());
                debug!(logger = "informer", resource, %fault, "Watch broke, opening it again");
                State::Opening
            }
            Err(fault) => self.relist(fault).await,
            Ok(()) if events == 0 && stream.age() < SHORT => self.relist(Fault::ShortWatch).await,
            Ok(()) => State::Opening,
        }
    }

    fn apply(&mut self, event: Event<T>) {
        let version = match event {
            Event::Added(object) | Event::Modified(object) => {
                let version = object.resource_version();
                self.shared.store.upsert(object);
                version
            }
            Event::Deleted(object) => {
                let version = object.resource_version();
                self.shared.store.remove(object);
                version
            }
            Event::Bookmark(mark) => mark.version,
            Event::Error(_) => return,
        };
        self.shared.advance(version);
        self.backoff.reset();
        self.content();
    }

    /// Decides to list again, after a wait unless the version merely ran out.
    async fn relist(&mut self, fault: Fault) -> State<T> {
        let expired = fault.is_expired();
        let cause = if expired { "expired" } else { fault.reason() };
        self.shared.metrics.relist(cause);
        if expired && self.listed_at.is_some_and(|at| at.elapsed() > WORTHWHILE) {
            let resource = T::RESOURCE;
            self.shared.metrics.error(fault.reason());
            info!(logger = "informer", resource, %fault, "Watch expired, listing again");
        } else {
            self.pause(&fault).await;
        }
        State::Listing
    }

    async fn pause(&mut self, fault: &Fault) {
        let (resource, reason) = (T::RESOURCE, fault.reason());
        let wait = self.backoff.wait().max(fault.retry_after());
        self.shared.metrics.error(reason);
        if self.complained == Some(reason) {
            debug!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed again");
        } else {
            warn!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed");
            self.complained = Some(reason);
        }
        sleep(wait).await;
    }

    /// Something worked.
    fn content(&mut self) {
        if self.complained.take().is_some() {
            info!(logger = "informer", resource = T::RESOURCE, "List and watch work again");
        }
    }
}

/// How long the server is asked to keep a watch open; spread, so that the watches of many clients
/// do not end at once (`host.md` 11).
fn lifetime() -> Duration {
    Duration::from_secs(rand::random_range(300..=600))
}
