//! Google Compute Engine as a [`Cloud`].

use cidr::IpNet;
use gce::{CallError, Client, ProviderId, Readings};
use tokio::time::Instant;

use super::provider::{Cloud, CloudError, VmRanges};

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
    async fn ranges(&self, provider_id: &str, not_before: Instant) -> Result<VmRanges, CloudError> {
        let vm = self.readings.read(&parse(provider_id)?, not_before).await.map_err(what_next)?;
        let ranges = vm.pod_ranges().map_err(|bad| CloudError::Failed(bad.to_string()))?;
        Ok(VmRanges { aliases: ranges.aliases, ipv6: ranges.ipv6 })
    }

    async fn add_range(
        &self,
        provider_id: &str,
        range: IpNet,
        read: &VmRanges,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), CloudError> {
        let vm = parse(provider_id)?;
        let added = self.client.add_alias(&vm, range, &read.aliases, is_wanted).await;
        added.map_err(|error| match error {
            // Google looked at the range: it is in use, or outside of the secondary range.
            CallError::Refused { .. } | CallError::Failed { .. } => {
                CloudError::RangeRefused(error.to_string())
            }
            error => what_next(error),
        })
    }
}

fn parse(provider_id: &str) -> Result<ProviderId, CloudError> {
    ProviderId::parse(provider_id).map_err(|error| CloudError::Failed(error.to_string()))
}

fn what_next(error: CallError) -> CloudError {
    let reason = error.to_string();
    match error {
        CallError::NotFound { .. } => CloudError::Absent(reason),
        CallError::Throttled { retry_after: pause, .. } => CloudError::Throttled { reason, pause },
        CallError::Forbidden { .. }
        | CallError::Refused { .. }
        | CallError::Failed { .. }
        | CallError::DryRun => CloudError::Refused(reason),
        CallError::Withdrawn => CloudError::Withdrawn,
        CallError::Stale | CallError::Unanswered { .. } | CallError::NotSent { .. } => {
            CloudError::Failed(reason)
        }
    }
}
