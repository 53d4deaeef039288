//! [`ClusterMetrics`]: how many Clusters are in which phase.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::gauge;
use parking_lot::Mutex;
use prometheus::{IntGaugeVec, Registry};

use super::report::Phase;
use crate::api::Dialect;

/// Clones count together.
#[derive(Clone)]
pub(super) struct ClusterMetrics {
    phases: IntGaugeVec,
    by_cluster: Arc<Mutex<HashMap<Arc<str>, Phase>>>,
}

impl ClusterMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Clusters of Cluster API in this phase.";
        let phases = gauge(registry, "cluster_phase", help, &["phase"])?;
        let metrics = Self { phases, by_cluster: Arc::default() };
        metrics.reset();
        Ok(metrics)
    }

    /// Sets the gauges to zero at the start of a run.
    pub(super) fn reset(&self) {
        let mut by_cluster = self.by_cluster.lock();
        by_cluster.clear();
        self.show(&by_cluster);
    }

    /// A Cluster is in this phase, or gone.
    pub(super) fn set(&self, cluster: &Arc<str>, phase: Option<Phase>) {
        let mut by_cluster = self.by_cluster.lock();
        let before = match phase {
            Some(phase) => by_cluster.insert(Arc::clone(cluster), phase),
            None => by_cluster.remove(cluster),
        };
        if before != phase {
            self.show(&by_cluster);
        }
    }

    fn show(&self, by_cluster: &HashMap<Arc<str>, Phase>) {
        for phase in Phase::ALL {
            let count = by_cluster.values().filter(|it| **it == phase).count();
            let word = phase.word(Dialect::V1Alpha2);
            let gauge = self.phases.with_label_values(&[word]);
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cluster_counts_in_its_phase_until_it_is_gone() {
        let metrics = ClusterMetrics::new(&Registry::new()).unwrap();
        let cluster = Arc::from("ns/c");
        let counts = || {
            ["pending", "provisioned"].map(|word| metrics.phases.with_label_values(&[word]).get())
        };
        metrics.set(&cluster, Some(Phase::Pending));
        assert_eq!(counts(), [1, 0]);
        metrics.set(&cluster, Some(Phase::Provisioned));
        metrics.set(&Arc::from("ns/d"), Some(Phase::Provisioned));
        assert_eq!(counts(), [0, 2]);
        metrics.set(&cluster, None);
        assert_eq!(counts(), [0, 1]);
        metrics.reset();
        assert_eq!(counts(), [0, 0]);
    }
}
