//! The two ways of stopping while holding the lease: give it back, or let it expire.
//!
//! Called by the loop in the parent module after it stopped campaigning. Both close the fence
//! first: nothing may be written under a lease that another process is about to take. Then the
//! watchdog has nothing left to protect and is disarmed: the process may finish its events and
//! answers, however short the lease is.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use super::Candidate;
use crate::leadership::{Leadership, Released};
use crate::record::LeaseRecord;
use crate::store::{LeaseStore, StoreError};

impl<S: LeaseStore> Candidate<S> {
    /// Gives the lease back if we hold it or may hold it, trying for `renew_deadline`.
    pub(super) async fn release(&mut self) -> Released {
        if !self.may_hold {
            return Released::NotHeld;
        }
        self.withdraw();
        let outcome = self.keep_giving_back().await;
        match &outcome {
            Released::Freed => info!("Released lease"),
            Released::NotHeld => info!("Lease is held by someone else"),
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
                Err(err) => debug!(%err, "Reading the lease to release it"),
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
        let free = LeaseRecord::of(&lease).release(Timestamp::now());
        self.bounded(deadline, self.store.replace(free.into_lease(lease))).await.map(drop)
    }

    /// Stops without giving the lease back, for a process that cannot be sure that its last
    /// write is settled (rule:lease-released-after-the-last-write).
    pub(super) fn abandon(&mut self) {
        if !self.may_hold {
            return;
        }
        self.withdraw();
        info!(
            lease_duration = ?self.config.lease_duration,
            "Lease is not released but left to expire"
        );
    }

    /// Gives up every right of a holder.
    fn withdraw(&mut self) {
        self.shared.fence.close();
        // After the fence: until it is closed, a stuck process must still be ended in time.
        self.shared.term.end();
        self.shared.metrics.master.set(0);
        if matches!(*self.shared.status.borrow(), Leadership::Leading) {
            self.announce("stopped leading");
        }
        self.shared.status.send_replace(Leadership::Standby { holder: None });
    }
}
