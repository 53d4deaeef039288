//! `deploy/prometheus` and `deploy/runbooks`: each alert has a runbook, a unit test in which it fires and
//! one in which it is silent, and reads metrics that the program has; the configuration of Alertmanager
//! names alerts and labels that exist. `scripts/check-deploy` runs promtool and Alertmanager.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::programs::workspace;

use crate::files::manifest;
use crate::promql::metrics_of;

const RULES: &str = "deploy/prometheus/rules";
const UNIT_TESTS: &str = "deploy/prometheus/tests";
const JOB: &str = "job=\"infra-controller-manager\"";
/// Metrics whose names other programs have, too.
const SHARED: [&str; 5] = ["up{", "leader_election_", "process_", "rest_client_", "workqueue_"];
/// Metrics of Prometheus and of API servers.
const FOREIGN: [&str; 3] = [
    "up",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
];
const SCOPES: [&str; 4] = ["member", "fleet", "hub", "credential"];

fn files(folder: &str) -> Vec<String> {
    let names = fs::read_dir(workspace().join(folder)).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|name| Path::new(name).extension().is_some()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |list| list)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The rules of all groups of a file.
fn rules_of(file: &str) -> Vec<Value> {
    let groups = manifest(&format!("{RULES}/{file}")).remove(0);
    list(&groups["groups"]).iter().flat_map(|group| list(&group["rules"])).cloned().collect()
}

fn rules() -> Vec<Value> {
    files(RULES).iter().flat_map(|file| rules_of(file)).collect()
}

fn alerts() -> Vec<Value> {
    let alerts: Vec<_> = rules().into_iter().filter(|rule| rule["alert"].is_string()).collect();
    assert!(alerts.len() > 40, "{}", alerts.len());
    alerts
}

/// The alert and the expected alerts of each case of the unit tests.
fn unit_tests() -> Vec<(String, Vec<Value>)> {
    let mut cases = Vec::new();
    for file in files(UNIT_TESTS) {
        let tests = manifest(&format!("{UNIT_TESTS}/{file}")).remove(0);
        for case in list(&tests["tests"]).iter().flat_map(|test| list(&test["alert_rule_test"])) {
            cases.push((text(&case["alertname"]).to_owned(), list(&case["exp_alerts"]).to_vec()));
        }
    }
    cases
}

#[test]
fn each_alert_has_a_runbook_and_each_runbook_an_alert() {
    let mut linked = BTreeSet::new();
    for alert in alerts() {
        let name = text(&alert["alert"]);
        let severity = text(&alert["labels"]["severity"]);
        assert!(["info", "warning", "critical"].contains(&severity), "{name}: {severity:?}");
        let link = format!("deploy/runbooks/{name}.md");
        assert_eq!(text(&alert["annotations"]["runbook_url"]), link, "{name}");
        let page = fs::read_to_string(workspace().join(&link));
        let page = page.unwrap_or_else(|error| panic!("{name}: {link}: {error}"));
        let title = format!("# {name}\n\n");
        assert!(page.starts_with(&title), "{link} does not start with {title:?}");
        let meaning = page[title.len()..].lines().next().unwrap_or_default();
        assert!(meaning.len() > 20 && !meaning.starts_with('#'), "{link} lacks the meaning");
        for part in ["\n## Look\n\n- ", "\n## Do\n\n- ", "\n## Do not\n\n- "] {
            assert!(page.contains(part), "{link} lacks {part:?}");
        }
        assert!(linked.insert(format!("{name}.md")), "two alerts have the name {name}");
    }
    let there: BTreeSet<_> = files("deploy/runbooks").into_iter().collect();
    assert_eq!(there, linked);
}

#[test]
fn each_alert_is_tested_firing_and_silent() {
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for (name, expected) in unit_tests() {
        let set = if expected.is_empty() { &mut silent } else { &mut firing };
        set.insert(name);
    }
    for alert in alerts() {
        let name = text(&alert["alert"]);
        assert!(firing.contains(name), "{name} fires in no test");
        assert!(silent.contains(name), "{name} is silent in no test");
    }
}

