//! The loop of one candidate: acquire, renew until lost, release.
//!
//! Run by [`crate::thread`] on the lease thread. The rules of the record are in [`crate::record`];
//! here is when to call the server and what an answer, or none, means:
//!
//! - *Acquire* tries at once, then as `standby_pause` says.
//! - *Renew* starts every `retry_period`. It first replaces the Lease as it remembers it (one
//!   request); if that fails for any reason it reads and replaces.
//! - Leadership is lost when another holder is seen, or `renew_deadline` after the *start* of the
//!   last write that succeeded (rule:lease-rights-end-before-the-lease).
//! - A write without an answer may have happened. Its consequences are bound to the moment it
//!   left, never to the moment something was heard of it.
//! - A candidate that lost never campaigns again: the process ends.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use resilience::{Fence, wall_now};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tracing::{debug, info, warn};

use crate::config::ElectionConfig;
use crate::record::{LeaseRecord, LeaseState, Observed};
use crate::store::{LeaseStore, StoreError};
use crate::term::LeaseMetrics;
use crate::term::{Leadership, LeaseEvent, Moment, PredecessorCheck, Released, Term};

mod transitions;

/// An order of the process to the elector.
pub(crate) enum Order {
    /// Give the lease back and say how that went.
    Release(oneshot::Sender<Released>),
    /// Stop renewing and let the lease expire.
    Abandon,
}

/// State that the elector shares with the rest of the process.
pub(crate) struct Shared {
    pub(crate) term: Arc<Term>,
    pub(crate) fence: Fence,
    pub(crate) status: watch::Sender<Leadership>,
    pub(crate) metrics: LeaseMetrics,
    pub(crate) on_event: Box<dyn Fn(LeaseEvent) + Send + Sync>,
    pub(crate) may_have_predecessor: PredecessorCheck,
    /// Uniform in `[0, 1)`: the jitter of the pauses of a standby.
    pub(crate) draw: Box<dyn Fn() -> f64 + Send + Sync>,
}

/// One candidate.
pub(crate) struct Candidate<S> {
    config: ElectionConfig,
    store: S,
    shared: Shared,
    observed: Observed,
    /// A write of ours was sent and may have made us the holder.
    may_hold: bool,
    /// The Lease after our last write, while its version is not in doubt.
    lease: Option<Lease>,
    /// `metadata.uid` of the Lease last written, for events.
    uid: Option<String>,
    /// The failure last warned about and when: an outage is not told at every try.
    reported: Option<(StoreError, Instant)>,
    /// Whether another instance may still lead although the Lease is gone; it is not asked for again.
    has_predecessor: bool,
}

/// Outcome of one try to renew that got its answers.
enum Renewal {
    Renewed(Moment),
    Taken { holder: String },
}

impl<S: LeaseStore> Candidate<S> {
    pub(crate) fn new(config: ElectionConfig, store: S, shared: Shared) -> Self {
        Self {
            config,
            store,
            shared,
            observed: Observed::default(),
            may_hold: false,
            lease: None,
            uid: None,
            reported: None,
            has_predecessor: false,
        }
    }

    /// Campaigns and leads until the lease is lost or `orders` says otherwise. A dropped
    /// sender of `orders` means abandon.
    pub(crate) async fn run(mut self, orders: oneshot::Receiver<Order>) {
        let order = tokio::select! {
            biased;
            order = orders => order.unwrap_or(Order::Abandon),
            () = self.campaign() => return,
        };
        match order {
            Order::Release(reply) => {
                let outcome = self.release().await;
                if reply.send(outcome).is_err() {
                    debug!("The lease was not released within the shutdown time");
                }
            }
            Order::Abandon => self.abandon(),
        }
    }

    /// Never returns: a candidate that lost waits for the end of the process.
    async fn campaign(&mut self) {
        let first = self.acquire().await;
        self.enter(&first);
        let reason = self.hold(first).await;
        self.lose(reason);
        pending::<()>().await;
    }

