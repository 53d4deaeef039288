//! The loop against a server in memory, on a paused clock: milliseconds of test for minutes of
//! leadership.

use std::sync::Mutex;
use std::time::Duration;

use prometheus::Registry;
use resilience::BootInstant;
use tokio::task::JoinHandle;
use tokio::time::advance;

use self::server::{Fault, Server, Store, Verb};
use super::*;
use crate::term::ElectionMetrics;

mod absent;
mod explored;
mod leaving;
mod rivals;
mod server;
mod telling;

const MS: Duration = Duration::from_millis(1);

/// Lease 4 s, renew deadline 3 s, retry 500 ms.
fn config(identity: &str) -> ElectionConfig {
    ElectionConfig {
        namespace: "kube-system".into(),
        name: "icm".into(),
        identity: identity.into(),
        lease_duration: 4_000 * MS,
        renew_deadline: 3_000 * MS,
        retry_period: 500 * MS,
    }
}

/// A candidate under test and everything it is tied to. Dropping it is a SIGKILL.
struct Running {
    status: watch::Receiver<Leadership>,
    orders: oneshot::Sender<Order>,
    term: Arc<Term>,
    fence: Fence,
    events: Arc<Mutex<Vec<LeaseEvent>>>,
    registry: Registry,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    fn start(identity: &str, store: Store) -> Self {
        Self::start_with(config(identity), store, || 0.0, || Ok(false))
    }

    /// A candidate in a cluster; `predecessor` says whether a leader has worked on it before.
    fn start_after(
        predecessor: impl Fn() -> Result<bool, String> + Send + Sync + 'static,
        store: Store,
    ) -> Self {
        Self::start_with(config("a"), store, || 0.0, predecessor)
    }

    fn start_with(
        config: ElectionConfig,
        store: Store,
        draw: impl Fn() -> f64 + Send + Sync + 'static,
        predecessor: impl Fn() -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        let registry = Registry::new();
        let metrics = ElectionMetrics::new(&registry).unwrap();
        let fence = Fence::closed();
        let term = Arc::new(Term::new(&fence));
        let (status, watched) = watch::channel(Leadership::Standby { holder: None });
        let (orders, inbox) = oneshot::channel();
        let events = Arc::<Mutex<Vec<LeaseEvent>>>::default();
        let sink = Arc::clone(&events);
        let shared = Shared {
            metrics: metrics.of_lease(&config.name, &term).unwrap(),
            term: Arc::clone(&term),
            fence: fence.clone(),
            status,
            on_event: Box::new(move |event| sink.lock().unwrap().push(event)),
            may_have_predecessor: Box::new(move || Box::pin(std::future::ready(predecessor()))),
            draw: Box::new(draw),
        };
        let task = tokio::spawn(Candidate::new(config, store, shared).run(inbox));
        Self { status: watched, orders, term, fence, events, registry, task }
    }

    /// Waits for a state, in virtual time.
    async fn until(&mut self, wanted: impl Fn(&Leadership) -> bool) -> Leadership {
        let reached = timeout_at(Instant::now() + 60_000 * MS, self.status.wait_for(|s| wanted(s)));
        reached.await.expect("a state within a minute").expect("a living candidate").clone()
    }

    async fn leads(&mut self) -> Leadership {
        self.until(|s| matches!(s, Leadership::Leading)).await
    }

    async fn loses(&mut self) -> String {
        match self.until(|s| matches!(s, Leadership::Lost { .. })).await {
            Leadership::Lost { reason } => reason,
            _ => unreachable!(),
        }
    }

    fn is_leading(&self) -> bool {
        matches!(*self.status.borrow(), Leadership::Leading)
    }

    fn event_messages(&self) -> Vec<String> {
        self.events.lock().unwrap().iter().map(|event| event.message.clone()).collect()
    }

    fn metric(&self, name: &str) -> Option<f64> {
        let families = self.registry.gather();
        let metric = families.iter().find(|f| f.name() == name)?.get_metric().first()?.clone();
        Some(metric.get_gauge().get_value() + metric.get_counter().get_value())
    }
}

fn well(_: Verb) -> Fault {
    Fault::default()
}

/// The `n`th call of `verb`, counted from 1, goes as `fault` says; the others well.
fn nth(verb: Verb, n: u32, fault: Fault) -> impl FnMut(Verb) -> Fault + Send {
    let mut seen = 0;
    move |called| {
        seen += u32::from(called == verb);
        if called == verb && seen == n { fault } else { Fault::default() }
    }
}

/// A record of `holder` whose times are nonsense: from the far past or the far future.
fn ghost(holder: &str, renewed: &str) -> LeaseRecord {
    LeaseRecord {
        holder: holder.into(),
        lease_seconds: Some(4),
        acquired: Some(renewed.parse().unwrap()),
        renewed: Some(renewed.parse().unwrap()),
        transitions: 7,
    }
}

