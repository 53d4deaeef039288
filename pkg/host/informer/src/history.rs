//! Whether the history of the server is still the one that the cache has followed
//! (rule:history-that-goes-back): [`History`] judges lists, [`Doubt`] a connection that was lost, and
//! [`Question`] asks for the newest version.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::fault::Fault;
use crate::request::Collection;
use crate::shared::Shared;
use crate::{decode, stream};

/// Number of agreeing lists that are accepted.
const AGREEING: u32 = 3;
/// Silence of the server after which the second agreeing list is accepted.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// How old a list is, by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListAge {
    /// The list is as new as the cache.
    Current,
    /// The list is older, perhaps from a server that lags behind: it is not applied.
    Past,
    /// The list is older and accepted: everything known before is void.
    Restored,
}

/// The lists from the past so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    agreeing: u32,
    /// Version of the last of them.
    last: u64,
}

impl History {
    /// Judges a consistent list; `silent` is the time since the last word that was believed.
    pub(crate) fn judge(&mut self, listed: u64, known: u64, silent: Duration) -> ListAge {
        if listed >= known {
            *self = Self::default();
            return ListAge::Current;
        }
        // One that is older than the last comes from another server: they do not agree.
        self.agreeing = if listed >= self.last { self.agreeing + 1 } else { 1 };
        self.last = listed;
        if self.agreeing >= AGREEING || (self.agreeing > 1 && silent >= SILENCE) {
            *self = Self::default();
            return ListAge::Restored;
        }
        ListAge::Past
    }

    /// A list from the past came last: copies of that version may differ from those known.
    pub(crate) fn is_doubted(&self) -> bool {
        self.agreeing > 0
    }
}

/// Shortest time in which an API server starts or an etcd is restored.
pub(crate) const SERVER_RESTART: Duration = Duration::from_secs(2);
/// A connection that breaks in a quiet time and is opened again at the first try calls for a list
/// no more often than this: a proxy that cuts idle connections must not cause a list each time.
pub(crate) const LISTS_APART: Duration = Duration::from_secs(300);
/// Bookmarks come about once a minute.
const SILENT: Duration = Duration::from_secs(120);
/// Pause between questions while sends are held.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// State of the loop after a connection was lost.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    lost: bool,
    /// A watch could not be opened since.
    opening_failed: bool,
    /// The watch broke its contract ([`Fault::Untrusted`]).
    untrusted: bool,
}

impl Doubt {
    /// The connection broke.
    pub(crate) fn lost(&mut self, shared: &Shared) {
        self.lost = true;
        shared.set_doubted(true);
        self.note_silence(shared);
    }

    /// After a connection was lost: a server that said nothing for so long may have been restarted.
    pub(crate) fn note_silence(&self, shared: &Shared) {
        if self.lost && shared.silent_for() >= SERVER_RESTART {
            shared.note_break();
        }
    }

    /// A watch could not be opened.
    pub(crate) fn not_opened(&mut self, shared: &Shared, fault: &Fault) {
        // A server that throttles is up.
        self.opening_failed |= !fault.is_throttled();
        shared.note_break();
        self.lost(shared);
    }

    /// The watch broke its contract, so the store may be wrong.
    pub(crate) fn untrusted(&mut self, shared: &Shared) {
        self.untrusted = true;
        shared.set_doubted(true);
        shared.note_break();
    }

    /// The version up to which the store has followed all changes, of those that it knows. Of an untrusted
    /// watch it may lack some: a list that shows them is no proof of another history.
    pub(crate) fn followed(&self, known: u64) -> u64 {
        if self.untrusted && !self.lost { 0 } else { known }
    }

    /// The server has the history that the cache follows.
    pub(crate) fn end(&mut self, shared: &Shared) {
        *self = Self::default();
        shared.set_doubted(false);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether only a consistent list can tell: the server said nothing for so long that it may
    /// have been started again, with an etcd that has lost its last seconds. A watch from the
    /// version that is known, and the server's newest version, show nothing of that once the new
    /// history has passed the known version.
    pub(crate) fn calls_for_list(&self, silent: Duration, listed: Option<Instant>) -> bool {
        let is_due = || listed.is_none_or(|at| at.elapsed() >= LISTS_APART);
        self.lost && silent >= SERVER_RESTART && (self.opening_failed || is_due())
    }
}

/// Asks the server for its newest version when there is a reason to: one request, while the watch
/// goes on. A server whose history is shorter than what is known keeps a watch from there open, and
/// silent, without end.
pub(crate) struct Question<'a> {
    shared: &'a Shared,
    collection: Collection,
    ask_at: Instant,
    asking: Option<Asking<'a>>,
}

