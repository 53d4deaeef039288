//! What `deploy/prometheus` and `deploy/grafana` say stands on what is exported.

use std::collections::BTreeSet;

use flags::GoDuration;
use prometheus::{IntGauge, Registry};
use serde_json::Value;

use crate::engine::{Exposed, Metrics};
use crate::kubefed::UpstreamMetrics;
use crate::tke::SummaryMetrics;

const ALERTS: &str = include_str!("../../../../../../deploy/prometheus/rules/cluster-health.yaml");
const DASHBOARD: &str = include_str!("../../../../../../deploy/grafana/cluster-health.json");

/// Everything that one process can export.
fn everything() -> Registry {
    let registry = Registry::new();
    Metrics::new(&registry, Exposed { per_cluster: true, audit: true }).unwrap();
    SummaryMetrics::new(&registry, true).unwrap();
    UpstreamMetrics::new(&registry, true).unwrap();
    probe::Meters::new(&registry).unwrap();
    registry
}

#[test]
fn every_metric_of_the_alert_rules_and_the_dashboard_is_exported() {
    let registry = everything();
    // Another help is refused under a name that is taken.
    let is_exported = |name: &str| {
        registry.register(Box::new(IntGauge::new(name, "asked for by a test").unwrap())).is_err()
    };
    for file in [ALERTS, DASHBOARD] {
        let words = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let metrics: BTreeSet<_> =
            words.filter(|word| word.starts_with("clusterhealth_")).collect();
        assert!(metrics.len() > 10, "{metrics:?}");
        for metric in metrics {
            let name = metric.strip_suffix("_bucket").unwrap_or(metric);
            assert!(is_exported(name), "{metric} is not exported");
        }
    }
}

fn is_balanced(expression: &str) -> bool {
    let mut open = Vec::new();
    for c in expression.chars() {
        match c {
            '(' | '[' | '{' => open.push(c),
            ')' if open.pop() != Some('(') => return false,
            ']' if open.pop() != Some('[') => return false,
            '}' if open.pop() != Some('{') => return false,
            _ => {}
        }
    }
    open.is_empty() && expression.matches('"').count().is_multiple_of(2)
}

#[test]
fn every_alert_rule_is_whole_and_names_labels_that_there_are() {
    const LABELS: [&str; 9] =
        ["flavour", "namespace", "cluster", "reason", "ours", "stored", "state", "window", "check"];
    let rules: Value = serde_saphyr::from_str(ALERTS).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let mut names = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule["record"].is_null()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, expression) = (text(&rule["alert"]), text(&rule["expr"]));
        let prefixes = ["Member", "ManyMember", "HubPartition"];
        assert!(prefixes.iter().any(|it| name.starts_with(it)), "{name}");
        // A metric, or a record of the same group.
        let is_ours = ["clusterhealth_", "ready:count"].iter().any(|it| expression.contains(it));
        assert!(is_balanced(&expression) && is_ours, "{expression}");
        let severity = text(&rule["labels"]["severity"]);
        assert!(["info", "warning", "critical"].contains(&&*severity), "{name}: {severity}");
        if let Some(lasting) = rule["for"].as_str() {
            lasting.parse::<GoDuration>().unwrap();
        }
        for annotation in ["summary", "description"] {
            let annotation = text(&rule["annotations"][annotation]);
            assert!(!annotation.is_empty(), "{name}");
            for label in annotation.split("$labels.").skip(1) {
                let label = label.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap();
                assert!(LABELS.contains(&label), "{name} shows {label}");
            }
        }
        assert!(names.insert(name), "two rules of one name");
    }
    assert!(names.len() > 10);
}

#[test]
fn the_panels_of_the_dashboard_have_expressions_and_places_of_their_own() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let (mut places, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = (panel["gridPos"]["x"].as_u64(), panel["gridPos"]["y"].as_u64());
        assert!(places.insert(place) && ids.insert(panel["id"].as_u64()), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            assert!(is_balanced(target["expr"].as_str().unwrap()), "{target}");
        }
    }
}
