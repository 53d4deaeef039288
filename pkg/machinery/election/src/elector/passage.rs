//! What happens to the rest of the process when a candidate follows, leads, renews or loses.
//!
//! Called by the loop in the parent module only. The order inside each passage matters: rights
//! are withdrawn before anyone is told, and granted before anyone is told.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tracing::{debug, error, info, warn};

use super::Candidate;
use crate::LOGGER;
use crate::config::ElectionConfig;
use crate::leadership::{Leadership, LeaseEvent};
use crate::store::{LeaseStore, StoreError};
use crate::term::Moment;

/// How long the process may live after it lost the lease, if no earlier limit holds: one second
/// for writes in flight (`host.md 3.3`), one to get out.
const AFTERLIFE: Duration = Duration::from_secs(2);

/// The Lease as it is created: a name and nothing else (`host.md 3.2`: no labels).
pub(super) fn new_lease(config: &ElectionConfig) -> Lease {
    let metadata = ObjectMeta {
        name: Some(config.name.clone()),
        namespace: Some(config.namespace.clone()),
        ..ObjectMeta::default()
    };
    Lease { metadata, spec: None }
}

impl<S: LeaseStore> Candidate<S> {
    /// Someone else leads.
    pub(super) fn follow(&self, holder: String) {
        let standby = Leadership::Standby { holder: Some(holder) };
        let changed = self.ties.status.send_if_modified(|status| {
            let changed = *status != standby;
            if changed {
                status.clone_from(&standby);
            }
            changed
        });
        if changed && let Leadership::Standby { holder: Some(holder) } = standby {
            info!(logger = LOGGER, lease = self.config.lease_key(), holder, "New leader elected");
        }
    }

    /// Tells of a failure to acquire when it is a new one.
    pub(super) fn complain(&mut self, err: StoreError) {
        let lease = self.config.lease_key();
        match &err {
            // Another candidate was faster: that is what candidates are for.
            StoreError::Conflict => {
                debug!(logger = LOGGER, lease, "Another candidate wrote first");
                return;
            }
            _ if self.complaint.as_ref() == Some(&err) => {
                debug!(logger = LOGGER, lease, %err, "Cannot acquire the lease yet");
            }
            _ => {
                warn!(logger = LOGGER, lease, %err, "Cannot acquire the lease yet, will keep trying");
            }
        }
        self.complaint = Some(err);
    }

    /// We lead from now on.
    pub(super) fn enter(&mut self, first: &Moment, inherited: bool) {
        self.renewed(first);
        self.ties.meters.master.set(1);
        self.ties.status.send_replace(Leadership::Leading { inherited });
        let (lease, identity) = (self.config.lease_key(), &self.config.identity);
        info!(logger = LOGGER, lease, identity, inherited, "Successfully acquired lease");
        self.announce("became leader");
    }

    /// The write that left at `start` succeeded: every right counts from there.
    pub(super) fn renewed(&self, start: &Moment) {
        self.ties.term.renew(start.boot, self.config.watchdog_term());
        self.ties.fence.open_for(start.boot, self.config.fence_term());
        self.ties.meters.renew.observe(start.at.elapsed().as_secs_f64());
    }

    /// The lease is lost for this process; `reason` says how.
    pub(super) fn lose(&mut self, reason: String) {
        self.ties.fence.close();
        self.ties.term.lose(AFTERLIFE);
        self.claim = None;
        self.ties.meters.master.set(0);
        let lease = self.config.lease_key();
        error!(logger = LOGGER, lease, err = reason, "Failed to renew lease");
        error!(logger = LOGGER, lease, "leaderelection lost");
        self.announce("stopped leading");
        self.ties.status.send_replace(Leadership::Lost { reason });
    }

    /// Why a leader whose deadline passed lost, with the last failure of a renewal.
    pub(super) fn overdue(&self, failure: Option<&StoreError>) -> String {
        let deadline = self.config.renew_deadline;
        match failure {
            Some(err) => format!("the lease was not renewed within {deadline:?}: {err}"),
            None => {
                format!("the lease was not renewed within {deadline:?}: the process was stopped")
            }
        }
    }

    /// Hands an event about the Lease to the process (`host.md 3.2`, Events).
    pub(super) fn announce(&self, what: &str) {
        (self.ties.on_event)(LeaseEvent {
            lease_uid: self.uid.clone().unwrap_or_default(),
            message: format!("{} {what}", self.config.identity),
        });
    }
}
