//! The loop of an informer as a state machine: list, watch, and what follows each failure.
//!
//! | what happens | what follows |
//! |---|---|
//! | server unreachable, 429 or 5xx at the opening of a watch, 429 inside | wait, watch again from the same version |
//! | the connection was lost and the server may have been restarted | list again, compare with the store |
//! | 410, at the opening or inside | list again; at once if the last list served for 30 s |
//! | server closes the watch | watch again at once |
//! | the connection breaks or goes silent | watch again at once, and ask for the newest version |
//! | the same within a second, after an event | wait, watch again, and ask for the newest version |
//! | no word for two minutes inside a watch | ask for the newest version |
//! | the newest version is older than what is known | list again |
//! | a watch ends within a second and without an event | wait, list again |
//! | an event is older than an earlier word of its watch | wait, list again |
//! | the store and the server differ at the version at which a watch ended | wait, list again |
//! | protobuf that was asked for and cannot be read | list again at once, in JSON |
//! | a strict object that cannot be read, any other refusal | wait, list again |
//! | a list fails, or is older than what is known (rule:consistent-lists-only) | wait, list again |
//! | lists stay older than what is known | accept the third, end all sessions |
//! | a list that contradicts what was watched | accept it, end all sessions |
//!
//! The store stays as it is during all of this: old knowledge is better than none.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use kube_api::Kind;
use resilience::Series;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::comparison::{ALL_APART, Comparison};
use crate::fault::{FIRST_LIST, Fault, after_failures};
use crate::history::{Doubt, History, ListAge, Question, SERVER_RESTART};
use crate::intake::{Intake, MessageHead};
use crate::list::{Listed, Lister, Terms};
use crate::request::{Collection, Format};
use crate::shared::Shared;
use crate::source::FirstList;
use crate::stream::{self, Stream};

/// A watch shorter than this and without an event is a server's way of failing.
const SHORT: Duration = Duration::from_secs(1);
/// A list that expired sooner is no reason to list at once again: this server compacts faster
/// than it serves.
const WORTHWHILE: Duration = Duration::from_secs(30);
/// Lifetime of a watch that is to reach a version soon: the server sends a bookmark two seconds before the
/// end of a watch.
const SEEKING: Duration = Duration::from_secs(3);
/// A wait that the server asks for is logged each time from this length on.
const LONG_WAIT: Duration = Duration::from_secs(5);

enum State {
    /// The state of the server is unknown.
    Listing,
    /// The store is as new as its version; a watch has to be opened from there.
    Opening,
    Watching(Stream),
    /// The server does not know the collection.
    NotFound,
}

pub(crate) struct Reflector<'a> {
    cache: &'a dyn Intake,
    shared: &'a Shared,
    collection: Collection,
    lister: Lister,
    backoff: Series,
    history: History,
    listed_at: Option<Instant>,
    doubt: Doubt,
    /// What the store had when the last watch ended.
    comparison: Option<Comparison>,
    /// When the last comparison of all objects began, or they were last compared or listed. One that fails is not repeated
    /// sooner than one that succeeds: it costs the server as much.
    compared_at: Instant,
    /// Reason of the failure logged last, until something works again.
    logged_reason: Option<&'static str>,
}

impl<'a> Reflector<'a> {
    pub(crate) fn new(cache: &'a dyn Intake, collection: Collection) -> Self {
        Self {
            cache,
            shared: cache.shared(),
            collection,
            lister: Lister::new(),
            backoff: after_failures(),
            history: History::default(),
            listed_at: None,
            doubt: Doubt::default(),
            comparison: None,
            compared_at: Instant::now(),
            logged_reason: None,
        }
    }

    /// Returns when the server does not know a collection that it may cease to have.
    pub(crate) async fn run(mut self) {
        let mut state = State::Listing;
        loop {
            state = match state {
                State::Listing => self.list().await,
                State::Opening => self.open().await,
                State::Watching(stream) => self.watch(stream).await,
                State::NotFound => return,
            };
        }
    }

    async fn list(&mut self) -> State {
        self.shared.metrics.lists.inc();
        let begun = Instant::now();
        let any_will_do =
            !self.shared.progress.now().has_list(None) && !self.shared.is_list_demanded();
        let truth = if any_will_do { self.shared.source.first_list } else { FirstList::Consistent };
        let reuse = !self.history.is_doubted() && !self.doubt.is_lost();
        let terms = Terms { truth, reuse, lifetime: lifetime() };
        let listed = match self.lister.list(self.cache, &self.collection, terms).await {
            Ok(listed) => self.apply_list(listed, begun, terms),
            Err(fault) => Err(fault),
        };
        match listed {
            Ok(next) => {
                self.shared.metrics.list_duration.observe(begun.elapsed().as_secs_f64());
                self.compared_at = Instant::now();
                self.listed_at = Some(self.compared_at);
                self.comparison = None;
                self.doubt.end(self.shared);
                self.recovered();
                next
            }
            Err(fault) if self.turns_to_json(&fault) => State::Listing,
            Err(fault) => {
                self.pause(&fault).await;
                let built_in = matches!(self.shared.source.kind, Kind::BuiltIn(_));
                if !built_in && fault.is_not_found() { State::NotFound } else { State::Listing }
            }
        }
    }

