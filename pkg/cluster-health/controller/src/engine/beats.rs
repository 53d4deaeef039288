//! [`BeatWatch`]: what the Leases say that member clusters renew, as signs of life while a cluster cannot be probed
//! (`rule:our-outage-is-not-theirs`).

use std::sync::Arc;
use std::time::Duration;

use health::{Beat, Beats, Health, Renewal};
use parking_lot::Mutex;

use super::flavour::now;
use super::member_cluster::MemberCluster;

/// What the Leases say. Without a namespace there are none.
#[derive(Default)]
pub(crate) struct BeatWatch(Option<Mutex<Beats>>);

impl BeatWatch {
    /// Nothing is known yet.
    pub(crate) fn new(is_on: bool) -> Self {
        Self(is_on.then(|| Mutex::new(Beats::new(now().monotonic))))
    }

    /// What the Lease of a cluster says now. Of a cluster that is published as offline a Lease that may be of any age says
    /// nothing: after a restart each would look as if it was just renewed.
    pub(crate) fn of(&self, member: &MemberCluster) -> Beat {
        let Some(beats) = &self.0 else { return Beat::Absent };
        let (name, is_offline) = (lease_name(member), member.health() == Some(Health::Unreachable));
        let beats = beats.lock();
        if is_offline && !beats.is_renewed(&name) {
            return Beat::Absent;
        }
        beats.of(&name, now().monotonic)
    }

    /// How long ago a cluster renewed its Lease.
    pub(crate) fn age(&self, member: &MemberCluster) -> Option<Duration> {
        self.0.as_ref()?.lock().age(&lease_name(member), now().monotonic)
    }

    /// A Lease was seen.
    pub(crate) fn renew(&self, name: &Arc<str>, said: Renewal) {
        if let Some(beats) = &self.0 {
            beats.lock().seen(name, said, now().monotonic);
        }
    }

    /// Whether renewals can be seen from now on.
    pub(crate) fn set_live(&self, is_live: bool) {
        if let Some(beats) = &self.0 {
            beats.lock().live(is_live, now().monotonic);
        }
    }

    /// A Lease was deleted.
    pub(crate) fn gone(&self, name: &str) {
        if let Some(beats) = &self.0 {
            beats.lock().gone(name);
        }
    }
}

/// The name binds a Lease to one object: the rights of each cluster are to its own name.
fn lease_name(member: &MemberCluster) -> String {
    format!("{}-{}", member.flavour.name(), member.cluster.uid)
}
