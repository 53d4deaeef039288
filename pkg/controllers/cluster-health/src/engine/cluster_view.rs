//! [`ClusterView`]: what pages, metrics and the sweeper see of a cluster, while they look at it.

use health::{Member, Policy, Status};

use super::contact::Contact;
use super::difference::Difference;
use super::prober::ClusterProber;

/// What pages, metrics and the sweeper see of a cluster.
pub(crate) struct ClusterView<'a> {
    pub(crate) member: &'a Member,
    pub(crate) policy: &'a Policy,
    pub(crate) paused: bool,
    pub(crate) queued: bool,
    /// Published changes of readiness, in the order of [`STATUSES`].
    pub(crate) transitions: [u64; 3],
    pub(crate) difference: Option<&'a Difference>,
    pub(crate) prober: Option<&'a dyn ClusterProber>,
}

impl ClusterView<'_> {
    /// What is known of the way to it. Takes locks of its client: for who needs it.
    pub(crate) fn contact(&self) -> Contact {
        self.prober.map(ClusterProber::contact).unwrap_or_default()
    }
}

/// In the order in which changes of readiness are counted.
pub(crate) const STATUSES: [Status; 3] = [Status::True, Status::False, Status::Unknown];
