//! A real Prometheus, as `scripts/check-deploy` gives it: it scrapes the product with the rules of
//! `deploy/prometheus`, and answers what the dashboards of `deploy/grafana` ask.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::programs::workspace;
use crate::temp_dir::TempDir;
use crate::{Process, poll, ports};

/// As the manifests name it.
pub const JOB: &str = "infra-controller-manager";
/// What Grafana puts in for variables.
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

/// It ends with this.
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

    /// How many series an expression has now.
    async fn series(&self, expression: &str) -> usize {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let answer = self.ask(&format!("/api/v1/query?query={query}")).await.unwrap_or_default();
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }

    /// Fails for a panel of this dashboard that shows nothing, though it is given time.
    pub async fn shows(&self, dashboard: &str) {
        let panels = panels(dashboard);
        assert!(panels.len() > 5, "{panels:?}");
        let mut empty = BTreeMap::new();
        for (title, expression) in &panels {
            let filled = async {
                while self.series(expression).await == 0 {
                    sleep(Duration::from_millis(200)).await;
                }
            };
            if timeout(Duration::from_secs(20), filled).await.is_err() {
                empty.insert(title, expression);
            }
        }
        eprintln!("{dashboard}: {} queries, {} without data", panels.len(), empty.len());
        assert!(empty.is_empty(), "panels without data: {empty:#?}");
    }
}

/// The expressions of a dashboard by panel, as Grafana would send them.
fn panels(name: &str) -> Vec<(String, String)> {
    let path = workspace().join(format!("deploy/grafana/{name}.json"));
    let text = fs::read_to_string(path).expect("the dashboard is there");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().expect("it has panels") {
        for target in panel["targets"].as_array().expect("a panel has queries") {
            let asked = target["expr"].as_str().expect("an expression").to_owned();
            let asked =
                VARIABLES.iter().fold(asked, |text, (name, value)| text.replace(name, value));
            assert!(!asked.contains('$'), "{asked}");
            let wrong = ONLY_WHAT_IS_WRONG.iter();
            let asked = wrong.fold(asked, |text, part| text.replace(part, ""));
            found.push((panel["title"].as_str().expect("a title").to_owned(), asked));
        }
    }
    found
}