    async fn acquire(&mut self) -> Moment {
        info!(identity = self.config.identity, "Attempting to acquire leader lease...");
        loop {
            match self.try_acquire().await {
                Ok(Some(taken)) => return taken,
                Ok(None) => self.reported = None,
                Err(err) => self.report(err),
            }
            sleep(self.standby_pause()).await;
        }
    }

    /// How long a standby waits before its next try: not past the moment at which the lease can be taken over.
    fn standby_pause(&self) -> Duration {
        let pause = self.config.jittered_pause((self.shared.draw)());
        let expiry = self.observed.expiry(self.config.lease_duration);
        let left = expiry.map(|at| at.saturating_duration_since(Instant::now()));
        match left {
            Some(left) if !left.is_zero() => pause.min(left),
            _ => pause,
        }
    }

    async fn try_acquire(&mut self) -> Result<Option<Moment>, StoreError> {
        let deadline = Instant::now() + self.config.renew_deadline;
        let current = self.read(deadline).await?;
        let (me, fallback) = (&self.config.identity, self.config.lease_duration);
        match self.observed.state(me, Instant::now(), fallback) {
            LeaseState::Held { holder } => {
                self.may_hold = false;
                self.follow(holder);
                return Ok(None);
            }
            LeaseState::Absent if self.may_have_predecessor(deadline).await => return Ok(None),
            // Ours: the answer of our own write was lost.
            LeaseState::Absent | LeaseState::Free | LeaseState::Expired | LeaseState::Ours => {}
        }
        self.may_hold = true;
        self.write(current, deadline).await.map(Some)
    }

    /// Renews until that is no longer possible; returns why.
    async fn hold(&mut self, first: Moment) -> String {
        let mut last = first;
        let mut tried = first.at;
        let mut failure = None;
        loop {
            let deadline = last.at + self.config.renew_deadline;
            sleep_until((tried + self.config.retry_period).min(deadline)).await;
            tried = Instant::now();
            if tried >= deadline {
                return self.overdue(failure.as_ref());
            }
            match self.renew(deadline).await {
                Ok(Renewal::Renewed(start)) => {
                    self.renewed(&start);
                    (last, failure) = (start, None);
                }
                Ok(Renewal::Taken { holder }) if holder.is_empty() => {
                    return "another process released the lease".to_owned();
                }
                Ok(Renewal::Taken { holder }) => return format!("{holder:?} holds the lease"),
                Err(err) => {
                    debug!(%err, "Lease was not renewed, trying again");
                    failure = Some(err);
                }
            }
        }
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, StoreError> {
        // Taken out: whatever goes wrong below, the version remembered is in doubt afterwards.
        if let Some(remembered) = self.lease.take() {
            match self.write(Some(remembered), deadline).await {
                Ok(start) => return Ok(Renewal::Renewed(start)),
                Err(err) => debug!(
                    %err,
                    "Failed to update lease optimistically, falling back to slow path"
                ),
            }
        }
        self.shared.metrics.slow_path.inc();
        let current = self.read(deadline).await?;
        match current.as_ref().map(|lease| LeaseRecord::of(lease).holder) {
            Some(holder) if holder != self.config.identity => Ok(Renewal::Taken { holder }),
            _ => self.write(current, deadline).await.map(Renewal::Renewed),
        }
    }

    /// Writes our claim over `current`; returns when the write left.
    async fn write(
        &mut self,
        current: Option<Lease>,
        deadline: Instant,
    ) -> Result<Moment, StoreError> {
        let previous = current.as_ref().map(LeaseRecord::of);
        let (me, seconds) = (&self.config.identity, self.config.lease_seconds());
        let record = LeaseRecord::claim(previous.as_ref(), me, seconds, wall_now());
        let start = Moment::now(&self.shared.fence);
        let written = match current {
            Some(lease) => {
                self.bounded(deadline, self.store.replace(record.into_lease(lease))).await?
            }
            None => {
                let lease = record.into_lease(self.config.new_lease());
                self.bounded(deadline, self.store.create(lease)).await?
            }
        };
        self.observed.note(Some(LeaseRecord::of(&written)), Instant::now());
        self.shared.term.note(Some(&written));
        self.uid.clone_from(&written.metadata.uid);
        self.lease = Some(written);
        Ok(start)
    }

    async fn read(&mut self, deadline: Instant) -> Result<Option<Lease>, StoreError> {
        let current = self.bounded(deadline, self.store.get()).await?;
        self.observed.note(current.as_ref().map(LeaseRecord::of), Instant::now());
        self.shared.term.note(current.as_ref());
        Ok(current)
    }

    /// One request, bounded by the request timeout and by `deadline`.
    async fn bounded<T>(
        &self,
        deadline: Instant,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = deadline.min(Instant::now() + self.config.request_timeout());
        timeout_at(limit, call).await.unwrap_or(Err(StoreError::Timeout))
    }
}

impl<S: LeaseStore> Candidate<S> {
    /// Gives the lease back if we hold it or may hold it, trying for `renew_deadline`.
    async fn release(&mut self) -> Released {
        if !self.may_hold {
            return Released::NotHeld;
        }
        self.withdraw();
        let outcome = self.keep_giving_back().await;
        match &outcome {
            Released::Freed => info!("Released lease"),
            Released::NotHeld => info!("Lease is held by another process"),
            Released::LeftToExpire { reason } => {
                warn!(err = reason, "Cannot release lease, it will expire");
            }
        }
        outcome
    }

