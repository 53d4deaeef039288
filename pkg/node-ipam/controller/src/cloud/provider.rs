//! [`Cloud`]: what is asked of a cloud. Another cloud is another module that implements it.

use std::time::Duration;

use cidr::IpNet;
use tokio::time::Instant;

/// A cloud that Nodes are VMs of.
pub(crate) trait Cloud: Send + Sync + 'static {
    /// What the VM of this `spec.providerID` has for pods, as it was at `not_before` or later.
    fn ranges(
        &self,
        provider_id: &str,
        not_before: Instant,
    ) -> impl Future<Output = Result<VmRanges, CloudError>> + Send;

    /// Has a range routed to the VM beside what it has, unless that is something else than was read
    /// by whoever decided, or `is_wanted` says no when it is about to be sent. May be repeated.
    fn add_range(
        &self,
        provider_id: &str,
        range: IpNet,
        read: &VmRanges,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> impl Future<Output = Result<(), CloudError>> + Send;
}

/// What a VM has for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VmRanges {
    /// Ranges that were set on its network interface, in the cloud's order.
    pub(crate) aliases: Vec<IpNet>,
    /// The part of its IPv6 addresses that is for pods.
    pub(crate) ipv6: Option<IpNet>,
}

impl VmRanges {
    /// The one that counts where there can be one only.
    pub(crate) fn first(&self) -> Option<IpNet> {
        self.aliases.first().copied().or(self.ipv6)
    }
}

/// Why a cloud did not do what it was asked for, by what comes next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CloudError {
    /// There is no such VM, or not yet.
    #[error("{0}")]
    Absent(String),
    /// Not now; nobody is to be told.
    #[error("{reason}")]
    Throttled {
        /// Why, for people.
        reason: String,
        /// What the cloud asked for.
        pause: Option<Duration>,
    },
    /// Not without somebody's help: a right is missing, or the cloud does not want it.
    #[error("{0}")]
    Refused(String),
    /// The cloud does not route this range to the VM; it may route another one.
    #[error("{0}")]
    RangeRefused(String),
    /// It was not sent, as whoever wanted it wanted.
    #[error("it may not be sent any more")]
    Withdrawn,
    /// It may work next time.
    #[error("{0}")]
    Failed(String),
}
