//! The loop of an informer as a state machine: list, watch, and what follows each failure.
//!
//! | what happens | what follows |
//! |---|---|
//! | server unreachable, 429 or 5xx at the opening of a watch, 429 inside | wait, watch again from the same version |
//! | a watch that four times in a row is answered 5xx | list again |
//! | 410, at the opening or inside | list again; at once if the last list served for 30 s |
//! | server closes the watch | watch again at once |
//! | the connection breaks or goes silent | watch again at once, and ask for the newest version |
//! | the same within a second, after an event | wait, watch again, and ask for the newest version |
//! | no word for two minutes inside a watch | ask for the newest version |
//! | the newest version is older than what is known | list again |
//! | a watch ends within a second and without an event | wait, list again |
//! | protobuf that was asked for and cannot be read | list again at once, in JSON |
//! | a strict object that cannot be read, any other refusal | wait, list again |
//! | a list fails, or is older than what is known (rule:consistent-lists-only) | wait, list again |
//! | lists stay older than what is known | begin anew with the third |
//!
//! The store stays as it is during all of this: old knowledge is better than none.

use std::time::Duration;

use backoff::Series;
use model::Kind;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::doubt::Doubt;
use crate::encoding::Format;
use crate::fault::Fault;
use crate::history::{History, Verdict};
use crate::intake::Intake;
use crate::list::{Listed, Lister, Terms};
use crate::message::Word;
use crate::request::Collection;
use crate::retry::after_failures;
use crate::shared::Shared;
use crate::source::FirstList;
use crate::stream::{self, Stream};

/// A watch shorter than this and without an event is a server's way of failing.
const SHORT: Duration = Duration::from_secs(1);
/// A list that expired sooner is no reason to list at once again: this server compacts faster
/// than it serves.
const WORTHWHILE: Duration = Duration::from_secs(30);
/// So many watches in a row that are refused by a server in trouble are followed by a list: it may
/// be able to do that.
const REFUSED_WATCHES: u32 = 4;
/// A wait that the server asks for is told from this length on, every time.
const LONG_WAIT: Duration = Duration::from_secs(5);

