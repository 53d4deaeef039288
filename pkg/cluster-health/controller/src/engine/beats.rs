//! [`BeatWatch`]: what the Leases say that member clusters renew, as signs of life while a cluster cannot be probed
//! (`rule:our-outage-is-not-theirs`).

use std::sync::Arc;
use std::time::Duration;

use health::{Beat, Beats, EvidenceSource, Health, Heard, Renewal};
use parking_lot::Mutex;

use super::flavour::now;
use super::member_cluster::MemberCluster;

/// What the Leases of a namespace say. Without a namespace there are none.
#[derive(Default)]
pub(crate) struct BeatWatch(Option<Watched>);

struct Watched {
    namespace: String,
    beats: Mutex<Beats>,
}

impl BeatWatch {
    /// Nothing is known yet.
    pub(crate) fn new(namespace: Option<String>) -> Self {
        let beats = || Mutex::new(Beats::new(now().monotonic));
        Self(namespace.map(|namespace| Watched { namespace, beats: beats() }))
    }

    /// Whether Leases are watched.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What the Lease of a cluster says now; nothing of one that is judged by probes alone. Of a cluster that is published
    /// as offline a Lease that may be of any age says nothing: after a restart each would look as if it was just renewed.
    pub(crate) fn of(&self, member: &MemberCluster) -> Beat {
        let Some(Watched { beats, .. }) = self.source(member) else { return Beat::Absent };
        let (name, is_offline) = (lease_name(member), member.health() == Some(Health::Unreachable));
        let beats = beats.lock();
        if is_offline && !beats.is_renewed(&name) {
            return Beat::Absent;
        }
        beats.of(&name, now().monotonic)
    }

    /// How long ago a cluster renewed its Lease; `None` for one that is judged by probes alone.
    pub(crate) fn age(&self, member: &MemberCluster) -> Option<Duration> {
        self.source(member)?.beats.lock().age(&lease_name(member), now().monotonic)
    }

    /// What is known of a cluster that is judged by its Lease alone, with the name of that Lease or the reason why nothing
    /// is known.
    pub(crate) fn alone(&self, member: &MemberCluster) -> (Heard, String) {
        let Some(Watched { namespace, beats }) = &self.0 else {
            return (Heard::Nothing, NO_NAMESPACE.to_owned());
        };
        let name = lease_name(member);
        match beats.lock().alone(&name, now().monotonic) {
            Heard::Nothing => {
                let why = format!("the Leases in namespace {namespace} cannot be watched");
                (Heard::Nothing, why)
            }
            heard => (heard, format!("Lease {namespace}/{name}")),
        }
    }

    fn source(&self, member: &MemberCluster) -> Option<&Watched> {
        self.0.as_ref().filter(|_| member.evidence_source() != EvidenceSource::Probes)
    }

    /// A Lease was seen.
    pub(crate) fn renew(&self, name: &Arc<str>, said: Renewal) {
        self.edit(|beats| beats.seen(name, said, now().monotonic));
    }

    /// Whether renewals can be seen from now on.
    pub(crate) fn set_live(&self, is_live: bool) {
        self.edit(|beats| beats.live(is_live, now().monotonic));
    }

    /// A Lease was deleted.
    pub(crate) fn gone(&self, name: &str) {
        self.edit(|beats| beats.gone(name));
    }

    fn edit(&self, edit: impl FnOnce(&mut Beats)) {
        if let Some(Watched { beats, .. }) = &self.0 {
            edit(&mut beats.lock());
        }
    }
}

/// Why a cluster that is judged by its Lease alone cannot be judged without a namespace of Leases.
pub(crate) const NO_NAMESPACE: &str = "annotation infra-controller-manager/evidence is \"beat\" and \
    --cluster-health-beats-namespace is not set; set it, or remove the annotation";

/// The name binds a Lease to one object: the rights of each cluster are to its own name.
fn lease_name(member: &MemberCluster) -> String {
    format!("{}-{}", member.flavour.name(), member.cluster.uid)
}