#[test]
fn each_alert_of_cluster_health_has_a_scope_and_a_flavour() {
    let cases = unit_tests();
    let rules = rules_of("cluster-health.yaml");
    for alert in rules.iter().filter(|rule| rule["alert"].is_string()) {
        let (name, scope) = (text(&alert["alert"]), text(&alert["labels"]["scope"]));
        assert!(SCOPES.contains(&scope), "{name}: {scope:?}");
        // The guard, the queue and the shards of a process are those of all flavours.
        let fired = cases.iter().filter(|(tested, _)| tested == name).flat_map(|(_, it)| it);
        for labels in fired.map(|it| &it["exp_labels"]).filter(|_| scope != "hub") {
            assert!(!text(&labels["flavour"]).is_empty(), "{name} has no flavour: {labels}");
            let is_of_a_member = scope == "member" || scope == "credential";
            assert_eq!(labels["cluster"].is_string(), is_of_a_member, "{name}: {labels}");
        }
    }
}

/// The `label`, the operator and the value of a matcher such as `scope = member`.
fn matcher(value: &Value) -> (&str, Vec<&str>) {
    let parts: Vec<_> = text(value).splitn(3, ' ').collect();
    let [label, "=" | "=~", values] = parts[..] else { panic!("{value}") };
    (label, values.trim_matches('"').split('|').collect())
}

#[test]
fn the_configuration_of_alertmanager_names_alerts_and_labels_that_exist() {
    let config = manifest("deploy/prometheus/alertmanager.yaml").remove(0);
    assert_eq!(config["route"]["group_by"], serde_json::json!(["alertname", "flavour"]));
    let alerts = alerts();
    let check = |matchers: &Value| {
        for (label, values) in list(matchers).iter().map(matcher) {
            for value in values {
                let is_of = |alert: &Value| match label {
                    "alertname" => alert["alert"] == value,
                    label => alert["labels"][label] == value,
                };
                assert!(alerts.iter().any(is_of), "no alert has {label}={value}");
            }
        }
    };
    for route in list(&config["route"]["routes"]) {
        check(&route["matchers"]);
    }
    let mut silenced_in_a_partition = false;
    for rule in list(&config["inhibit_rules"]) {
        for side in ["source_matchers", "target_matchers"] {
            assert!(!list(&rule[side]).is_empty(), "{rule}");
            check(&rule[side]);
        }
        silenced_in_a_partition |= matcher(&rule["source_matchers"][0]).1 == ["HubPartition"]
            && matcher(&rule["target_matchers"][0]) == ("scope", vec!["member"]);
    }
    assert!(silenced_in_a_partition, "HubPartition silences no alerts of members");
}

/// Who runs other programs with leases must not be paged for theirs.
#[test]
fn metrics_whose_names_others_have_are_selected_by_job() {
    for alert in alerts() {
        let (name, expression) = (text(&alert["alert"]), text(&alert["expr"]));
        for shared in SHARED {
            let is_start = |at: usize| !expression[..at].ends_with(['_', ':']);
            for (at, _) in expression.match_indices(shared).filter(|(at, _)| is_start(*at)) {
                let rest = &expression[at..];
                let selector = rest.split_once('}').map_or(rest, |(selector, _)| selector);
                assert!(selector.contains(JOB), "{name}: {selector}");
            }
        }
    }
}

#[test]
fn each_rule_reads_metrics_that_the_program_registers_or_a_rule_records() {
    let rules = rules();
    let recorded: BTreeSet<_> = rules.iter().map(|rule| text(&rule["record"])).collect();
    let mut sources = String::new();
    for folder in ["pkg", "cmd"] {
        read_sources(&workspace().join(folder), &mut sources);
    }
    let is_registered = |metric: &str| sources.contains(&format!("\"{metric}\""));
    for rule in &rules {
        let metrics = metrics_of(text(&rule["expr"]));
        assert!(!metrics.is_empty(), "{rule}");
        for metric in metrics {
            let of_a_histogram = ["_bucket", "_sum", "_count"];
            let base = of_a_histogram.into_iter().find_map(|end| metric.strip_suffix(end));
            let exists = FOREIGN.contains(&metric)
                || recorded.contains(metric)
                || is_registered(metric)
                || base.is_some_and(is_registered);
            assert!(exists, "{}{}: {metric}", text(&rule["alert"]), text(&rule["record"]));
        }
    }
}

/// The source without tests, in which a metric may have any name.
fn read_sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if ["tests", "tests.rs", "benches"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            into.push_str(source.split("\n#[cfg(test)]\nmod tests {").next().unwrap());
        }
    }
}
