//! What is written about a cluster, and whether it is worth a write.

use std::time::Duration;

use health::{Moment, Urgency};
use kube_api::Resource;

use super::{MemberCluster, Overlooked};
use crate::engine::flavour::{MemberId, Pending, Statement, StatusWrite};

impl MemberCluster {
    /// Whether its state is worth a write now; if so, the caller hands it to the writer.
    pub(crate) fn write_due(&self, now: Moment) -> Option<Urgency> {
        let (published, paused) = self.view(|it| (it.member.published().cloned(), it.paused));
        if published.is_none() && !paused {
            return None;
        }
        let statement = Statement { paused, ..Statement::new(published.as_ref(), now) };
        let fingerprint = self.flavour.fingerprint(&self.cluster, &statement);
        let mut state = self.state.lock();
        let state = &mut *state;
        let urgency = state.member.write_due(fingerprint, &state.policy, now.monotonic)?;
        state.member.handed_over(fingerprint, now.monotonic);
        Some(urgency)
    }

    /// Takes in the fingerprint that the object shows; whether it differs from the one known.
    pub(crate) fn shows(&self, fingerprint: Option<u64>) -> bool {
        let mut state = self.state.lock();
        state.overlooked = None;
        state.member.shows(fingerprint)
    }

    /// Remembers the fingerprint that the object showed while a write of ours waits or is under way.
    pub(crate) fn overlook(&self, fingerprint: Option<u64>) {
        self.state.lock().overlooked = Some(Overlooked { fingerprint });
    }
}

impl Pending for MemberCluster {
    fn flavour(&self) -> &'static str {
        self.flavour.name()
    }

    fn resource(&self) -> &'static Resource {
        self.flavour.resource()
    }

    fn object(&self) -> &MemberId {
        &self.cluster
    }

    fn period(&self) -> Duration {
        self.view(|it| it.policy.cadence.period)
    }

    fn write(&self, now: Moment) -> Option<StatusWrite> {
        let (published, paused, message) = self.said(now.monotonic);
        let kept = self.view(|it| {
            let (objective, record) = it.policy.objective.zip(it.member.record())?;
            Some((record.encode(), health::within_objective(objective, record, now.wall)))
        });
        let (record, within) = kept.unzip();
        let (record, within) = (record.as_deref(), within.as_ref());
        let checks = self.view(|it| (it.checks_of > 0).then(|| it.member.check_reports()));
        let checks = checks.as_deref();
        let (published, message) = (published.as_ref(), &*message);
        let statement = Statement { published, message, record, within, checks, paused, now };
        self.flavour.write(&self.cluster, &statement)
    }
}
