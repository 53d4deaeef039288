//! Effects on the rest of the process when a candidate follows, leads, renews or loses.
//!
//! Called by the loop in the parent module only. The order inside each transition matters: rights
//! are withdrawn before anyone is told, and granted before anyone is told.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tracing::{debug, error, info, warn};

use super::Candidate;
use crate::store::{LeaseStore, StoreError};
use crate::term::{Leadership, LeaseEvent, Moment};

/// How long the process may live after it lost the lease, if no earlier limit holds: one second
/// for writes in flight, one to get out (rule:lease-lost-is-final).
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A failure that goes on is told again after this time.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

impl<S: LeaseStore> Candidate<S> {
    /// Someone else leads.
    pub(super) fn follow(&self, holder: String) {
        let standby = Leadership::Standby { holder: Some(holder) };
        let changed = self.shared.status.send_if_modified(|status| {
            let changed = *status != standby;
            if changed {
                status.clone_from(&standby);
            }
            changed
        });
        if changed && let Leadership::Standby { holder: Some(holder) } = standby {
            info!(holder, "New leader elected");
        }
    }

    /// Whether another instance may still lead although the Lease is gone. An unknown answer counts
    /// as yes, and is asked for again at the next try.
    pub(super) async fn may_have_predecessor(&mut self, deadline: Instant) -> bool {
        if self.has_predecessor {
            return true;
        }
        let answer = timeout_at(deadline, (self.shared.may_have_predecessor)()).await;
        match answer.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
            Ok(false) => return false,
            Ok(true) => {
                self.has_predecessor = true;
                let wait = self.config.lease_duration;
                info!(
                    ?wait,
                    "Lease not found; waiting for one lease duration in case another instance still leads"
                );
            }
            Err(reason) => self.report(StoreError::Predecessor(reason)),
        }
        true
    }

    /// Tells of a failure to acquire when it is a new one, or an old one that goes on.
    pub(super) fn report(&mut self, err: StoreError) {
        // Another candidate was faster: that is what candidates are for.
        if matches!(err, StoreError::Conflict) {
            debug!("Another candidate wrote first");
            return;
        }
        let now = Instant::now();
        if let Some((last, at)) = &self.reported
            && *last == err
            && now < *at + REPORT_INTERVAL
        {
            debug!(%err, "Cannot acquire the lease yet");
            return;
        }
        warn!(%err, "Cannot acquire the lease yet, will keep trying");
        self.reported = Some((err, now));
    }

    /// We lead from now on.
    pub(super) fn enter(&mut self, first: &Moment) {
        self.renewed(first);
        self.shared.metrics.master.set(1);
        self.shared.status.send_replace(Leadership::Leading);
        info!(identity = self.config.identity, "Successfully acquired lease");
        self.announce("became leader");
    }

    /// The write that left at `start` succeeded: every right counts from there.
    pub(super) fn renewed(&self, start: &Moment) {
        let term = &self.shared.term;
        term.grant(start.clocks, self.config.watchdog_term(), self.config.fence_term());
        self.shared.metrics.renew.observe(start.at.elapsed().as_secs_f64());
    }

    /// The lease is lost for this process; `reason` says how.
    pub(super) fn lose(&mut self, reason: String) {
        self.shared.term.forfeit(EXIT_GRACE);
        self.may_hold = false;
        self.shared.metrics.master.set(0);
        error!(err = reason, "Failed to renew lease");
        error!("leaderelection lost");
        self.announce("stopped leading");
        self.shared.status.send_replace(Leadership::Lost { reason });
    }

    /// Why a leader whose deadline passed lost, with the last failure of a renewal.
    pub(super) fn overdue(&self, failure: Option<&StoreError>) -> String {
        let deadline = self.config.renew_deadline;
        match failure {
            Some(err) => format!("the lease was not renewed within {deadline:?}: {err}"),
            None => {
                format!("the lease was not renewed within {deadline:?}: the process stood still")
            }
        }
    }

    /// Hands an event about the Lease to the process.
    pub(super) fn announce(&self, what: &str) {
        (self.shared.on_event)(LeaseEvent {
            lease_uid: self.uid.clone().unwrap_or_default(),
            message: format!("{} {what}", self.config.identity),
        });
    }
}
