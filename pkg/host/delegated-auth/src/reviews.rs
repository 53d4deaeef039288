//! [`Reviews`]: the bounded cache of reviews. Answers are reused for their time to live, a question
//! is asked once at a time, unknown askers share a few slots, and granted answers outlive an outage
//! of the API server (rule:readers-outlive-an-outage). So a flood of bad tokens costs bounded
//! memory and a bounded rate of reviews.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use resilience::Lru;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// The longest that a review takes, its repetitions included.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);
/// The longest wait for an answer before an older one is used.
const BEFORE_STALE: Duration = Duration::from_millis(600);
/// The longest wait while the last review has failed, or where the reply does not depend on it.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);
/// Most reviews under way for askers without a granted answer.
const STRANGERS: usize = 32;

/// The answer of the API server to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReviewAnswer<V> {
    Granted(V),
    Refused,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewFailure {
    /// The API server cannot be reached, or is too busy to answer.
    Unreachable,
    /// The API server refuses to review for us, or its answer cannot be read.
    Refused,
}

/// The result of one review.
pub(crate) type Reviewed<V> = Result<ReviewAnswer<V>, ReviewFailure>;

/// The state of knowledge when an asker stops waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<V> {
    Known(ReviewAnswer<V>),
    /// The last answer; there is no answer now.
    Stale(V),
    Unknown,
}

/// How long answers count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    pub(crate) granted: Duration,
    pub(crate) refused: Duration,
    /// Life of a granted answer while there is no new one.
    pub(crate) stale: Duration,
}

/// How much an asker can do with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// When the request came in.
    pub(crate) since: Instant,
    /// The longest wait.
    pub(crate) patience: Duration,
    /// An answer of before will do.
    pub(crate) stale_will_do: bool,
}

/// One kind of questions. Clones share everything.
#[derive(Clone)]
pub(crate) struct Reviews<V>(Arc<Inner<V>>);

struct Inner<V> {
    lives: Lives,
    state: Mutex<State<V>>,
    strangers: Arc<Semaphore>,
}

struct State<V> {
    granted: AnswerCache<V>,
    refused: AnswerCache<()>,
    under_way: HashMap<Key, UnderWay<V>>,
    /// Why there is no answer now; none if the last review had one. `Refused` lasts until a review
    /// has an answer (rule:readers-outlive-an-outage).
    failure: Option<ReviewFailure>,
}

/// Empty until the review has ended.
type UnderWay<V> = watch::Receiver<Option<Reviewed<V>>>;

