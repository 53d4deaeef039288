//! [`Cloud`]: what is asked of a cloud. Another cloud is another module that implements it.

use std::time::Duration;

use cidr::IpNet;
use gce::{Client, GceError, PodRanges, ProviderId, Readings};
use tokio::time::Instant;

/// A cloud that Nodes are VMs of.
pub(crate) trait Cloud: Send + Sync + 'static {
    /// Reads the ranges for pods of the VM with this `spec.providerID`, as it was at `not_before` or later.
    fn ranges(
        &self,
        provider_id: &str,
        not_before: Instant,
    ) -> impl Future<Output = Result<PodRanges, CloudError>> + Send;

    /// Has a range routed to the VM in addition to its others, unless those differ from what was read
    /// by whoever decided, or `is_wanted` says no when it is about to be sent. May be repeated.
    fn add_range(
        &self,
        provider_id: &str,
        range: IpNet,
        read: &PodRanges,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> impl Future<Output = Result<(), CloudError>> + Send;
}

/// Why a cloud did not do what it was asked for, by what comes next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CloudError {
    /// The VM does not exist, or not yet.
    #[error("{0}")]
    Absent(String),
    /// The cloud asks to wait; no event is recorded.
    #[error("{reason}")]
    Throttled {
        /// Why, for people.
        reason: String,
        /// The pause that the cloud asked for.
        pause: Option<Duration>,
    },
    /// An operator has to help: a right is missing, or the cloud refuses.
    #[error("{0}")]
    Refused(String),
    /// The cloud does not route this range to the VM; it may route another one.
    #[error("{0}")]
    RangeRefused(String),
    /// Not sent, because `is_wanted` said no.
    #[error("the call is withdrawn: the Node changed, or assignments are paused")]
    Withdrawn,
    /// The next attempt may succeed.
    #[error("{0}")]
    Failed(String),
}

/// VMs of one project.
pub(super) struct GoogleCloud {
    client: Client,
    readings: Readings,
}

impl GoogleCloud {
    /// Asks by this client.
    pub(super) fn new(client: Client) -> Self {
        Self { readings: Readings::new(client.clone()), client }
    }
}

impl Cloud for GoogleCloud {
    async fn ranges(
        &self,
        provider_id: &str,
        not_before: Instant,
    ) -> Result<PodRanges, CloudError> {
        let vm = self.readings.read(&parse(provider_id)?, not_before).await.map_err(what_next)?;
        vm.pod_ranges().map_err(|bad| CloudError::Failed(bad.to_string()))
    }

    async fn add_range(
        &self,
        provider_id: &str,
        range: IpNet,
        read: &PodRanges,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), CloudError> {
        let vm = parse(provider_id)?;
        let added = self.client.add_alias(&vm, range, &read.aliases, is_wanted).await;
        added.map_err(|error| match error {
            // Google looked at the range: it is in use, or outside of the secondary range.
            GceError::Refused { .. } | GceError::Failed { .. } => {
                CloudError::RangeRefused(error.to_string())
            }
            error => what_next(error),
        })
    }
}

fn parse(provider_id: &str) -> Result<ProviderId, CloudError> {
    ProviderId::parse(provider_id).map_err(|error| CloudError::Failed(error.to_string()))
}

fn what_next(error: GceError) -> CloudError {
    let reason = error.to_string();
    match error {
        GceError::NotFound { .. } => CloudError::Absent(reason),
        GceError::Throttled { retry_after: pause, .. } => CloudError::Throttled { reason, pause },
        GceError::Forbidden { .. }
        | GceError::Refused { .. }
        | GceError::Failed { .. }
        | GceError::DryRun => CloudError::Refused(reason),
        GceError::Withdrawn => CloudError::Withdrawn,
        GceError::Stale | GceError::Unanswered { .. } | GceError::NotSent { .. } => {
            CloudError::Failed(reason)
        }
    }
}
