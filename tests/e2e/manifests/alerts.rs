//! `deploy/prometheus` and `deploy/runbooks`: each alert has a runbook, a unit test in which it fires and
//! one in which it is silent, and asks for metrics that the program has. `scripts/check-deploy` runs the
//! unit tests with promtool.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::programs::workspace;

use crate::files::manifest;

const RULES: &str = "deploy/prometheus/rules";
const JOB: &str = "job=\"infra-controller-manager\"";
/// Metrics whose names other programs have, too.
const SHARED: [&str; 5] = ["up{", "leader_election_", "process_", "rest_client_", "workqueue_"];

fn files(folder: &str) -> Vec<String> {
    let names = fs::read_dir(workspace().join(folder)).unwrap();
    names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

fn alerts() -> Vec<Value> {
    let mut alerts = Vec::new();
    for file in files(RULES) {
        for group in manifest(&format!("{RULES}/{file}")).remove(0)["groups"].as_array().unwrap() {
            let rules = group["rules"].as_array().unwrap();
            alerts.extend(rules.iter().filter(|rule| rule["alert"].is_string()).cloned());
        }
    }
    assert!(alerts.len() > 40, "{}", alerts.len());
    alerts
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn each_alert_has_a_runbook_and_each_runbook_an_alert() {
    let mut linked = BTreeSet::new();
    for alert in alerts() {
        let name = text(&alert["alert"]);
        let severity = text(&alert["labels"]["severity"]);
        assert!(["info", "warning", "critical"].contains(&severity), "{name}: {severity:?}");
        let link = text(&alert["annotations"]["runbook_url"]).to_owned();
        let page = fs::read_to_string(workspace().join(&link));
        let page = page.unwrap_or_else(|error| panic!("{name}: {link}: {error}"));
        let file = Path::new(&link).file_stem().unwrap().to_str().unwrap();
        assert!(name.starts_with(file), "{name} links to {link}");
        for part in [&*format!("# {file}\n"), "\n## Look\n", "\n## Do\n"] {
            assert!(page.contains(part), "{link} lacks {part:?}");
        }
        linked.insert(format!("{file}.md"));
    }
    let there: BTreeSet<_> = files("deploy/runbooks").into_iter().collect();
    assert_eq!(there, linked);
}

#[test]
fn each_alert_is_tested_firing_and_silent() {
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for file in files("deploy/prometheus/tests") {
        for test in manifest(&format!("deploy/prometheus/tests/{file}")).remove(0)["tests"]
            .as_array()
            .unwrap()
        {
            for case in test["alert_rule_test"].as_array().into_iter().flatten() {
                let expected = case["exp_alerts"].as_array().unwrap();
                let set = if expected.is_empty() { &mut silent } else { &mut firing };
                set.insert(text(&case["alertname"]).to_owned());
            }
        }
    }
    for alert in alerts() {
        let name = text(&alert["alert"]);
        assert!(firing.contains(name), "{name} fires in no test");
        assert!(silent.contains(name), "{name} is silent in no test");
    }
}

/// Who runs other programs with leases must not be paged for theirs.
#[test]
fn metrics_whose_names_others_have_are_selected_by_job() {
    for alert in alerts() {
        let (name, expression) = (text(&alert["alert"]), text(&alert["expr"]));
        for shared in SHARED {
            for (at, _) in expression.match_indices(shared) {
                let rest = &expression[at..];
                let selector = rest.split_once('}').map_or(rest, |(selector, _)| selector);
                assert!(selector.contains(JOB), "{name}: {selector}");
            }
        }
    }
}

#[test]
fn each_alert_asks_for_metrics_that_the_program_has() {
    let mut sources = String::new();
    read_sources(&workspace().join("pkg"), &mut sources);
    for alert in alerts() {
        let expression = text(&alert["expr"]);
        let words = expression.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        let is_metric = |word: &&str| {
            let ours = ["icm_", "node_ipam_", "clusterhealth_", "aws_", "awscluster_"];
            ours.iter().any(|prefix| word.starts_with(prefix))
        };
        for metric in words.filter(is_metric) {
            let base = ["_bucket", "_sum", "_count"]
                .into_iter()
                .find_map(|end| metric.strip_suffix(end))
                .unwrap_or(metric);
            assert!(sources.contains(&format!("\"{base}\"")), "{}: {metric}", alert["alert"]);
        }
    }
}

fn read_sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
