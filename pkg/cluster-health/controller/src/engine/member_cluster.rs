//! [`MemberCluster`]: one cluster in the registry, with its state, its prober and its task.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use events::ObjectRef;
use health::{
    Arrival, Beat, Change, Effect, EvidenceSource, Health, Heard, Member, Moment, Policy,
    Published, Report, Ruling, Status, explain, hash,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::cluster_events::{Notice, Notices};
use super::difference::{Difference, patience};
use super::flavour::{ClusterProber, Contact, Flavour, MemberId, Target, is_another, now};
use super::probes::Job;
use crate::check_document::Labels;

mod checked;
mod writing;

/// A cluster that is known. Its lock is held for moments only, and never while anything waits.
pub(crate) struct MemberCluster {
    pub(crate) cluster: MemberId,
    pub(crate) flavour: Arc<dyn Flavour>,
    /// Ends with the cluster.
    pub(crate) stop: CancellationToken,
    state: Mutex<MemberState>,
    wake: Notify,
    /// Tasks that may have a probe under way.
    busy: TaskTracker,
}

/// In the order in which changes of readiness are counted.
pub(crate) const STATUSES: [Status; 3] = [Status::True, Status::False, Status::Unknown];

/// The state of a cluster; pages, metrics and the sweeper read it by [`MemberCluster::view`].
pub(crate) struct MemberState {
    pub(crate) member: Member,
    /// `None` when the cluster is gone.
    prober: Option<Arc<dyn ClusterProber>>,
    inputs: u64,
    pub(super) addresses: Vec<Box<str>>,
    pub(crate) policy: Policy,
    pub(crate) paused: bool,
    labels: Labels,
    /// The generation of the checks that it has; 0 when they have to be selected again.
    checks_of: u64,
    /// Ends the task that is in charge now.
    task: CancellationToken,
    /// Voids the probe under way; a child of `task`, and another one for each probe.
    probe: CancellationToken,
    /// How often what is published has become each status, in the order of [`STATUSES`].
    pub(crate) transitions: [u64; 3],
    /// A probe is due and waits for a permit.
    pub(crate) queued: bool,
    notices: Notices,
    /// The status that its object showed while a write of ours was waiting or under way.
    pub(crate) overlooked: Option<Overlooked>,
    /// In an audit: where its object says another thing.
    pub(crate) difference: Option<Difference>,
}

/// A status that an object showed while a write was under way: its fingerprint, or `None` when it
/// cannot be used.
#[derive(Clone, Copy)]
pub(crate) struct Overlooked {
    pub(crate) fingerprint: Option<u64>,
}

impl MemberState {
    /// The credentials, certificates and addresses of the cluster. Takes locks of the client.
    pub(crate) fn contact(&self) -> Contact {
        self.prober.as_ref().map(|prober| prober.contact()).unwrap_or_default()
    }

    fn note(&mut self, effect: Effect) -> Effect {
        // A partition of this process is no change of the member.
        if let Change::Ready { from: Some(_), to } = effect.change
            && !effect.is_ours
        {
            for (count, _) in self.transitions.iter_mut().zip(STATUSES).filter(|(_, it)| *it == to)
            {
                *count += 1;
            }
        }
        effect
    }
}

impl MemberCluster {
    pub(crate) fn new(
        target: Target,
        flavour: Arc<dyn Flavour>,
        parent: &CancellationToken,
        (has_waited, guarded): (bool, bool),
        now: Instant,
    ) -> Self {
        let arrival = Arrival {
            hash: hash(&target.cluster.uid),
            published: target.published.filter(|_| !target.paused),
            written: target.written,
            together: target.together,
            has_waited,
            guarded,
            record: target.record,
        };
        let stop = parent.child_token();
        let task = stop.child_token();
        let state = MemberState {
            member: Member::new(arrival, &target.policy, now),
            prober: Some((target.prober)()),
            inputs: target.inputs,
            addresses: target.addresses,
            policy: target.policy,
            paused: target.paused,
            labels: target.labels,
            checks_of: 0,
            probe: task.child_token(),
            task,
            transitions: [0; 3],
            queued: false,
            notices: Notices::after(target.announced_ends),
            overlooked: None,
            difference: None,
        };
        let (cluster, wake) = (target.cluster, Notify::new());
        let busy = TaskTracker::new();
        Self { cluster, flavour, stop, state: Mutex::new(state), wake, busy }
    }

    /// Takes in what may have changed about a cluster that is known
    /// (`rule:changed-inputs-void-the-probe-under-way`).
    pub(crate) fn update(&self, target: Target, now: Instant) {
        let same_inputs = self.state.lock().inputs == target.inputs;
        // Reads certificates: not under the lock.
        let prober = (!same_inputs).then(target.prober);
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.policy != target.policy {
            let before = mem::replace(&mut state.policy, target.policy);
            state.member.follow(&before, &state.policy, now);
        }
        let another = is_another(&state.addresses, &target.addresses);
        if prober.is_some() || another || target.paused {
            state.probe.cancel();
            state.member.discard(now);
        }
        if let Some(prober) = prober {
            state.prober = Some(prober);
            state.inputs = target.inputs;
            state.member.trigger(now);
        }
        if another {
            state.member.retarget(now);
        }
        // Of a list that cannot be read, or of a paused cluster, nothing is known.
        if !target.addresses.is_empty() {
            state.addresses = target.addresses;
        }
        if state.labels != target.labels {
            (state.labels, state.checks_of) = (target.labels, 0);
        }
        match (state.paused, target.paused) {
            (false, true) => state.member.pause(),
            (true, false) => state.member.resume(now),
            (true, true) | (false, false) => {}
        }
        state.paused = target.paused;
        self.wake.notify_one();
    }

    /// Something that it depends on changed: a probe follows within a second.
    pub(crate) fn trigger(&self, now: Instant) {
        self.state.lock().member.trigger(now);
        self.wake.notify_one();
    }

    /// Waits until a probe is due.
    pub(crate) async fn until_due(&self) {
        loop {
            let due = self.view(|it| if it.paused { None } else { it.member.due() });
            match due {
                Some(due) if due <= now().monotonic => return,
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(due.into()) => {}
                        () = self.wake.notified() => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }

    /// A probe is due and waits for a permit.
    pub(crate) fn queue(&self) {
        self.state.lock().queued = true;
    }

    /// The probe got its permit.
    pub(crate) fn admit(&self) {
        let mut state = self.state.lock();
        state.queued = false;
        state.member.admit(now().monotonic);
    }

    /// Begins a probe in `task`; `None` when none is due any more, or another task is in charge.
    pub(crate) fn begin(&self, task: &CancellationToken) -> Option<Job> {
        let started = now();
        let mut state = self.state.lock();
        if state.paused || task.is_cancelled() {
            return None;
        }
        let prober = state.prober.clone()?;
        let due = state.member.due().filter(|&due| due <= started.monotonic)?;
        state.member.begin(started.monotonic);
        state.probe = task.child_token();
        let lag = started.monotonic.saturating_duration_since(due);
        let timeout = state.policy.cadence.timeout;
        Some(Job { void: state.probe.clone(), prober, timeout, started, lag })
    }

    /// To be held from before it is asked whose the cluster is until the probe has ended.
    pub(crate) fn busy(&self) -> TaskTrackerToken {
        self.busy.token()
    }

    /// Whether a probe may be under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// Takes in the end of a probe; `None` when it is void.
    pub(crate) fn complete(&self, job: &Job, report: &Report) -> Option<Effect> {
        let now = now().monotonic;
        let mut state = self.state.lock();
        let state = &mut *state;
        if job.void.is_cancelled() {
            return None;
        }
        let effect = state.member.complete(report, &state.policy, now, resilience::draw());
        Some(state.note(effect))
    }

    /// What its health is judged by.
    pub(crate) fn evidence_source(&self) -> EvidenceSource {
        self.view(|it| it.policy.evidence)
    }

    /// Takes in what is known by its Lease alone; `None` when no look is due any more, or another task is in charge.
    pub(crate) fn look(
        &self,
        task: &CancellationToken,
        heard: Heard,
        lease: &str,
    ) -> Option<Effect> {
        let now = now();
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.paused || task.is_cancelled() || state.policy.evidence != EvidenceSource::Beats {
            return None;
        }
        state.member.due().filter(|&due| due <= now.monotonic)?;
        let effect = state.member.look(heard, lease, &state.policy, now, resilience::draw());
        Some(state.note(effect))
    }

    /// Takes in what its Lease says, for the probe that ends next.
    pub(crate) fn hear(&self, beat: Beat) {
        self.state.lock().member.hear(beat);
    }

    /// The probe of this report ends while the guard suspects our network.
    pub(crate) fn excuse(&self, report: &Report) {
        self.state.lock().member.excuse(report);
    }

    /// Applies what the guard has decided.
    pub(crate) fn obey(&self, ruling: &Ruling, now: Moment) -> Option<Effect> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.paused {
            return None;
        }
        let effect = state.member.obey(ruling, &state.policy, now);
        if ruling.forgive {
            self.wake.notify_one();
        }
        effect.map(|effect| state.note(effect))
    }

    /// Has a probe follow within a second that opens a new connection.
    pub(crate) fn probe_anew(&self, now: Instant) {
        let prober = self.state.lock().prober.clone();
        if let Some(prober) = prober {
            prober.close_connection();
        }
        self.trigger(now);
    }

    /// Ends its task and drops its client, even while a write still holds this
    /// (`rule:nothing-outlives-its-object`).
    pub(crate) fn retire(&self) {
        self.stop.cancel();
        // Dropped after the lock: it closes connections.
        let prober = self.state.lock().prober.take();
        drop(prober);
    }

    /// Publishes `Unknown` when no probe was completed for too long.
    pub(crate) fn sweep(&self, now: Moment) -> Option<Effect> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.paused {
            return None;
        }
        let effect = state.member.sweep(&state.policy, now)?;
        Some(state.note(effect))
    }

    /// The token of a new task, when the one in charge has got stuck; that one is cancelled. A
    /// cluster that waits for its turn is not stuck: in a new task it would wait from the start.
    pub(crate) fn replace_if_stuck(&self, now: Instant) -> Option<CancellationToken> {
        let mut state = self.state.lock();
        if state.paused || state.queued || state.member.stuck_at(&state.policy) > now {
            return None;
        }
        state.task.cancel();
        state.task = self.stop.child_token();
        state.member.restart(now);
        Some(state.task.clone())
    }

    /// The reference to its object, for events.
    pub(crate) fn object_ref(&self) -> ObjectRef {
        self.cluster.object_ref(self.flavour.resource())
    }

    #[cfg(test)]
    pub(crate) fn prober(&self) -> Option<Arc<dyn ClusterProber>> {
        self.state.lock().prober.clone()
    }

    /// The token of the task in charge.
    pub(crate) fn task(&self) -> CancellationToken {
        self.state.lock().task.clone()
    }

    /// `task` was interrupted, and starts again if it is still in charge.
    pub(crate) fn restart(&self, task: &CancellationToken) {
        let mut state = self.state.lock();
        if !task.is_cancelled() {
            state.member.restart(now().monotonic);
        }
    }

    /// New notices about its credentials, certificates and addresses.
    pub(crate) fn notices(&self, now: Timestamp) -> Vec<Notice> {
        let mut state = self.state.lock();
        let Some(contact) = state.prober.as_ref().map(|prober| prober.contact()) else {
            return Vec::new();
        };
        state.notices.note(&contact, now)
    }

    /// Compares its state with what its object says; the difference before and now.
    pub(crate) fn compare(
        &self,
        stored: Option<Health>,
        now: Instant,
    ) -> (Option<Difference>, Option<Difference>) {
        let tells_offline = self.flavour.tells_offline();
        let mut state = self.state.lock();
        let ours = state.member.published().map(|it| it.health).filter(|_| !state.paused);
        let (before, patience) = (state.difference, patience(&state.policy));
        let after = Difference::next(before, ours, stored, tells_offline, patience, now);
        state.difference = after;
        (before, after)
    }

    /// The published health, whether the cluster is paused, and the message about it.
    pub(crate) fn said(&self, now: Instant) -> (Option<Published>, bool, String) {
        let state = self.state.lock();
        (state.member.published().cloned(), state.paused, explain(&state.member, now))
    }

    /// Lends the state for a moment.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&MemberState) -> T) -> T {
        look(&self.state.lock())
    }

    /// The published health.
    pub(crate) fn health(&self) -> Option<Health> {
        self.view(|it| it.member.published().map(|published| published.health))
    }
}