impl<V: Clone + Send + Sync + 'static> Reviews<V> {
    /// Remembers at most `capacity` answers of each kind.
    pub(crate) fn new(lives: Lives, capacity: usize) -> Self {
        Self(Arc::new(Inner {
            lives,
            state: Mutex::new(State {
                granted: AnswerCache::new(capacity),
                refused: AnswerCache::new(capacity),
                under_way: HashMap::new(),
                failure: None,
            }),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
        }))
    }

    /// The answer to the question `key`. `review` asks the API server, when that has to be, and
    /// may fail; it goes on when no caller waits for it any more.
    pub(crate) async fn ask<F>(
        &self,
        key: Key,
        asking: Asking,
        review: impl FnOnce() -> F,
    ) -> Answer<V>
    where
        F: Future<Output = Reviewed<V>> + Send + 'static,
    {
        let (last, failure) = {
            let mut state = self.0.state.lock();
            if let Some(verdict) = state.fresh(&key, self.0.lives) {
                return Answer::Known(verdict);
            }
            (state.granted.get(&key, self.0.lives.stale), state.failure)
        };
        let is_stranger = last.is_none();
        let refused = Some(ReviewFailure::Refused);
        let last = last.filter(|_| asking.stale_will_do && failure != refused);
        let limit = asking.since + patience(failure, last.is_some()).min(asking.patience);
        let answer = timeout_at(limit, self.asked(key, is_stranger, review)).await;
        match (answer.unwrap_or(Err(ReviewFailure::Unreachable)), last) {
            (Ok(verdict), _) => Answer::Known(verdict),
            (Err(ReviewFailure::Unreachable), Some(last)) if self.failure() != refused => {
                Answer::Stale(last)
            }
            (Err(_), _) => Answer::Unknown,
        }
    }

    fn failure(&self) -> Option<ReviewFailure> {
        self.0.state.lock().failure
    }

    /// Waits for the review of `key` that is under way, or begins it.
    async fn asked<F>(&self, key: Key, is_stranger: bool, review: impl FnOnce() -> F) -> Reviewed<V>
    where
        F: Future<Output = Reviewed<V>> + Send + 'static,
    {
        let turn = if is_stranger {
            Arc::clone(&self.0.strangers).acquire_owned().await.ok()
        } else {
            None
        };
        let mut under_way = {
            let mut state = self.0.state.lock();
            // Another asker may have asked the same while this one waited for its slot.
            if let Some(verdict) = state.fresh(&key, self.0.lives) {
                return Ok(verdict);
            }
            match state.under_way.get(&key).filter(|review| review.has_changed().is_ok()) {
                Some(review) => review.clone(),
                None => {
                    let begun = self.begin(key, turn, review());
                    state.under_way.insert(key, begun.clone());
                    begun
                }
            }
        };
        let ended = under_way.wait_for(Option::is_some).await;
        ended.ok().and_then(|ended| ended.clone()).unwrap_or(Err(ReviewFailure::Unreachable))
    }

    fn begin<F>(&self, key: Key, turn: Option<OwnedSemaphorePermit>, review: F) -> UnderWay<V>
    where
        F: Future<Output = Reviewed<V>> + Send + 'static,
    {
        let (ended, under_way) = watch::channel(None);
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let reviewed = timeout(LONGEST, review).await;
            let reviewed = reviewed.unwrap_or(Err(ReviewFailure::Unreachable));
            inner.settle(key, &reviewed);
            ended.send_replace(Some(reviewed));
            drop(turn);
        });
        under_way
    }
}

impl<V: Clone> Inner<V> {
    fn settle(&self, key: Key, reviewed: &Reviewed<V>) {
        let mut state = self.state.lock();
        state.failure = match (reviewed, state.failure) {
            (Ok(_), _) => None,
            // An outage that follows does not give the right to ask back.
            (Err(_), Some(ReviewFailure::Refused)) => Some(ReviewFailure::Refused),
            (Err(failure), _) => Some(*failure),
        };
        state.under_way.remove(&key);
        match reviewed {
            Ok(ReviewAnswer::Granted(value)) => {
                state.refused.remove(&key);
                state.granted.insert(key, value.clone());
            }
            Ok(ReviewAnswer::Refused) => {
                state.granted.remove(&key);
                state.refused.insert(key, ());
            }
            Err(_) => {}
        }
    }
}

/// The longest wait of an asker, who can do with an earlier answer or not.
fn patience(failure: Option<ReviewFailure>, has_earlier: bool) -> Duration {
    match (failure.is_some(), has_earlier) {
        (true, true) => Duration::ZERO,
        (true, false) => BRIEF,
        (false, true) => BEFORE_STALE,
        (false, false) => LONGEST,
    }
}

impl<V: Clone> State<V> {
    fn fresh(&mut self, key: &Key, lives: Lives) -> Option<ReviewAnswer<V>> {
        if let Some(value) = self.granted.get(key, lives.granted) {
            return Some(ReviewAnswer::Granted(value));
        }
        self.refused.get(key, lives.refused).map(|()| ReviewAnswer::Refused)
    }
}

/// A question as a hash: nothing of what it holds is kept.
pub(crate) type Key = [u8; 32];

/// The answers that were asked for last, each with the time when it was given.
#[derive(Debug)]
pub(crate) struct AnswerCache<V>(Lru<Key, (V, Instant)>);

impl<V: Clone> AnswerCache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Lru::new(capacity))
    }

    /// The answer when it was given less than `life` ago.
    pub(crate) fn get(&mut self, key: &Key, life: Duration) -> Option<V> {
        let (value, given) = self.0.get(key)?;
        (given.elapsed() < life).then(|| value.clone())
    }

    /// Keeps an answer that was given just now.
    pub(crate) fn insert(&mut self, key: Key, value: V) {
        self.0.insert(&key, (value, Instant::now()));
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests;
