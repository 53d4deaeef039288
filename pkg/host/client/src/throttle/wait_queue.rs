//! The queue before a bucket: whoever's work has waited longest goes first
//! (`rule:the-oldest-goes-first`). One caller, the head, deals with the bucket; it lets others pass
//! for whom there are tokens too, and then hands the head on.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Order in the queue: by age, and by arrival among those of one age.
type Rank = (Instant, u64);

/// The message to a waiting caller.
#[derive(Debug)]
pub(super) enum Turn {
    /// To deal with the bucket.
    Head(Head),
    /// The head took a token for it.
    Passed,
}

/// The callers that wait. Without a head no caller waits.
#[derive(Debug, Default)]
pub(super) struct WaitQueue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    has_head: bool,
    arrivals: u64,
    waiting: BTreeMap<Rank, oneshot::Sender<Turn>>,
}

impl WaitQueue {
    /// Waits for a turn. Work that began at `since` comes before younger work. Giving up the future
    /// leaves the queue.
    pub(super) async fn turn(self: &Arc<Self>, since: Instant) -> Turn {
        let waiter = {
            let mut state = self.0.lock();
            state.arrivals += 1;
            let rank = (since, state.arrivals);
            if !state.has_head {
                state.has_head = true;
                return Turn::Head(Head { queue: Arc::clone(self), rank, held: true });
            }
            self.enter(&mut state, rank)
        };
        waiter.called().await
    }

    fn enter(self: &Arc<Self>, state: &mut State, rank: Rank) -> Waiter {
        let (call, called) = oneshot::channel();
        state.waiting.insert(rank, call);
        Waiter { queue: Arc::clone(self), rank, called }
    }

    /// Makes the first in queue the head, or leaves the queue without one.
    fn call_next(self: &Arc<Self>, state: &mut State) {
        state.has_head = false;
        while let Some((rank, call)) = state.waiting.pop_first() {
            let head = Head { queue: Arc::clone(self), rank, held: true };
            match call.send(Turn::Head(head)) {
                Ok(()) => {
                    state.has_head = true;
                    return;
                }
                // It gave up just now; its head must not hand itself on once more.
                Err(Turn::Head(mut head)) => head.held = false,
                Err(Turn::Passed) => {}
            }
        }
    }
}

/// A place in queue, left when it is dropped.
struct Waiter {
    queue: Arc<WaitQueue>,
    rank: Rank,
    called: oneshot::Receiver<Turn>,
}

impl Waiter {
    async fn called(mut self) -> Turn {
        match (&mut self.called).await {
            Ok(turn) => turn,
            // No sender is dropped without a message; if one is, by a defect, the caller goes on.
            Err(_) => Turn::Passed,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.queue.0.lock().waiting.remove(&self.rank);
    }
}

/// The right to deal with the bucket, handed to the next in queue when it is dropped.
#[derive(Debug)]
pub(super) struct Head {
    queue: Arc<WaitQueue>,
    rank: Rank,
    held: bool,
}

impl Head {
    /// After a wait: somebody older may have come meanwhile, and then goes first.
    pub(super) async fn give_way(mut self) -> Turn {
        let waiter = {
            let queue = Arc::clone(&self.queue);
            let mut state = queue.0.lock();
            if state.waiting.first_key_value().is_none_or(|(first, _)| *first > self.rank) {
                drop(state);
                return Turn::Head(self);
            }
            self.held = false;
            let waiter = queue.enter(&mut state, self.rank);
            queue.call_next(&mut state);
            waiter
        };
        waiter.called().await
    }

    /// Whether anybody waits behind.
    pub(super) fn is_followed(&self) -> bool {
        !self.queue.0.lock().waiting.is_empty()
    }

    /// Lets the first waiter pass with a token that was taken for it. False when no caller waits
    /// any more.
    pub(super) fn let_pass(&self) -> bool {
        let mut state = self.queue.0.lock();
        while let Some((_, call)) = state.waiting.pop_first() {
            if call.send(Turn::Passed).is_ok() {
                return true;
            }
        }
        false
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        if self.held {
            let queue = Arc::clone(&self.queue);
            let mut state = queue.0.lock();
            queue.call_next(&mut state);
        }
    }
}
