//! A real Prometheus, as `scripts/check-deploy` has it: it scrapes with a service account's token, and
//! finds all that the dashboards of the host, of node-ipam and of kubernetes-mixin ask for.

use tests::Process;
use tests::churn::{Churn, Going};
use tests::kubectl::Shell;
use tests::prometheus_server::{JOB, PrometheusServer, check_metrics};
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

const NODES: usize = 5_000;

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

/// Expressions of the dashboard of kubernetes-mixin for kube-controller-manager.
fn mixin() -> Vec<(String, String)> {
    let asked = [
        "up",
        "workqueue_adds_total{name!=''}",
        "workqueue_depth{name!=''}",
        "workqueue_queue_duration_seconds_bucket{name!='',le!=''}",
        "rest_client_requests_total{code=~'2..'}",
        "rest_client_requests_total{code=~'4..'}",
        "rest_client_request_duration_seconds_bucket{verb='POST',le!=''}",
        "rest_client_request_duration_seconds_bucket{verb='GET',le!=''}",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "go_goroutines",
    ];
    asked.map(|it| (it.to_owned(), format!("{it} and on (job, instance) up{{job='{JOB}'}}"))).into()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus: scripts/check-deploy"]
async fn a_real_prometheus_scrapes_with_a_token_and_every_panel_has_data() {
    let scene = Scene::set().await;
    let kubeconfig = scene.cluster.manager_kubeconfig();
    let manager = Process::with_kubeconfig(&kubeconfig)
        .guarded_by(&kubeconfig)
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/11"])
        .args(["--use-service-account-credentials=true"])
        .start();
    manager.line("Controller starting...").await;
    // Rates are shown of what goes on.
    let (calm, going) = (CancellationToken::new(), Going { old: 2, young: 1 });
    let churn = Churn::begin(&scene.client, NODES, going, None).await;
    let churn = tokio::spawn(churn.run(calm.clone()));
    let token = scraper(&Shell::new(scene.cluster.admin_kubeconfig()));
    let prometheus = PrometheusServer::start(&[&manager], &token).await;
    prometheus.shows("host").await;
    prometheus.shows("node-ipam").await;
    prometheus.answers("kubernetes-mixin", &mixin()).await;
    calm.cancel();
    churn.await.unwrap();
    let rules = prometheus.ask("/api/v1/rules").await.unwrap();
    let groups = rules["data"]["groups"].as_array().unwrap();
    let rules: Vec<_> = groups.iter().flat_map(|of| of["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 20, "{rules:?}");
    let failing: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(failing.is_empty(), "{failing:#?}");
    let page = ask_metrics(&manager, &token).await;
    check_metrics(&page);
    let series = page.lines().filter(|line| !line.starts_with('#')).count();
    eprintln!("{series} series with {NODES} Nodes");
    assert!(series < 3000, "Nodes have no series of their own");
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