    async fn keep_giving_back(&mut self) -> Released {
        let deadline = Instant::now() + self.config.renew_deadline;
        loop {
            let err = match self.give_back(deadline).await {
                Ok(true) => return Released::Freed,
                Ok(false) => return Released::NotHeld,
                Err(err) => err,
            };
            // An in-flight renewal of ours that landed late: read again at once.
            let pause = match err {
                StoreError::Conflict => std::time::Duration::ZERO,
                _ => self.config.retry_period,
            };
            if Instant::now() + pause >= deadline {
                return Released::LeftToExpire { reason: err.to_string() };
            }
            debug!(%err, "Lease was not released, trying again");
            sleep(pause).await;
        }
    }

    /// One try; whether it was ours to give.
    async fn give_back(&mut self, deadline: Instant) -> Result<bool, StoreError> {
        if let Some(remembered) = self.lease.take() {
            match self.write_free(remembered, deadline).await {
                Ok(()) => return Ok(true),
                Err(err) => {
                    debug!(%err, "Cannot release the lease as it is remembered, reading it");
                }
            }
        }
        match self.read(deadline).await? {
            Some(lease) if LeaseRecord::of(&lease).holder == self.config.identity => {
                self.write_free(lease, deadline).await.map(|()| true)
            }
            // Our own release whose answer was lost reads like this, too.
            _ => Ok(false),
        }
    }

    async fn write_free(&self, lease: Lease, deadline: Instant) -> Result<(), StoreError> {
        let free = LeaseRecord::of(&lease).release(wall_now());
        self.bounded(deadline, self.store.replace(free.into_lease(lease))).await.map(drop)
    }

    /// Stops without giving the lease back, for a process that cannot be sure that its last
    /// write is settled (rule:lease-released-after-the-last-write).
    fn abandon(&mut self) {
        if !self.may_hold {
            return;
        }
        self.withdraw();
        info!(
            lease_duration = ?self.config.lease_duration,
            "Lease is not released and expires"
        );
    }

    /// Gives up every right of a holder.
    fn withdraw(&mut self) {
        self.shared.term.withdraw();
        self.shared.metrics.master.set(0);
        if matches!(*self.shared.status.borrow(), Leadership::Leading) {
            self.announce("stopped leading");
        }
        self.shared.status.send_replace(Leadership::Standby { holder: None });
    }
}

#[cfg(test)]
mod tests;
