//! How far the request of one attempt got, and until when the server may still act on it. Made by
//! the attempt layer, filled in by the innermost one, read when the attempt has ended.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::Request;
use http_body::Body as _;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

const KEPT: u8 = 0;
const TAKEN: u8 = 1;
const REFUSED: u8 = 2;

/// Time for a request to travel to the server, whose own clock starts when it arrives. The leader's
/// fence keeps more than this of the lease.
const TRAVEL: Duration = Duration::from_secs(1);

/// The state of one attempt; put into the request's extensions.
#[derive(Debug)]
pub(crate) struct Progress {
    /// A request without a body may leave unseen.
    has_body: bool,
    body: AtomicU8,
    /// When the attempt is given up; `None` for a watch.
    deadline: Option<Instant>,
    settled_at: Mutex<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(request: &Request<Body>, deadline: Option<Instant>) -> Self {
        Self {
            has_body: !request.body().is_end_stream(),
            body: AtomicU8::new(KEPT),
            deadline,
            settled_at: Mutex::new(None),
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
        if !timeout.is_zero() {
            *self.settled_at.lock() = Instant::now().checked_add(timeout.saturating_add(TRAVEL));
        }
    }

    /// The connection takes the body, which is when the request really leaves.
    pub(crate) fn body_taken(&self, timeout: Duration) {
        self.body.store(TAKEN, Ordering::Release);
        self.leaves(timeout);
    }

    /// The fence closed before the connection took the body.
    pub(crate) fn body_refused(&self) {
        self.body.store(REFUSED, Ordering::Release);
    }

    /// The body was never taken, so the server cannot have acted on the request.
    pub(crate) fn body_was_kept(&self) -> bool {
        self.has_body && self.body.load(Ordering::Acquire) == KEPT
    }

    /// The fence had closed when the body was asked for.
    pub(crate) fn was_refused(&self) -> bool {
        self.body.load(Ordering::Acquire) == REFUSED
    }

    /// From when on the server no longer carries out the write that was sent; `None` if none was.
    pub(crate) fn settled_at(&self) -> Option<Instant> {
        *self.settled_at.lock()
    }
}
