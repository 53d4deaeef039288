//! Leader election, as the flags give it (`host.md` 3.2).

use election::ElectionConfig;
use pflag::Values;

/// The lease and timings for the candidate `identity`. A negative duration counts as zero, which
/// [`ElectionConfig::validate`] refuses.
pub fn election_config(values: &Values, identity: String) -> ElectionConfig {
    ElectionConfig {
        namespace: values.string("leader-elect-resource-namespace").into(),
        name: values.string("leader-elect-resource-name").into(),
        identity,
        lease_duration: values.duration("leader-elect-lease-duration"),
        renew_deadline: values.duration("leader-elect-renew-deadline"),
        retry_period: values.duration("leader-elect-retry-period"),
    }
}