type Asking<'a> = Pin<Box<dyn Future<Output = Result<u64, Fault>> + Send + 'a>>;

impl<'a> Question<'a> {
    /// `at_once`: the connection broke before this watch.
    pub(crate) fn new(shared: &'a Shared, collection: Collection, at_once: bool) -> Self {
        let now = Instant::now();
        let ask_at = if at_once { now } else { now + SILENT };
        Self { shared, collection, ask_at, asking: None }
    }

    /// The watch said something, so its server has passed what we know.
    pub(crate) fn heard(&mut self) {
        self.asking = None;
        self.ask_at = Instant::now() + SILENT;
    }

    /// Returns with an answer: the server has got as far as what is known, or is behind it. May be
    /// dropped and called again.
    pub(crate) async fn answered(&mut self) -> Result<(), Fault> {
        loop {
            sleep_until(self.ask_at).await;
            let (shared, collection) = (self.shared, &self.collection);
            let asking = self
                .asking
                .get_or_insert_with(|| Box::pin(newest_version(shared, collection.clone())));
            let answer = asking.await;
            self.heard();
            let known = self.shared.version();
            match answer {
                Ok(listed) if listed < known => return Err(Fault::Past { listed, known }),
                Ok(_) => return Ok(()),
                Err(fault) => {
                    let resource = &*self.shared.resource;
                    debug!(logger = "informer", resource, %fault, "Cannot read the newest \
                        resource version");
                    if self.shared.is_doubted() {
                        self.ask_at = Instant::now() + ASK_AGAIN;
                    }
                }
            }
        }
    }
}

pub(crate) async fn newest_version(shared: &Shared, collection: Collection) -> Result<u64, Fault> {
    let request = collection.newest_version()?;
    let (encoding, body) = stream::fetch(shared.client(), request, stream::LONGEST_PAGE).await?;
    decode::list_version(encoding, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn judge(history: &mut History, listed: &[u64], known: u64) -> Vec<ListAge> {
        listed.iter().map(|listed| history.judge(*listed, known, SOON)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_calls_for_a_list_after_two_silent_seconds_and_rarely() {
        let ago = |seconds| Some(Instant::now() - Duration::from_secs(seconds));
        tokio::time::advance(Duration::from_secs(1000)).await;
        let (lost, failed) = (
            Doubt { lost: true, ..Doubt::default() },
            Doubt { lost: true, opening_failed: true, ..Doubt::default() },
        );
        let millis = Duration::from_millis;
        let rows = [
            (&lost, millis(2000), ago(300), true),
            (&lost, millis(2000), None, true),
            (&lost, millis(2000), ago(299), false),
            (&lost, millis(1999), ago(300), false),
            (&failed, millis(2000), ago(0), true),
            (&failed, millis(1999), ago(300), false),
            (&Doubt { lost: false, ..Doubt::default() }, millis(9000), ago(300), false),
            (&Doubt { opening_failed: true, ..Doubt::default() }, millis(9000), ago(300), false),
        ];
        for (doubt, silent, listed, expected) in rows {
            let calls = doubt.calls_for_list(silent, listed);
            assert_eq!(calls, expected, "{doubt:?} {silent:?} {listed:?}");
        }
    }

    #[test]
    fn three_lists_in_a_row_that_do_not_go_back_are_believed() {
        use ListAge::{Current, Past, Restored};
        for (listed, verdicts) in [
            (&[10, 11][..], &[Current, Current][..]),
            (&[5, 5, 5], &[Past, Past, Restored]),
            (&[5, 6, 9], &[Past, Past, Restored]),
            (&[5, 6, 10, 5, 6, 7], &[Past, Past, Current, Past, Past, Restored]),
            (&[5, 4, 5, 6], &[Past, Past, Past, Restored]),
            (&[9, 8, 7, 6, 5], &[Past; 5]),
        ] {
            assert_eq!(judge(&mut History::default(), listed, 10), verdicts, "{listed:?}");
        }
    }

    #[test]
    fn after_a_quarter_of_an_hour_of_silence_the_second_list_is_believed() {
        let long = Duration::from_secs(900);
        let mut history = History::default();
        assert_eq!(history.judge(5, 10, long), ListAge::Past);
        assert!(history.is_doubted());
        assert_eq!(history.judge(5, 10, long), ListAge::Restored);
        assert!(!history.is_doubted());
        assert_eq!(history.judge(5, 10, long), ListAge::Past);
        assert_eq!(history.judge(5, 10, SOON), ListAge::Past);
    }
}
