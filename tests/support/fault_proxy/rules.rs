//! Rules: which fault hits which request, and how often.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::canned::Canned;
use super::matching::{Match, Request};
use super::past::Past;
use crate::PATIENCE;

/// The way in which an answer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Cuts only this request: HTTP/2 resets its stream, HTTP/1.1 closes its connection.
    Stream,
    /// TCP reset: every request on the same connection is lost with it.
    Connection,
}

/// The fault of a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing: passed on as if there were no rule. For counting, or to spare it from later rules.
    None,
    /// The server gets it and acts; the client never hears of it.
    LoseAnswer(Cut),
    /// The server never gets it.
    Reset(Cut),
    /// The server never gets it; the client gets this.
    Answer(Canned),
    /// The server gets it and acts; the client gets this instead of the server's answer.
    ReplaceAnswer(Canned),
    /// Passed on later.
    DelayBefore(Duration),
    /// Answered later.
    DelayAfter(Duration),
    /// A list, or the beginning of a watch, is answered with an earlier state; a watch goes on
    /// from there. Other requests are passed on.
    Past(Past),
    /// See [`On::hold`].
    HoldBefore(Gate),
    /// See [`On::hold_answer`].
    HoldAfter(Gate),
}

impl Fault {
    /// A made-up answer with this code: [`Canned::status`].
    pub fn status(code: u16) -> Self {
        Self::Answer(Canned::status(code))
    }
}

/// All rules of a proxy, oldest first.
#[derive(Default)]
pub(super) struct Rules(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    id: u64,
    requests: Match,
    skip: usize,
    left: usize,
    fault: Fault,
    hits: watch::Sender<usize>,
}

impl Rules {
    /// The fault for this request, which counts as a use of its rule.
    pub(super) fn take(&self, request: &Request) -> Fault {
        for entry in self.0.lock().iter_mut().filter(|entry| entry.left > 0) {
            if !entry.requests.fits(request) {
                continue;
            }
            if entry.skip > 0 {
                entry.skip -= 1;
                continue;
            }
            entry.left -= 1;
            entry.hits.send_modify(|hits| *hits += 1);
            return entry.fault.clone();
        }
        Fault::None
    }
}

/// A rule in the making.
#[must_use = "a rule acts once it says what happens"]
pub struct On<'a> {
    rules: &'a Rules,
    requests: Match,
    skip: usize,
    times: usize,
}

impl<'a> On<'a> {
    pub(super) fn new(rules: &'a Rules, requests: Match) -> Self {
        Self { rules, requests, skip: 0, times: usize::MAX }
    }

    /// Limits the rule to the first `times` requests; without a limit it matches all.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Leaves out the first `skip` requests.
    pub fn skip(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    /// Installs the rule with this fault.
    pub fn then(self, fault: Fault) -> Rule {
        static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (hits, seen) = watch::channel(0);
        let Self { requests, skip, times: left, .. } = self;
        self.rules.0.lock().push(Entry { id, requests, skip, left, fault, hits });
        Rule { id, rules: Arc::clone(&self.rules.0), hits: seen }
    }

    /// Holds the requests back, so that the server does not get them, until the [`Hold`] is
    /// released or dropped.
    pub fn hold(self) -> Hold {
        self.hold_with(Fault::HoldBefore)
    }

    /// The server gets them and acts, but its answers wait until the [`Hold`] is released or
    /// dropped.
    pub fn hold_answer(self) -> Hold {
        self.hold_with(Fault::HoldAfter)
    }

    fn hold_with(self, fault: impl FnOnce(Gate) -> Fault) -> Hold {
        let gate = Gate { open: watch::channel(false).0, waiting: watch::channel(0).0 };
        let rule = self.then(fault(gate.clone()));
        Hold { gate, rule }
    }
}

/// A rule in force. Dropping this leaves it so.
#[derive(Clone)]
pub struct Rule {
    id: u64,
    rules: Arc<Mutex<Vec<Entry>>>,
    hits: watch::Receiver<usize>,
}

impl Rule {
    /// Number of requests that the rule has hit.
    pub fn hits(&self) -> usize {
        *self.hits.borrow()
    }

    /// Waits until it has acted on this many requests.
    pub async fn hit(&self, times: usize) {
        await_count(&self.hits, times, "requests that the rule is about").await;
    }

    /// Removes the rule.
    pub fn remove(self) {
        self.rules.lock().retain(|entry| entry.id != self.id);
    }
}

/// The point where held requests wait.
#[derive(Debug, Clone)]
pub struct Gate {
    open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    pub(super) async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut open = self.open.subscribe();
        // We hold a sender ourselves, so this cannot fail.
        let _passed = open.wait_for(|open| *open).await.is_ok();
    }
}

/// Requests on hold. Dropping it releases them.
pub struct Hold {
    gate: Gate,
    rule: Rule,
}

impl Hold {
    /// Waits until this many requests have come to wait here (with [`On::hold_answer`]: until
    /// the server has answered them).
    pub async fn arrived(&self, times: usize) {
        await_count(&self.gate.waiting.subscribe(), times, "requests to hold").await;
    }

    /// Lets them go on, and those that come later not even wait.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.rule.clone().remove();
        self.gate.open.send_replace(true);
    }
}

async fn await_count(count: &watch::Receiver<usize>, wanted: usize, what: &str) {
    let mut count = count.clone();
    let reached = timeout(PATIENCE, count.wait_for(|count| *count >= wanted)).await;
    let in_time = matches!(reached, Ok(Ok(_)));
    drop(reached);
    let now = *count.borrow();
    assert!(in_time, "{now} instead of {wanted} {what} within {PATIENCE:?}");
}