enum State {
    /// What the server has is unknown.
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
    refused_watches: u32,
    /// The next watch may be that of a server whose history went back.
    connection_broke: bool,
    /// Reason of the failure logged last, until something works again.
    complained: Option<&'static str>,
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
            refused_watches: 0,
            connection_broke: false,
            complained: None,
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
            !self.shared.progress.borrow().has_list(None) && !self.shared.is_list_demanded();
        let truth = if any_will_do { self.shared.source.first_list } else { FirstList::Consistent };
        let terms = Terms { truth, reuse: !self.history.is_doubted(), lifetime: lifetime() };
        let listed = match self.lister.list(self.cache, &self.collection, terms).await {
            Ok(listed) => self.apply_list(listed, begun, truth),
            Err(fault) => Err(fault),
        };
        match listed {
            Ok(next) => {
                self.shared.metrics.list_duration.observe(begun.elapsed().as_secs_f64());
                self.listed_at = Some(Instant::now());
                (self.refused_watches, self.connection_broke) = (0, false);
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
        truth: FirstList,
    ) -> Result<State, Fault> {
        let Listed { staged, version, stream } = listed;
        let (known, doubted) = (self.shared.version(), self.history.is_doubted());
        match self.history.judge(version, known, self.shared.silent_for()) {
            Verdict::Current => staged.apply(version, begun, truth),
            Verdict::Past => {
                if !doubted {
                    // The outage before it is over; the lists that decide may follow soon.
                    self.backoff.reset();
                }
                return Err(Fault::Past { listed: version, known });
            }
            Verdict::Restored => {
                let resource = &*self.shared.resource;
                warn!(
                    logger = "informer",
                    resource,
                    version,
                    known,
                    "The server's history went back, as after a restore of etcd; beginning anew"
                );
                staged.restart(version, begun);
            }
        }
        Ok(stream.map_or(State::Opening, State::Watching))
    }

    async fn open(&mut self) -> State {
        if self.shared.is_list_demanded() {
            return State::Listing;
        }
        self.shared.metrics.watches.inc();
        let lifetime = lifetime();
        let request = self.collection.watch_from(lifetime, self.shared.version());
        let opened = match request {
            Ok(request) => Stream::open(self.shared.client(), request, lifetime).await,
            Err(error) => Err(error.into()),
        };
        match opened {
            Ok(stream) => State::Watching(stream),
            Err(fault)
                if fault.is_server_error() && self.refused_watches + 1 >= REFUSED_WATCHES =>
            {
                self.relist(fault).await
            }
            Err(fault) if fault.is_outage() => {
                self.refused_watches += u32::from(fault.is_server_error());
                self.connection_broke = true;
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault) => self.relist(fault).await,
        }
    }

    /// Follows a watch to its end.
    async fn watch(&mut self, mut stream: Stream) -> State {
        let (cache, shared) = (self.cache, self.shared);
        let broke = std::mem::take(&mut self.connection_broke);
        let mut doubt = Doubt::new(shared, self.collection.clone(), broke);
        let mut events = 0_u64;
        let end = loop {
            let next = tokio::select! {
                biased;
                next = stream.next(Duration::MAX, |encoding, message| cache.take(encoding, message)) => next,
                behind = doubt.confirmed() => break Err(behind),
                () = shared.demanded.notified() => {
                    if shared.is_list_demanded() {
                        return State::Listing;
                    }
                    continue;
                }
            };
            match next {
                Ok(Some(Word::Error(status))) => {
                    break Err(stream::refusal(status, Duration::ZERO));
                }
                Ok(Some(Word::Version(version))) => self.heard(version),
                Ok(Some(Word::Bookmark(mark))) => self.heard(mark.version),
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
            doubt.heard();
            events += 1;
        };
        match end {
            Err(fault) if fault.is_throttled() => {
                self.pause(&fault).await;
                State::Opening
            }
            Err(fault @ (Fault::Transport(_) | Fault::Silent(_)))
                if events > 0 || stream.age() > SHORT =>
            {
                self.connection_broke = true;
                if stream.age() > SHORT {
                    let resource = &*self.shared.resource;
                    self.shared.metrics.error(fault.reason());
                    debug!(logger = "informer", resource, %fault, "Watch broke, opening it again");
                } else {
                    self.pause(&fault).await;
                }
                State::Opening
            }
            Err(fault) => self.relist(fault).await,
            Ok(()) if events == 0 && stream.age() < SHORT => self.relist(Fault::ShortWatch).await,
            Ok(()) => State::Opening,
        }
    }

    /// The watch has got so far.
    fn heard(&mut self, version: u64) {
        self.shared.advance(version);
        self.backoff.reset();
        self.refused_watches = 0;
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

    /// True when the fault may be one of protobuf: from now on JSON is asked for
    /// (rule:json-after-unreadable-protobuf).
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
        let wait = self.backoff.fail(Instant::now()).max(fault.retry_after());
        self.shared.metrics.error(reason);
        if matches!(fault, Fault::Undecodable { .. }) {
            self.shared.set_blocked(fault.to_string());
        }
        self.shared.set_denied(fault.denied().map(str::to_owned));
        if self.complained == Some(reason) && fault.retry_after() < LONG_WAIT {
            debug!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed again");
        } else {
            warn!(logger = "informer", resource, error = %fault, ?wait, "List or watch failed");
            self.complained = Some(reason);
        }
        sleep(wait).await;
    }

    /// Something worked.
    fn recovered(&mut self) {
        self.shared.set_denied(None);
        if self.complained.take().is_some() {
            let resource = &*self.shared.resource;
            info!(logger = "informer", resource, "List and watch work again");
        }
    }
}

/// How long the server is asked to keep a watch open; spread, so that the watches of many clients
/// do not end at once.
fn lifetime() -> Duration {
    Duration::from_secs(rand::random_range(300..=600))
}
