//! A real Prometheus, as `scripts/check-deploy` has it: it scrapes with a service account's token, and
//! finds all that the dashboards ask for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tests::kubectl::Shell;
use tests::nodes::names;
use tests::programs::workspace;
use tests::temp_dir::TempDir;
use tests::{Process, create_nodes, mk_node, poll, ports};

use crate::scene::Scene;

const JOB: &str = "infra-controller-manager";

/// Lets a service account read metrics, as an operator would; its token.
fn scraper(kubectl: &Shell) -> String {
    kubectl.run("apply -f config/rbac/metrics-reader.yaml");
    kubectl.run("create serviceaccount prometheus -n kube-system");
    let role = "infra-controller-manager-metrics-reader";
    kubectl.run(&format!(
        "create clusterrolebinding prometheus --clusterrole={role} --serviceaccount=kube-system:prometheus"
    ));
    kubectl.run("create token prometheus -n kube-system").trim().to_owned()
}

/// Starts it on what `manager` serves; the port that it answers on.
fn start(manager: &Process, token: &str, folder: &TempDir) -> (Process, u16) {
    let program = std::env::var_os("PROMETHEUS").expect("scripts/check-deploy sets $PROMETHEUS");
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(at("token"), token).unwrap();
    let rules = workspace().join("deploy/prometheus/rules/*.yaml");
    let config = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [rules.display().to_string()],
        "scrape_configs": [{
            "job_name": JOB, "scheme": "https", "honor_labels": true,
            "tls_config": {"insecure_skip_verify": true},
            "authorization": {"credentials_file": at("token")},
            "static_configs": [{"targets": [format!("127.0.0.1:{}", manager.port())]}],
        }],
    });
    fs::write(at("prometheus.yml"), config.to_string()).unwrap();
    let port = ports::free_port();
    let process = Process::bare()
        .program(program.as_ref())
        .args([format!("--config.file={}", at("prometheus.yml"))])
        .args([format!("--storage.tsdb.path={}", at("data"))])
        .args([format!("--web.listen-address=127.0.0.1:{port}")])
        .start();
    (process, port)
}

/// Asks Prometheus; `None` while it does not answer.
async fn ask(port: u16, path: &str) -> Option<Value> {
    let mut config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get(path).body(Body::empty()).unwrap();
    let body = client.send(request).await.ok()?.into_body().collect_bytes().await.ok()?;
    serde_json::from_slice(&body).ok()
}

/// How many series an expression has now.
async fn series(port: u16, expression: &str) -> usize {
    let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
    let answer = ask(port, &format!("/api/v1/query?query={query}")).await.unwrap_or_default();
    assert_ne!(answer["status"], "error", "{expression}: {answer}");
    answer["data"]["result"].as_array().map_or(0, Vec::len)
}

/// The expressions of a dashboard by panel, as Grafana would send them.
fn panels(name: &str) -> Vec<(String, String)> {
    let path = workspace().join(format!("deploy/grafana/{name}.json"));
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let values = [("$__rate_interval", "10s"), ("$job", JOB), ("$instance", ".*"), ("$pool", ".*")];
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let asked = target["expr"].as_str().unwrap().to_owned();
            let asked = values.iter().fold(asked, |text, (name, value)| text.replace(name, value));
            assert!(!asked.contains('$'), "{asked}");
            found.push((panel["title"].as_str().unwrap().to_owned(), asked));
        }
    }
    found
}

fn check_metrics(page: &str, folder: &TempDir) {
    let program = std::env::var_os("PROMTOOL").expect("scripts/check-deploy sets $PROMTOOL");
    let path = folder.join("metrics");
    fs::write(&path, page).unwrap();
    let output = Command::new(program)
        .args(["check", "metrics", "--lint=none"])
        .stdin(Stdio::from(File::open(&path).unwrap()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus: scripts/check-deploy"]
async fn a_real_prometheus_scrapes_with_a_token_and_every_panel_has_data() {
    let scene = Scene::set().await;
    let kubeconfig = scene.cluster.manager_kubeconfig();
    let manager = Process::with_kubeconfig(&kubeconfig)
        .guarded_by(&kubeconfig)
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12"])
        .args(["--use-service-account-credentials=true"])
        .start();
    manager.line("Controller starting...").await;
    create_nodes(&scene.client, names("n", 50).map(mk_node)).await;
    let token = scraper(&Shell::new(scene.cluster.admin_kubeconfig()));
    let folder = TempDir::new("prometheus").unwrap();
    let (prometheus, port) = start(&manager, &token, &folder);
    poll("the target is up", async || (series(port, "up == 1").await == 1).then_some(())).await;

    let mut empty: BTreeMap<String, String> = BTreeMap::new();
    for (title, expression) in ["host", "node-ipam"].into_iter().flat_map(panels) {
        let filled = async || (series(port, &expression).await > 0).then_some(());
        let waiting = tokio::time::timeout(std::time::Duration::from_secs(20), async {
            while filled().await.is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        });
        if waiting.await.is_err() {
            empty.insert(title, expression);
        }
    }
    assert!(empty.is_empty(), "panels without data: {empty:#?}");
    let rules = ask(port, "/api/v1/rules").await.unwrap();
    let groups = rules["data"]["groups"].as_array().unwrap();
    let rules: Vec<_> = groups.iter().flat_map(|of| of["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 20, "{rules:?}");
    let failing: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(failing.is_empty(), "{failing:#?}");
    let page = ask_metrics(&manager, &token).await;
    check_metrics(&page, &folder);
    assert!(page.lines().filter(|line| !line.starts_with('#')).count() < 3000);
    drop(prometheus);
}

async fn ask_metrics(manager: &Process, token: &str) -> String {
    let credentials = kube::config::AuthInfo {
        token: Some(token.to_owned().into()),
        ..kube::config::AuthInfo::default()
    };
    let request = http::Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = tests::process::ask(manager.port(), credentials, request).await.unwrap();
    assert_eq!(answer.0, 200, "{}", answer.1);
    answer.1
}