    fn apply_list(
        &mut self,
        listed: Listed<'_>,
        begun: Instant,
        terms: Terms,
    ) -> Result<State, Fault> {
        let Listed { staged, version, stream } = listed;
        let (known, doubted) = (self.shared.version(), self.history.is_doubted());
        // Before its first list this loop did not follow what the store holds.
        let followed = self.doubt.followed(known);
        let contradiction =
            self.listed_at.and_then(|_| staged.contradiction(followed)).map(|it| it.to_string());
        match (self.history.judge(version, known, self.shared.silent_for()), contradiction) {
            (ListAge::Current, None) => staged.apply(version, begun, terms.truth),
            (ListAge::Current, Some(object)) if terms.reuse => {
                // No copy of the old history may stay, and one may have the same version.
                self.doubt.lost(self.shared);
                return Err(Fault::Contradiction { object });
            }
            (ListAge::Past, _) => {
                self.doubt.lost(self.shared);
                if !doubted {
                    // The outage before it is over; the lists that decide may follow soon.
                    self.backoff.reset();
                }
                return Err(Fault::Past { listed: version, known });
            }
            (ListAge::Current | ListAge::Restored, contradiction) => {
                let resource = &*self.shared.resource;
                warn!(
                    logger = "informer",
                    resource,
                    version,
                    known,
                    contradiction,
                    "The history of the API server went back, as after a restore of etcd; all \
                     controllers that use the cache are restarted"
                );
                staged.restart(version, begun);
            }
        }
        Ok(stream.map_or(State::Opening, State::Watching))
    }

    async fn open(&mut self) -> State {
        if self.shared.is_list_demanded() || self.calls_for_list() {
            return State::Listing;
        }
        self.shared.metrics.watches.inc();
        let asked = Instant::now();
        let lifetime = if self.shared.is_seeking() { SEEKING } else { lifetime() };
        let request = self.collection.watch_from(lifetime, self.shared.version());
        let opened = match request {
            Ok(request) => Stream::open(self.shared.client(), request, lifetime).await,
            Err(error) => Err(error.into()),
        };
        match opened {
            Ok(stream) if asked.elapsed() < SERVER_RESTART => {
                self.doubt.note_silence(self.shared);
                State::Watching(stream)
            }
            Ok(stream) => {
                // A balancer may have kept the request while the server was restarted.
                self.doubt.lost(self.shared);
                if self.calls_for_list() { State::Listing } else { State::Watching(stream) }
            }
            Err(fault) if fault.is_outage() => {
                self.doubt.not_opened(self.shared, &fault);
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault) => {
                self.shared.note_break();
                self.relist(fault).await
            }
        }
    }

    fn calls_for_list(&self) -> bool {
        let calls = self.doubt.calls_for_list(self.shared.silent_for(), self.listed_at);
        if calls {
            let (resource, silent) = (&*self.shared.resource, self.shared.silent_for());
            self.shared.metrics.relist("connection_lost");
            info!(
                logger = "informer",
                resource,
                ?silent,
                "The API server may have been restarted; listing again to compare its history"
            );
        }
        calls
    }

