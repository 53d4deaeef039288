//! A real Prometheus, as `scripts/check-deploy` has it: it scrapes with a service account's token, and
//! finds all that the dashboards of the host and of node-ipam ask for.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use tests::kubectl::Shell;
use tests::nodes::names;
use tests::prometheus_server::PrometheusServer;
use tests::temp_dir::TempDir;
use tests::{Process, create_nodes, mk_node};

use crate::scene::Scene;

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

fn check_metrics(page: &str) {
    let program = std::env::var_os("PROMTOOL").expect("scripts/check-deploy sets $PROMTOOL");
    let folder = TempDir::new("metrics").unwrap();
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
    let prometheus = PrometheusServer::start(&[&manager], &token).await;
    prometheus.shows("host").await;
    prometheus.shows("node-ipam").await;
    let rules = prometheus.ask("/api/v1/rules").await.unwrap();
    let groups = rules["data"]["groups"].as_array().unwrap();
    let rules: Vec<_> = groups.iter().flat_map(|of| of["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 20, "{rules:?}");
    let failing: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(failing.is_empty(), "{failing:#?}");
    let page = ask_metrics(&manager, &token).await;
    check_metrics(&page);
    assert!(page.lines().filter(|line| !line.starts_with('#')).count() < 3000);
}

async fn ask_metrics(manager: &Process, token: &str) -> String {
    let credentials = kube::config::AuthInfo {
        token: Some(token.to_owned().into()),
        ..kube::config::AuthInfo::default()
    };
    let request = http::Request::get("/metrics").body(kube::client::Body::empty()).unwrap();
    let answer = tests::process::ask(manager.port(), credentials, request).await.unwrap();
    assert_eq!(answer.0, 200, "{}", answer.1);
    answer.1
}
