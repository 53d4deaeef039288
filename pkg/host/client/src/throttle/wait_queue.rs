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
enum Turn {
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
    /// Waits for a turn, and then until `take` succeeds: it takes a token, or returns what to wait for. Work that began
    /// at `since` comes before younger work. Dropping the future leaves the queue.
    pub(super) async fn pass<W: Future<Output = ()>>(
        self: &Arc<Self>,
        since: Instant,
        take: impl Fn() -> Result<(), W>,
    ) {
        let mut turn = self.turn(since).await;
        while let Turn::Head(head) = turn {
            turn = match head.try_pass(&take) {
                Tried::Passed => return,
                Tried::GaveWay(waiter) => waiter.called().await,
                Tried::NoToken(head, wait) => {
                    wait.await;
                    Turn::Head(head)
                }
            };
        }
    }

    async fn turn(self: &Arc<Self>, since: Instant) -> Turn {
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

/// What the head could do.
enum Tried<W> {
    Passed,
    GaveWay(Waiter),
    /// There is no token; what to wait for.
    NoToken(Head, W),
}

/// The right to deal with the bucket, handed to the next in queue when it is dropped.
#[derive(Debug)]
struct Head {
    queue: Arc<WaitQueue>,
    rank: Rank,
    held: bool,
}

impl Head {
    /// Takes a token, and one for each waiter for whom there is one: waiters for the end of a pause leave
    /// together, and one 429 among their answers does not stop the others one by one. A caller that is older
    /// and came after this one was called goes first.
    fn try_pass<W>(mut self, take: impl Fn() -> Result<(), W>) -> Tried<W> {
        let queue = Arc::clone(&self.queue);
        let mut state = queue.0.lock();
        if state.waiting.first_key_value().is_some_and(|(first, _)| *first < self.rank) {
            self.held = false;
            let waiter = queue.enter(&mut state, self.rank);
            queue.call_next(&mut state);
            return Tried::GaveWay(waiter);
        }
        if let Err(wait) = take() {
            drop(state);
            return Tried::NoToken(self, wait);
        }
        while !state.waiting.is_empty() && take().is_ok() {
            state.let_pass();
        }
        Tried::Passed
    }
}

impl State {
    /// Lets the first waiter pass with a token that was taken for it.
    fn let_pass(&mut self) {
        while let Some((_, call)) = self.waiting.pop_first() {
            if call.send(Turn::Passed).is_ok() {
                return;
            }
        }
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