const LOST_ANSWER: Fault =
    Fault { before: Duration::ZERO, after: Duration::ZERO, request_lost: false, answer_lost: true };

#[tokio::test(start_paused = true)]
async fn the_first_candidate_creates_the_lease_and_leads_at_once() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    let start = Instant::now();
    assert_eq!(a.leads().await, Leadership::Leading);
    assert_eq!(start.elapsed(), Duration::ZERO);
    let record = server.record();
    assert_eq!((record.holder.as_str(), record.transitions), ("a", 0));
    assert_eq!((record.lease_seconds, record.acquired), (Some(4), record.renewed));
    let metadata = server.lease().unwrap().metadata;
    assert_eq!(metadata.name.as_deref(), Some("icm"));
    assert_eq!(metadata.namespace.as_deref(), Some("kube-system"));
    assert_eq!(metadata.labels, None);
    assert_eq!(a.event_messages(), ["a became leader"]);
    assert_eq!(a.events.lock().unwrap()[0].lease_uid, "uid-1");
    assert_eq!(a.metric("leader_election_master_status"), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn metrics_exist_before_leadership_and_the_age_only_during_it() {
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let mut a = Running::start("a", server.store(well));
    a.until(|s| *s == Leadership::Standby { holder: Some("ghost".into()) }).await;
    assert_eq!(a.metric("leader_election_master_status"), Some(0.0));
    assert_eq!(a.metric("leader_election_slowpath_total"), Some(0.0));
    assert_eq!(a.metric("icm_lease_seconds_since_renew"), None);
    a.leads().await;
    assert!(a.metric("icm_lease_seconds_since_renew").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_silent_holder_is_replaced_after_its_lease_whatever_its_clock_said() {
    for skewed in ["1999-01-01T00:00:00Z", "2199-01-01T00:00:00Z"] {
        let server = Server::holding(ghost("ghost", skewed));
        let mut a = Running::start("a", server.store(well));
        let start = Instant::now();
        assert_eq!(a.leads().await, Leadership::Leading);
        assert_eq!(start.elapsed(), 4_000 * MS, "{skewed}");
        assert_eq!(server.record().transitions, 8);
        assert_ne!(server.record().acquired, Some(skewed.parse().unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_looks_at_the_lease_twice_in_a_retry_period() {
    for (draw, gap) in [(0.0, 250 * MS), (1.0, 275 * MS)] {
        let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
        let _a = Running::start_with(config("a"), server.store(well), move || draw, || Ok(false));
        tokio::time::sleep(2_000 * MS).await;
        let gets: Vec<_> = server.calls().iter().map(|(at, _)| *at).collect();
        assert!(gets.len() > 4);
        assert!(gets.windows(2).all(|pair| pair[1] - pair[0] == gap), "{draw}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_acts_at_the_moment_of_expiry_and_not_at_its_next_look() {
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let mut a = Running::start_with(config("a"), server.store(well), || 0.37, || Ok(false));
    let start = Instant::now();
    a.leads().await;
    assert_eq!(start.elapsed(), 4_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn renewing_takes_one_put_per_retry_period_and_keeps_the_acquire_time() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    let first = server.record();
    server.forget_calls();
    let start = Instant::now();
    advance_by(&mut a, 5_250).await;
    let wanted: Vec<_> = (1..=10).map(|n| (start + 500 * MS * n, Verb::Replace)).collect();
    assert_eq!(server.calls(), wanted);
    assert_ne!(server.record().renewed, first.renewed);
    assert_eq!(server.record().acquired, first.acquired);
    assert_eq!(server.record().transitions, 0);
    assert_eq!(a.metric("leader_election_slowpath_total"), Some(0.0));
}

/// Lets virtual time pass while the candidate keeps leading.
async fn advance_by(a: &mut Running, ms: u32) {
    tokio::time::sleep(MS * ms).await;
    assert!(a.is_leading(), "{:?}", a.status.borrow());
}

#[tokio::test(start_paused = true)]
async fn a_lease_touched_by_others_is_read_again_and_its_metadata_kept() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    let note = ("note".to_owned(), "kubectl was here".to_owned());
    server.edit(|lease| lease.metadata.annotations = Some([note.clone()].into()));
    server.forget_calls();
    advance_by(&mut a, 1_100).await;
    let verbs: Vec<_> = server.calls().into_iter().map(|(_, verb)| verb).collect();
    assert_eq!(verbs, [Verb::Replace, Verb::Get, Verb::Replace, Verb::Replace]);
    assert_eq!(a.metric("leader_election_slowpath_total"), Some(1.0));
    assert_eq!(server.lease().unwrap().metadata.annotations, Some([note].into()));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_a_renewal_costs_a_read_and_no_leadership() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 3, LOST_ANSWER)));
    a.leads().await;
    advance_by(&mut a, 10_000).await;
    assert_eq!(a.metric("leader_election_slowpath_total"), Some(1.0));
    assert_eq!(server.record().transitions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_given_up_in_time_for_a_second_try() {
    let server = Server::default();
    let silent = Fault { before: 60_000 * MS, ..Fault::default() };
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 1, silent)));
    a.leads().await;
    let start = Instant::now();
    advance_by(&mut a, 3_500).await;
    let second = server.calls().into_iter().rfind(|(_, verb)| *verb == Verb::Get).unwrap();
    assert_eq!(second.0 - start, 2_000 * MS, "500 ms of pause and half a renew deadline");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_takeover_is_found_out_at_the_next_look() {
    let server = Server::holding(ghost("", "2000-01-01T00:00:00Z"));
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 1, LOST_ANSWER)));
    let start = Instant::now();
    a.leads().await;
    assert_eq!(start.elapsed(), 250 * MS);
    assert_eq!(server.record().transitions, 8, "our own record is no other holder's");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_server_ends_leadership_one_renew_deadline_after_the_last_renewal() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    advance_by(&mut a, 1_000).await;
    let last_renewal = server.calls().last().unwrap().0;
    server.freeze(20_000 * MS);
    let reason = a.loses().await;
    assert_eq!(last_renewal.elapsed(), 3_000 * MS);
    assert!(reason.contains("within 3s") && reason.contains("no answer in time"), "{reason}");
    assert!(a.fence.check().is_err());
    assert!(a.term.is_limited(), "the watchdog must stay armed until the process is gone");
    assert!(a.term.overdue(BootInstant::now().saturating_add(2_000 * MS)));
    assert_eq!(a.metric("leader_election_master_status"), Some(0.0));
    assert_eq!(a.event_messages(), ["a became leader", "a stopped leading"]);
    server.forget_calls();
    tokio::time::sleep(60_000 * MS).await;
    assert_eq!(server.calls(), [], "a loser must not campaign again");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_when_the_renewal_left_not_from_its_answer() {
    let server = Server::default();
    let slow = Fault { after: 1_400 * MS, ..Fault::default() };
    let mut a = Running::start("a", server.store(nth(Verb::Replace, 1, slow)));
    a.leads().await;
    let left = Instant::now() + 500 * MS;
    advance_by(&mut a, 501).await;
    server.freeze(20_000 * MS);
    a.loses().await;
    assert_eq!(left.elapsed(), 3_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_past_its_deadline_loses_without_another_call() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    server.forget_calls();
    advance(20_000 * MS).await; // one jump, as after SIGSTOP and SIGCONT
    assert!(a.loses().await.contains("the process stood still"));
    assert_eq!(server.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn another_holder_or_none_ends_leadership_at_the_next_renewal() {
    for (holder, reason) in [("b", "\"b\" holds the lease"), ("", "another process released")] {
        let server = Server::default();
        let mut a = Running::start("a", server.store(well));
        a.leads().await;
        server.edit(|lease| {
            *lease = ghost(holder, "2000-01-01T00:00:00Z").into_lease(lease.clone());
        });
        let start = Instant::now();
        assert!(a.loses().await.contains(reason));
        assert_eq!(start.elapsed(), 500 * MS);
        assert!(a.fence.check().is_err());
        assert_eq!(server.record().holder, holder, "the loser must not write");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again_by_its_leader() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    server.delete();
    advance_by(&mut a, 600).await;
    assert_eq!(server.record().holder, "a");
    assert_eq!(server.record().transitions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_does_not_make_a_second_leader_at_once() {
    let server = Server::default();
    let mut a = Running::start("a", server.store(well));
    a.leads().await;
    let mut b = Running::start("b", server.store(well));
    b.until(|s| *s == Leadership::Standby { holder: Some("a".into()) }).await;
    a.task.abort(); // dead, and its lease gone
    server.delete();
    let start = Instant::now();
    assert_eq!(b.leads().await, Leadership::Leading);
    assert!(start.elapsed() >= 4_000 * MS, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_fence_is_open_while_leading_and_counts_from_when_the_write_left() {
    let server = Server::default();
    let slow = |verb| {
        if verb == Verb::Create {
            std::thread::sleep(Duration::from_millis(30)); // the boot clock cannot be paused
        }
        Fault::default()
    };
    // The boot clock goes on while this machine stands still.
    let hour = Duration::from_secs(3_600);
    let long = ElectionConfig { lease_duration: hour, renew_deadline: hour / 2, ..config("a") };
    let mut a = Running::start_with(long, server.store(slow), || 0.0, || Ok(false));
    assert!(a.fence.check().is_err());
    a.leads().await;
    assert!(a.fence.check().is_ok());
    assert!(a.term.age().unwrap() >= Duration::from_millis(30));
    assert!(!a.term.overdue(BootInstant::now()));
    assert!(a.term.overdue(BootInstant::now().saturating_add(hour)));
}
