//! How far the request of one attempt got, and until when the server may still act on it. Made by
//! the attempt layer, filled in by the innermost one, read when the attempt has ended.

use std::time::Duration;

use http::Request;
use http_body::Body as _;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::call::request::is_mutating;

/// Time for a request to travel to the server, whose own clock starts when it arrives. An
/// assumption: one that takes longer must be cancelled by the reset right behind it
/// (`rule:writes-end-with-their-timeout`). The leader's fence keeps as much of the lease, or a
/// quarter of a lease under 4 s.
pub const TRAVEL: Duration = Duration::from_secs(1);

/// How long after it left a write may still be carried out by the server, which was given `timeout`
/// for it and gets it within the travel time.
pub fn applicable_for(timeout: Duration) -> Duration {
    timeout.saturating_add(TRAVEL)
}

/// The state of one attempt; put into the request's extensions.
#[derive(Debug)]
pub(crate) struct Progress {
    /// It has a body that the connection asks for, as every write has; another may leave unseen.
    is_asked_for: bool,
    /// When the attempt is given up; `None` for a watch.
    deadline: Option<Instant>,
    state: Mutex<State>,
}

/// One lock over both, so that whoever sees that the body was taken sees until when it counts.
#[derive(Debug)]
struct State {
    body: BodyState,
    settled_at: Option<Instant>,
}

/// Leaves [`Kept`](Self::Kept) once: the connection, the fence and the end of the attempt compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Kept,
    Taken,
    Refused,
    GivenUp,
}

/// How far a request got whose attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its body was never taken and never will be: the server cannot act on it.
    NotSent,
    /// The fence had closed when the body was asked for.
    Refused,
    /// It may have left, and the server may act on it until then; `None` if it sets no end.
    MayHaveLeft(Option<Instant>),
}

impl Progress {
    pub(crate) fn new(request: &Request<Body>, deadline: Option<Instant>) -> Self {
        Self {
            is_asked_for: is_mutating(request.method()) || !request.body().is_end_stream(),
            deadline,
            state: Mutex::new(State { body: BodyState::Kept, settled_at: None }),
        }
    }

    /// When the attempt is given up; `None` for a watch.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What is left of the attempt's own limit.
    pub(crate) fn time_left(&self) -> Duration {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }

    /// A write leaves now, and the server will give it up `timeout` after it has arrived. A request
    /// without limit (zero: a read) never settles anything.
    pub(crate) fn leaves(&self, timeout: Duration) {
        self.state.lock().leaves(timeout);
    }

    /// The connection asks for the body, which is when the request really leaves. `false`: it must
    /// not have it, because the attempt has ended.
    #[must_use]
    pub(crate) fn take_body(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if state.body != BodyState::Kept {
            return false;
        }
        state.body = BodyState::Taken;
        state.leaves(timeout);
        true
    }

    /// The fence closed before the connection asked for the body.
    pub(crate) fn refuse_body(&self) {
        let mut state = self.state.lock();
        if state.body == BodyState::Kept {
            state.body = BodyState::Refused;
        }
    }

    /// The attempt has ended without an answer: a body that is still here never leaves.
    pub(crate) fn end(&self) -> Reach {
        let mut state = self.state.lock();
        if state.body == BodyState::Kept && self.is_asked_for {
            state.body = BodyState::GivenUp;
        }
        match state.body {
            BodyState::GivenUp => Reach::NotSent,
            BodyState::Refused => Reach::Refused,
            BodyState::Taken | BodyState::Kept => Reach::MayHaveLeft(state.settled_at),
        }
    }

    /// From when on the server is taken to carry out the write no longer; `None` if none was sent.
    pub(crate) fn settled_at(&self) -> Option<Instant> {
        self.state.lock().settled_at
    }
}

impl State {
    fn leaves(&mut self, timeout: Duration) {
        if !timeout.is_zero() {
            self.settled_at = Instant::now().checked_add(applicable_for(timeout));
        }
    }
}
