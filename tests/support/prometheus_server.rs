//! A real Prometheus, as `scripts/check-deploy` gives it: it scrapes the product with the rules of
//! `deploy/prometheus`, and answers what the dashboards of `deploy/grafana` ask.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::programs::workspace;
use crate::temp_dir::TempDir;
use crate::{Process, poll, ports};

/// Job label, as the manifests name it.
pub const JOB: &str = "infra-controller-manager";
/// Values that Grafana inserts for variables.
const VARIABLES: [(&str, &str); 7] = [
    ("$__rate_interval", "10s"),
    ("$job", JOB),
    ("$instance", ".*"),
    ("$pool", ".*"),
    ("$flavour", ".*"),
    ("$namespace", ".*"),
    ("$region", ".*"),
];
/// Where a panel shows what is wrong and nothing is, it is empty; without these its series are there.
const ONLY_WHAT_IS_WRONG: [&str; 5] =
    [" < 30", " < 1", " > 0", ",state!=\"available\"", ",error_code!=\"\""];

/// How names begin, and what promtool says of them: kube-controller-manager and KubeFed named them so, or their label,
/// or it takes a word for a type.
const NAMED_SO: [(&str, &str); 7] = [
    ("authentication_attempts ", "_total"),
    ("clusterhealth_summary_", "'summary'"),
    ("joined_cluster_total ", "_total"),
    ("kubefedcluster_total ", "_total"),
    ("node_ipam_controller_", "camelCase"),
    ("node_ipam_pool_", "camelCase"),
    ("node_ipam_servable_nodes ", "camelCase"),
];

/// A running Prometheus, which ends when this is dropped.
pub struct PrometheusServer {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl PrometheusServer {
    /// Scrapes these every second, with a bearer token if there is one; all of them are up.
    pub async fn start(targets: &[&Process], token: &str) -> Self {
        let program =
            std::env::var_os("PROMETHEUS").expect("scripts/check-deploy sets $PROMETHEUS");
        let folder = TempDir::new("prometheus").expect("a folder can be made");
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("token"), token).expect("a file can be written");
        let rules = workspace().join("deploy/prometheus/rules/*.yaml");
        let address = |target: &&Process| format!("127.0.0.1:{}", target.port());
        let targets: Vec<_> = targets.iter().map(address).collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules.display().to_string()],
            "scrape_configs": [{
                "job_name": JOB, "scheme": "https", "honor_labels": true,
                "tls_config": {"insecure_skip_verify": true},
                "authorization": {"credentials_file": at("token")},
                "static_configs": [{"targets": targets}],
            }],
        });
        fs::write(at("prometheus.yml"), config.to_string()).expect("a file can be written");
        let port = ports::free_port();
        let process = Process::bare()
            .program(program.as_ref())
            .args([format!("--config.file={}", at("prometheus.yml"))])
            .args([format!("--storage.tsdb.path={}", at("data"))])
            .args([format!("--web.listen-address=127.0.0.1:{port}")])
            .start();
        let server = Self { port, _process: process, _folder: folder };
        let up = async || (server.series("up == 1").await == targets.len()).then_some(());
        poll("the targets are up", up).await;
        server
    }

    /// Asks it; `None` while it does not answer.
    pub async fn ask(&self, path: &str) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let mut config = kube::Config::new(url.parse().expect("an address"));
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client can be made");
        let request = http::Request::get(path).body(Body::empty()).expect("a valid request");
        let body = client.send(request).await.ok()?.into_body().collect_bytes().await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Number of series with a value in the result of an expression; NaN counts as no value.
    async fn series(&self, expression: &str) -> usize {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let answer = self.ask(&format!("/api/v1/query?query={query}")).await.unwrap_or_default();
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        let all = answer["data"]["result"].as_array();
        all.map_or(0, |all| all.iter().filter(|series| series["value"][1] != "NaN").count())
    }

    /// Fails for a panel of this dashboard that shows nothing, or a variable that cannot be chosen,
    /// though it is given time.
    pub async fn shows(&self, dashboard: &str) {
        let asked = asked_by(dashboard);
        assert!(asked.len() > 5, "{asked:?}");
        self.answers(dashboard, &asked).await;
    }

    /// Fails for an expression, under its name, that has no data though it is given time.
    pub async fn answers(&self, asker: &str, asked: &[(String, String)]) {
        let mut empty = BTreeMap::new();
        for (name, expression) in asked {
            let filled = async {
                while self.series(expression).await == 0 {
                    sleep(Duration::from_millis(200)).await;
                }
            };
            if timeout(Duration::from_secs(20), filled).await.is_err() {
                empty.insert(name, expression);
            }
        }
        eprintln!("{asker}: {} queries, {} without data", asked.len(), empty.len());
        assert!(empty.is_empty(), "without data: {empty:#?}");
    }
}

/// Fails for a page of metrics in which `promtool check metrics` finds a mistake, or a name that is
/// not as it should be but for [`NAMED_SO`].
pub fn check_metrics(page: &str) {
    let program = std::env::var_os("PROMTOOL").expect("scripts/check-deploy sets $PROMTOOL");
    let folder = TempDir::new("metrics").expect("a folder can be made");
    let path = folder.join("metrics");
    fs::write(&path, page).expect("a file can be written");
    let output = Command::new(program)
        .args(["check", "metrics"])
        .stdin(File::open(&path).expect("it was written"))
        .output()
        .expect("promtool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // Exit code 3 is for remarks. Newer versions can be configured to make none.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let is_news = |line: &&str| {
        !NAMED_SO.iter().any(|(name, what)| line.starts_with(name) && line.contains(what))
    };
    let remarks: Vec<_> = said.lines().filter(is_news).collect();
    assert!(remarks.is_empty(), "{remarks:#?}");
}

/// The expressions of a dashboard by panel and variable, as Grafana would send them.
fn asked_by(name: &str) -> Vec<(String, String)> {
    let path = workspace().join(format!("deploy/grafana/{name}.json"));
    let text = fs::read_to_string(path).expect("the dashboard is there");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut found = Vec::new();
    for panel in list(&dashboard["panels"]) {
        for target in list(&panel["targets"]) {
            found.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    for variable in list(&dashboard["templating"]["list"]) {
        if variable["type"] == "query" {
            let query = text(&variable["query"]["query"]);
            let values = query.strip_prefix("label_values(").and_then(|it| it.rsplit_once(", "));
            let (series, _label) = values.unwrap_or_else(|| panic!("{query}"));
            found.push((format!("variable {}", text(&variable["name"])), series.to_owned()));
        }
    }
    found.into_iter().map(|(name, asked)| (name, filled_in(asked))).collect()
}

fn filled_in(asked: String) -> String {
    let asked = VARIABLES.iter().fold(asked, |text, (name, value)| text.replace(name, value));
    assert!(!asked.contains('$'), "{asked}");
    ONLY_WHAT_IS_WRONG.iter().fold(asked, |text, part| text.replace(part, ""))
}
