//! Leader election, as the flags give it.

use election::ElectionConfig;
use flags::Values;

use super::table::generic::DRY_RUN;
use super::table::leader::{
    LEADER_ELECT_LEASE_DURATION, LEADER_ELECT_RENEW_DEADLINE, LEADER_ELECT_RESOURCE_NAME,
    LEADER_ELECT_RESOURCE_NAMESPACE, LEADER_ELECT_RETRY_PERIOD,
};

/// The lease and timings for the candidate `identity`. A negative duration counts as zero, which
/// [`ElectionConfig::validate`] refuses.
pub fn election_config(values: &Values, identity: String) -> ElectionConfig {
    ElectionConfig {
        namespace: values.get(&LEADER_ELECT_RESOURCE_NAMESPACE),
        name: lease_name(values),
        identity,
        lease_duration: values.get(&LEADER_ELECT_LEASE_DURATION).to_std(),
        renew_deadline: values.get(&LEADER_ELECT_RENEW_DEADLINE).to_std(),
        retry_period: values.get(&LEADER_ELECT_RETRY_PERIOD).to_std(),
    }
}

/// A dry run stands beside what works, so that it has a Lease of its own.
fn lease_name(values: &Values) -> String {
    let name = values.get(&LEADER_ELECT_RESOURCE_NAME);
    let own = values.get(&DRY_RUN) && !values.is_set(LEADER_ELECT_RESOURCE_NAME.name());
    if own { format!("{name}-dry-run") } else { name }
}
