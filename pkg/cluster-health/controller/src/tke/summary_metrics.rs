//! [`SummaryMetrics`]: how the gathering of summaries goes, and what they came to.

use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::Family;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, Registry};

use super::cluster_details::DetailStore;
use crate::api::tke::{NodeCounts, ResourceSummary};
use crate::paging::Abort;

/// From a cluster of a few Nodes to one that has to be cut off.
const SECONDS: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0];
/// Values of the label `kind` of Nodes, and of sums.
const NODES: [&str; 3] = ["total", "ready", "schedulable"];
const SUMS: [&str; 4] = ["capacity", "allocatable", "allocated", "allocating"];

/// Registered once per process; a restarted controller shows its new clusters.
#[derive(Clone)]
pub(crate) struct SummaryMetrics {
    duration: Histogram,
    errors: IntCounterVec,
    shown: Arc<Mutex<Weak<DetailStore>>>,
}

/// The values of one cluster, in the order of the labels.
struct Numbers {
    nodes: Option<[f64; 3]>,
    cores: [f64; 4],
    bytes: [f64; 4],
}

impl SummaryMetrics {
    /// Registers them; the sums of each cluster only if `per_cluster`.
    pub(crate) fn new(registry: &Registry, per_cluster: bool) -> Result<Self, prometheus::Error> {
        let duration = Histogram::with_opts(
            HistogramOpts::new(
                "clusterhealth_summary_duration_seconds",
                "Time to read the Nodes and Pods of a cluster, failed reads included.",
            )
            .buckets(SECONDS.to_vec()),
        )?;
        let errors = metrics::counter(
            registry,
            "clusterhealth_summary_errors_total",
            "Failed summaries of a cluster, by the reason of its condition ResourceSynced.",
            &["reason"],
        )?;
        // From the start, so that the first failure is an increase.
        for abort in [
            Abort::Stalled,
            Abort::Expired,
            Abort::Limit,
            Abort::TooLarge(""),
            Abort::Failed(Box::default()),
        ] {
            errors.with_label_values(&[abort.reason()]);
        }
        let duration = metrics::register(registry, duration)?;
        let shown = Arc::default();
        if per_cluster {
            show_sums(registry, Arc::clone(&shown))?;
        }
        Ok(Self { duration, errors, shown })
    }

    /// Shows the summaries of these Clusters from now on.
    pub(super) fn show(&self, details: &Arc<DetailStore>) {
        *self.shown.lock() = Arc::downgrade(details);
    }

    pub(super) fn gathered(&self, took: Duration, abort: Option<&Abort>) {
        self.duration.observe(took.as_secs_f64());
        if let Some(abort) = abort {
            self.errors.with_label_values(&[abort.reason()]).inc();
        }
    }
}

/// The sums of each cluster, read at each scrape.
fn show_sums(
    registry: &Registry,
    shown: Arc<Mutex<Weak<DetailStore>>>,
) -> Result<(), prometheus::Error> {
    let family = |name: &str, help: &str| {
        Family::gauge(name, help, &["flavour", "namespace", "cluster", "kind"])
    };
    let families = [
        family("clusterhealth_cluster_nodes", "Nodes of a cluster.")?,
        family(
            "clusterhealth_cluster_cpu_cores",
            "CPU cores of a cluster: capacity and allocatable of its Nodes, requests of Pods on Nodes, requests of Pods without a Node.",
        )?,
        family(
            "clusterhealth_cluster_memory_bytes",
            "Memory of a cluster: capacity and allocatable of its Nodes, requests of Pods on Nodes, requests of Pods without a Node.",
        )?,
    ];
    metrics::at_scrape(registry, families, move |families| {
        let mut shown_series = [const { Vec::new() }; 3];
        let Some(details) = shown.lock().upgrade() else { return shown_series };
        for (name, Numbers { nodes, cores, bytes }) in details.summaries(numbers) {
            let nodes = nodes.as_ref().map_or(&[][..], |it| &it[..]);
            let rows: [(&[&str], &[f64]); 3] = [(&NODES, nodes), (&SUMS, &cores), (&SUMS, &bytes)];
            for ((series, family), (kinds, values)) in
                shown_series.iter_mut().zip(families).zip(rows)
            {
                let labelled = kinds.iter().zip(values);
                series.extend(
                    labelled.map(|(kind, value)| family.series(&["tke", "", &name, kind], *value)),
                );
            }
        }
        shown_series
    })
}

#[allow(clippy::cast_precision_loss, reason = "no cluster has 2^52 Nodes")]
fn numbers(summary: &ResourceSummary) -> Numbers {
    let sums = |name: &str| {
        let ResourceSummary { capacity, allocatable, allocated, allocating, .. } = summary;
        [capacity, allocatable, allocated, allocating].map(|sums| sums.get(name).as_f64())
    };
    let count = |NodeCounts { total, ready, schedulable }: NodeCounts| {
        [total as f64, ready as f64, schedulable as f64]
    };
    Numbers { nodes: summary.nodes.map(count), cores: sums("cpu"), bytes: sums("memory") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::MemberId;

    fn page(registry: &Registry) -> String {
        prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    /// rule:nothing-outlives-its-object
    #[test]
    fn the_sums_of_a_cluster_are_shown_until_it_goes_and_failures_are_counted_by_reason() {
        let (registry, details) = (Registry::new(), Arc::<DetailStore>::default());
        let metrics = SummaryMetrics::new(&registry, true).unwrap();
        metrics.show(&details);
        let cluster = MemberId { uid: "u".into(), key: "cls-1".into() };
        let summary = json!({
            "capacity": {"cpu": "4", "memory": "8Gi"},
            "allocated": {"cpu": "1500m"},
            "nodes": {"total": 3, "ready": 2, "schedulable": 1},
        });
        let summary = Some(serde_json::from_value(summary).unwrap());
        details.with(&cluster, |entry| entry.facts.summary = summary);
        metrics.gathered(Duration::from_secs(1), Some(&Abort::Failed("why".into())));
        let shown = page(&registry);
        let labels = |kind: &str| {
            format!("{{cluster=\"cls-1\",flavour=\"tke\",kind=\"{kind}\",namespace=\"\"}}")
        };
        for line in [
            format!("clusterhealth_cluster_nodes{} 2", labels("ready")),
            format!("clusterhealth_cluster_cpu_cores{} 1.5", labels("allocated")),
            format!("clusterhealth_cluster_memory_bytes{} 8589934592", labels("capacity")),
            "clusterhealth_summary_errors_total{reason=\"ListFailed\"} 1".to_owned(),
            "clusterhealth_summary_errors_total{reason=\"ListExpired\"} 0".to_owned(),
        ] {
            assert!(shown.contains(&line), "{line} is not in {shown}");
        }
        details.remove(&cluster);
        assert!(!page(&registry).contains("cls-1"));
    }
}
