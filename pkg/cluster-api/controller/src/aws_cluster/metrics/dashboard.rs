//! What the dashboard in `deploy/grafana` shows is exported.

use std::collections::BTreeSet;

use prometheus::IntGauge;
use serde_json::Value;

use super::*;

const DASHBOARD: &str = include_str!("../../../../../../deploy/grafana/cluster-api.json");

#[test]
fn every_metric_of_the_dashboard_is_exported_and_every_panel_has_a_place_of_its_own() {
    let registry = Registry::new();
    AwsClusterMetrics::new(&registry).unwrap();
    aws::Metrics::new(&registry).unwrap();
    // Another help is refused under a name that is taken.
    let is_exported = |name: &str| {
        registry.register(Box::new(IntGauge::new(name, "asked for by a test").unwrap())).is_err()
    };
    let words = DASHBOARD.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics: BTreeSet<_> =
        words.filter(|word| word.starts_with("awscluster_") || word.starts_with("aws_")).collect();
    assert!(metrics.len() >= 8, "{metrics:?}");
    for metric in metrics {
        let name = metric.trim_end_matches("_bucket").trim_end_matches("_sum");
        assert!(is_exported(name), "{metric} is not exported");
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64());
        assert!(places.insert(place), "{panel}");
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
    }
}
