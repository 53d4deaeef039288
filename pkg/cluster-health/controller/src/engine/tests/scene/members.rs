//! [`Members`]: member clusters that are scripted, and what was done to them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::{BoxFuture, pending};
use health::{
    Cadence, Check, CheckEvidence, Code, Damping, Endpoints, EvidenceSource, Finding, Policy,
    ProbePath, Report, Thresholds,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::cluster;
use crate::check_document::Labels;
use crate::engine::flavour::{AnnouncedEnds, ClusterProber, Contact, Target, now};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok,
    Failing,
    /// Fails for another cause.
    Refusing,
    /// Never ends by itself.
    Silent,
    /// Cannot be reached.
    Unreachable,
    Panic,
}

/// The members, and what was done to them.
#[derive(Default)]
pub(crate) struct Members {
    answers: Mutex<HashMap<String, Answer>>,
    /// Starts of probes.
    starts: Mutex<HashMap<String, Vec<Instant>>>,
    /// Probes under way.
    under_way: Mutex<HashMap<String, usize>>,
    overlaps: AtomicUsize,
    /// How long a probe takes that is answered.
    takes: Mutex<Duration>,
    longest_probe: Mutex<Duration>,
    made: AtomicUsize,
    clients: Mutex<HashMap<(String, u64), Weak<Client>>>,
    /// What the checks of a member find; those of others hang.
    evidence: Mutex<HashMap<String, CheckEvidence>>,
    /// Runs of checks.
    examined: AtomicUsize,
    /// The contact of all members.
    contact: Mutex<Contact>,
}

struct Client {
    key: String,
    members: Arc<Members>,
}

/// Measures a probe, however it ends.
struct Stopwatch<'a>(&'a Members, &'a str, Instant);

impl<'a> Stopwatch<'a> {
    fn start(members: &'a Members, key: &'a str) -> Self {
        let mut under_way = members.under_way.lock();
        let count = under_way.entry(key.to_owned()).or_default();
        *count += 1;
        members.overlaps.fetch_add(usize::from(*count > 1), Ordering::Relaxed);
        Self(members, key, Instant::now())
    }
}

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        let mut longest = self.0.longest_probe.lock();
        *longest = longest.max(self.2.elapsed());
        *self.0.under_way.lock().entry(self.1.to_owned()).or_default() -= 1;
    }
}

impl ClusterProber for Client {
    fn probe(&self, _: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let started = Instant::now();
            self.members.starts.lock().entry(self.key.clone()).or_default().push(started);
            let _measured = Stopwatch::start(&self.members, &self.key);
            let takes = *self.members.takes.lock();
            tokio::time::sleep(takes).await;
            let finding = match self.members.answer(&self.key) {
                Answer::Ok => Finding::ok(ProbePath::Readyz),
                Answer::Failing => Finding::failed(Code::Http(500), ProbePath::Readyz),
                Answer::Refusing => Finding::failed(Code::Unauthorized, ProbePath::Readyz),
                Answer::Silent => pending().await,
                Answer::Unreachable => Finding::failed(Code::ConnectRefused, ProbePath::Readyz),
                Answer::Panic => panic!("a prober that panics"),
            };
            let (endpoints, detail) = (Endpoints { down: 0, total: 1 }, None);
            let (new_connection, attempts) = (true, 1);
            Report {
                finding,
                started: now(),
                took: S0,
                attempts,
                endpoints,
                new_connection,
                detail,
            }
        })
    }

    fn examine<'a>(&'a self, _: &'a Check) -> BoxFuture<'a, CheckEvidence> {
        self.members.examined.fetch_add(1, Ordering::Relaxed);
        let evidence = self.members.evidence.lock().get(&self.key).cloned();
        Box::pin(async move {
            match evidence {
                Some(evidence) => evidence,
                None => pending().await,
            }
        })
    }

    fn contact(&self) -> Contact {
        *self.members.contact.lock()
    }
}

const S0: Duration = Duration::ZERO;

impl Members {
    pub(crate) fn set(&self, key: &str, answer: Answer) {
        self.answers.lock().insert(key.to_owned(), answer);
    }

    /// So many of four Nodes are ready.
    pub(crate) fn set_ready_nodes(&self, key: &str, ready: usize) {
        let evidence = CheckEvidence::Nodes { ready, total: 4 };
        self.evidence.lock().insert(key.to_owned(), evidence);
    }

    /// Runs of checks so far.
    pub(crate) fn examined(&self) -> usize {
        self.examined.load(Ordering::Relaxed)
    }

    pub(crate) fn set_contact(&self, contact: Contact) {
        *self.contact.lock() = contact;
    }

    /// How often a probe began while another one of the same member was under way.
    pub(crate) fn overlaps(&self) -> usize {
        self.overlaps.load(Ordering::Relaxed)
    }

    /// Probes that are answered take so long from now on.
    pub(crate) fn take(&self, time: Duration) {
        *self.takes.lock() = time;
    }

    /// When a member was last probed.
    pub(crate) fn last_probe(&self, key: &str) -> Option<Instant> {
        self.starts.lock().get(key).and_then(|starts| starts.last().copied())
    }

    fn answer(&self, key: &str) -> Answer {
        self.answers.lock().get(key).copied().unwrap_or(Answer::Ok)
    }

    pub(crate) fn probes(&self, key: &str) -> usize {
        self.starts.lock().get(key).map_or(0, Vec::len)
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    pub(crate) fn longest_probe(&self) -> Duration {
        *self.longest_probe.lock()
    }

    /// Between the starts of two probes of any member.
    pub(crate) fn longest_gap(&self) -> Duration {
        let starts = self.starts.lock();
        let gaps = starts.values().flat_map(|all| all.windows(2).map(|pair| pair[1] - pair[0]));
        gaps.max().unwrap_or_default()
    }

    pub(crate) fn is_held(&self, key: &str, uid: u64) -> bool {
        let clients = self.clients.lock();
        clients.get(&(key.to_owned(), uid)).is_some_and(|client| client.strong_count() > 0)
    }
}

/// The target of a cluster with defaults.
pub(crate) fn target(members: &Arc<Members>, key: &str, uid: u64) -> Target {
    let (members, owned) = (Arc::clone(members), key.to_owned());
    Target {
        cluster: cluster(key, uid),
        addresses: vec!["one".into()],
        inputs: 1,
        prober: Box::new(move || {
            members.made.fetch_add(1, Ordering::Relaxed);
            let client = Client { key: owned.clone(), members: Arc::clone(&members) };
            let client = Arc::new(client);
            members.clients.lock().insert((owned, uid), Arc::downgrade(&client));
            client
        }),
        policy: policy(),
        labels: Labels::new(),
        paused: false,
        published: None,
        record: None,
        written: None,
        announced_ends: AnnouncedEnds::Nothing,
        together: 0,
    }
}

/// The defaults of the flags.
pub(crate) fn policy() -> Policy {
    let seconds = Duration::from_secs;
    Policy {
        cadence: Cadence {
            period: seconds(10),
            timeout: seconds(3),
            confirm: seconds(10),
            jitter: 0.1,
        },
        thresholds: Thresholds { failure: 3, success: 1 },
        damping: Damping { transitions: 6, window: seconds(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: seconds(300),
        objective: None,
        evidence: EvidenceSource::Both,
    }
}
