//! [`AwsClusterMetrics`]: how long AWSClusters take, and what is mended of them.

use aws_network::{Action, Outcome};
use jiff::Timestamp;
use objects::Object;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, Opts, Registry, exponential_buckets};

use crate::api::aws_cluster::AwsCluster;

/// Clones count together.
#[derive(Clone)]
pub(super) struct AwsClusterMetrics {
    provision: Histogram,
    repairs: IntCounterVec,
}

impl AwsClusterMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Time from the creation of an AWSCluster until it was ready.";
        let opts = HistogramOpts::new("awscluster_provision_seconds", help)
            .buckets(exponential_buckets(5.0, 2.0, 10)?);
        let provision = Histogram::with_opts(opts)?;
        let help = "Writes to AWS that brought a ready AWSCluster, whose spec was not changed, back to what it should be.";
        let opts = Opts::new("awscluster_drift_repairs_total", help);
        let repairs = IntCounterVec::new(opts, &["operation"])?;
        registry.register(Box::new(provision.clone()))?;
        registry.register(Box::new(repairs.clone()))?;
        Ok(Self { provision, repairs })
    }

    /// It is ready for the first time.
    pub(super) fn provisioned(&self, object: &Object<AwsCluster>, now: Timestamp) {
        let made: Option<Timestamp> =
            object.metadata.creation_timestamp.as_deref().and_then(|text| text.parse().ok());
        if let Some(made) = made {
            self.provision.observe(now.duration_since(made).as_secs_f64().max(0.0));
        }
    }

    /// Something was written for it.
    pub(super) fn wrote(&self, object: &Object<AwsCluster>, action: &Action, outcome: &Outcome) {
        let (metadata, status) = (&object.metadata, &object.status);
        let is_unchanged = status.observed_generation == Some(metadata.generation);
        let is_repair = status.was_ready() && is_unchanged && !metadata.deleting();
        if is_repair && matches!(outcome, Outcome::Done(_)) {
            self.repairs.with_label_values(&[aws::operation(action)]).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_network::Answer;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_writes_for_what_was_ready_and_is_wanted_as_before_are_repairs() {
        let metrics = AwsClusterMetrics::new(&Registry::new()).unwrap();
        let object = |ready: bool, observed: i64, deleted: Value| -> Object<AwsCluster> {
            Object::read(json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u",
                "resourceVersion": "1", "generation": 2, "deletionTimestamp": deleted},
                "spec": {"region": "r"}, "status": {"ready": ready, "observedGeneration": observed}}))
            .unwrap()
        };
        let action = Action::DeleteRoute { table: "rtb-1".to_owned() };
        let done = Outcome::Done(Answer::default());
        let count = || metrics.repairs.with_label_values(&["DeleteRoute"]).get();
        metrics.wrote(&object(false, 2, Value::Null), &action, &done);
        metrics.wrote(&object(true, 1, Value::Null), &action, &done);
        metrics.wrote(&object(true, 2, json!("2026-01-01T00:00:00Z")), &action, &done);
        metrics.wrote(&object(true, 2, Value::Null), &action, &Outcome::Unknown);
        assert_eq!(count(), 0);
        metrics.wrote(&object(true, 2, Value::Null), &action, &done);
        assert_eq!(count(), 1);
    }
}