    /// Follows a watch to its end.
    async fn watch(&mut self, mut stream: Stream) -> State {
        let (cache, shared) = (self.cache, self.shared);
        let mut question = Question::new(shared, self.collection.clone(), self.doubt.is_lost());
        let (comparison, compared) = (self.comparison.take(), self.collection.clone());
        let mut comparing = pin!(async {
            match comparison {
                Some(comparison) => comparison.ask(shared, &compared).await,
                None => pending().await,
            }
        });
        let mut is_comparing = true;
        let mut events = 0_u64;
        let end = loop {
            let next = tokio::select! {
                biased;
                next = stream.next(Duration::MAX, |encoding, message| cache.take(encoding, message)) => next,
                answer = question.answered() => match answer {
                    Ok(()) => {
                        self.doubt.end(shared);
                        continue;
                    }
                    Err(behind) => break Err(behind),
                },
                answer = &mut comparing, if is_comparing => {
                    is_comparing = false;
                    match answer {
                        Ok(true) => self.compared_at = Instant::now(),
                        Ok(false) => {}
                        Err(fault @ Fault::Untrusted { .. }) => break Err(fault),
                        Err(fault) => {
                            let resource = &*shared.resource;
                            debug!(logger = "informer", resource, %fault, "Cannot compare the store");
                        }
                    }
                    continue;
                }
                () = shared.demanded.notified() => {
                    if shared.is_list_demanded() {
                        return State::Listing;
                    }
                    if shared.is_seeking() {
                        // A connection may have died in silence without a reset.
                        if shared.silent_for() >= SERVER_RESTART {
                            shared.note_break();
                        }
                        return State::Opening;
                    }
                    continue;
                }
            };
            match next {
                Ok(Some(MessageHead::Error(status))) => {
                    break Err(stream::refusal(status, Duration::ZERO));
                }
                Ok(Some(MessageHead::Version(version))) => self.heard(version),
                Ok(Some(MessageHead::Bookmark(mark))) => self.heard(mark.version),
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
            self.doubt.end(shared);
            question.heard();
            events += 1;
        };
        if let Err(Fault::Transport(_) | Fault::Silent(_) | Fault::Past { .. }) = &end {
            self.doubt.lost(shared);
        }
        if let Err(Fault::Untrusted { .. }) = &end {
            self.doubt.untrusted(shared);
        }
        let next = self.after_watch(end, events, stream.age()).await;
        if matches!(next, State::Opening) {
            let all = self.compared_at.elapsed() >= ALL_APART;
            self.comparison = Comparison::of(cache, all);
            if all && self.comparison.is_some() {
                self.compared_at = Instant::now();
            }
        }
        next
    }

    async fn after_watch(&mut self, end: Result<(), Fault>, events: u64, age: Duration) -> State {
        match end {
            Err(fault) if fault.is_throttled() => {
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault @ (Fault::Transport(_) | Fault::Silent(_))) if events > 0 || age > SHORT => {
                if age > SHORT {
                    let resource = &*self.shared.resource;
                    self.shared.metrics.error(fault.reason());
                    debug!(logger = "informer", resource, %fault, "Watch failed, opening it again");
                } else {
                    self.pause(&fault).await;
                }
                State::Opening
            }
            Err(fault) => self.relist(fault).await,
            Ok(()) if events == 0 && age < SHORT => self.relist(Fault::ShortWatch).await,
            Ok(()) => State::Opening,
        }
    }

    /// The watch has got so far.
    fn heard(&mut self, version: u64) {
        self.shared.advance(version);
        self.backoff.reset();
        self.recovered();
    }

    /// Decides to list again, after a wait unless the version merely ran out or another encoding
    /// is tried.
    async fn relist(&mut self, fault: Fault) -> State {
        let expired = fault.is_expired();
        let cause = if expired { "expired" } else { fault.reason() };
        self.shared.metrics.relist(cause);
        if self.turns_to_json(&fault) {
            return State::Listing;
        }
        if expired && self.listed_at.is_some_and(|at| at.elapsed() > WORTHWHILE) {
            let resource = &*self.shared.resource;
            self.shared.metrics.error(fault.reason());
            info!(logger = "informer", resource, %fault, "Watch expired, listing again");
        } else {
            self.pause(&fault).await;
        }
        State::Listing
    }

    /// True when the fault may be one of protobuf: from now on JSON is asked for.
    fn turns_to_json(&mut self, fault: &Fault) -> bool {
        // A server may answer in protobuf although JSON was asked for.
        if !fault.is_unreadable_protobuf()
            || !self.collection.turn_to(self.cache.accept(Format::Json))
        {
            return false;
        }
        let resource = &*self.shared.resource;
        self.shared.metrics.error(fault.reason());
        warn!(logger = "informer", resource, error = %fault,
            "Protobuf cannot be read, asking for JSON from now on; please report this");
        true
    }

    async fn pause(&mut self, fault: &Fault) {
        let (resource, reason) = (&*self.shared.resource, fault.reason());
        let mut wait = self.backoff.fail(Instant::now());
        if self.listed_at.is_none() && fault.is_outage() {
            wait = wait.min(FIRST_LIST);
        }
        let wait = wait.max(fault.retry_after());
        self.shared.metrics.error(reason);
        if matches!(fault, Fault::Undecodable { .. }) {
            self.shared.set_blocked(fault.to_string());
        }
        self.shared.set_denied(fault.denied().map(str::to_owned));
        if self.logged_reason == Some(reason) && fault.retry_after() < LONG_WAIT {
            debug!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed again");
        } else {
            warn!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed");
            self.logged_reason = Some(reason);
        }
        sleep(wait).await;
    }

    /// Something worked.
    fn recovered(&mut self) {
        self.shared.set_denied(None);
        if self.logged_reason.take().is_some() {
            let resource = &*self.shared.resource;
            info!(logger = "informer", resource, "List and watch work again");
        }
    }
}

/// How long the server is asked to keep a watch open; spread, so that the watches of many clients
/// do not end at once.
fn lifetime() -> Duration {
    Duration::from_secs(300).mul_f64(1.0 + resilience::draw())
}
