//! The options of the `tke` flavour.

use std::time::Duration;

use flags::Values;
use health::{Cadence, Policy, Thresholds};

use super::Judge;
use crate::flags::tke::{
    HEALTHCHECK_PERIOD, MACHINE_PERIOD, MACHINE_REQUIRE_NODE_READY, NODES_READY_MIN_RATIO,
    READY_REQUIRES_NODES, SUMMARY_CONCURRENCY, SUMMARY_INTERVAL, SUMMARY_PAGE_SIZE,
    TKE_FAILURE_THRESHOLD, TKE_INSECURE_WHEN_NO_CA, TKE_SUCCESS_THRESHOLD, TKE_TIMEOUT,
};
use crate::flags::{AUDIT, KUBEFED_NAMESPACE};
use crate::tke::TkeOptions;

impl Judge<'_> {
    /// `shared` is the policy of another flavour, with what all have in common.
    pub(super) fn tke(&mut self, values: &Values, shared: &Policy) -> TkeOptions {
        TkeOptions {
            policy: self.tke_policy(shared),
            secret_namespace: Some(values.get(&KUBEFED_NAMESPACE)).filter(|name| !name.is_empty()),
            summary_interval: self.span(&SUMMARY_INTERVAL),
            summary_concurrency: self.count(&SUMMARY_CONCURRENCY, 1, 1_000),
            summary_page_size: self.count(&SUMMARY_PAGE_SIZE, 1, 5_000),
            nodes_ready_min_ratio: self.ratio(),
            ready_requires_nodes: values.get(&READY_REQUIRES_NODES),
            machine_period: self.machine_period(values.get(&AUDIT)),
            machine_require_node_ready: values.get(&MACHINE_REQUIRE_NODE_READY),
            insecure_without_ca: values.get(&TKE_INSECURE_WHEN_NO_CA),
        }
    }

    fn tke_policy(&mut self, shared: &Policy) -> Policy {
        let period = self.interval(&HEALTHCHECK_PERIOD);
        let timeout = self.timeout(&TKE_TIMEOUT);
        let failure = self.number(&TKE_FAILURE_THRESHOLD, 1, i64::from(i32::MAX));
        let success = self.number(&TKE_SUCCESS_THRESHOLD, 1, i64::from(i32::MAX));
        let cadence = Cadence { period, timeout, ..shared.cadence };
        Policy { cadence, thresholds: Thresholds { failure, success }, ..*shared }
    }

    /// `rule:intervals-have-a-floor`. An audit has nothing to do with Machines: it compares
    /// Clusters.
    fn machine_period(&mut self, audit: bool) -> Duration {
        if self.values.get(&MACHINE_PERIOD).nanos() == 0 {
            return Duration::ZERO;
        }
        let period = self.interval(&MACHINE_PERIOD);
        if audit { Duration::ZERO } else { period }
    }

    fn ratio(&mut self) -> f64 {
        let ratio = self.values.get(&NODES_READY_MIN_RATIO);
        if !(0.0..=1.0).contains(&ratio) {
            let why = format!("{ratio} is not between 0 and 1");
            self.problems.push(NODES_READY_MIN_RATIO.problem(why));
        }
        ratio
    }
}
