//! The paths of the serving port.

use std::collections::BTreeSet;
use std::fs;

use kube::client::Body;
use kube::config::AuthInfo;
use serde_json::Value;
use tests::Process;
use tests::process::ask;
use tests::programs::workspace;

use crate::scene::{Scene, until_readyz};

/// Prefixes of our metrics, and of those that Kubernetes' components share.
const PREFIXES: [&str; 7] =
    ["icm_", "node_ipam_", "leader_", "workqueue_", "rest_client_", "process_", "go_"];

async fn leader(scene: &Scene) -> Process {
    let manager = scene.start("--use-service-account-credentials=true").await;
    until_readyz(&manager, 200).await;
    manager
}

#[tokio::test(flavor = "multi_thread")]
async fn each_health_path_has_its_checks() {
    let scene = Scene::set().await;
    let manager = leader(&scene).await;
    let everywhere = [
        "ping",
        "leaderElection",
        "node-ipam-controller",
        "cluster-health-controller",
        "cluster-api-infrastructure-controller",
    ];
    let ready = ["informer-sync", "shutdown", "apiserver-reachable"];
    for (endpoint, checks) in [
        ("livez", everywhere.to_vec()),
        ("healthz", everywhere.to_vec()),
        ("readyz", [&everywhere[..], &ready[..]].concat()),
    ] {
        let (status, body) = manager.get(&format!("/{endpoint}?verbose")).await.unwrap();
        assert_eq!(status, 200, "{body}");
        let mut lines: Vec<_> = body.lines().collect();
        assert_eq!(lines.pop(), Some(&*format!("{endpoint} check passed")));
        let mut wanted: Vec<_> = checks.iter().map(|check| format!("[+]{check} ok")).collect();
        lines.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(lines, wanted, "{endpoint}");

        assert_eq!(manager.get(&format!("/{endpoint}")).await.unwrap(), (200, "ok".into()));
        for check in checks {
            let path = format!("/{endpoint}/{check}");
            assert_eq!(manager.get(&path).await.unwrap(), (200, "ok".into()), "{path}");
        }
        let unknown = format!("/{endpoint}/no-such-check");
        assert_eq!(manager.get(&unknown).await.unwrap().0, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_the_flag_asks_for_is_the_one_that_is_served() {
    let scene = Scene::set().await;
    let asked = format!("{}-custom.7", env!("CARGO_PKG_VERSION"));
    let manager = scene.start(&format!("--version=v{asked}")).await;
    let (status, version) = manager.get("/version").await.unwrap();
    assert_eq!(status, 200);
    let version: Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["gitVersion"], format!("v{asked}"));
    let metrics = manager.metrics().await;
    assert_eq!(metrics.value("icm_build_info", &[("version", &asked)]), Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn excluded_checks_are_named_and_unknown_ones_warned_about() {
    let scene = Scene::set().await;
    let manager = leader(&scene).await;
    let path = "/healthz?verbose&exclude=ping&exclude=bogus";
    let (status, body) = manager.get(path).await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(body.lines().next(), Some("[+]ping excluded: ok"), "{body}");
    let last: Vec<_> = body.lines().rev().take(2).collect();
    let warning = "warn: some health checks cannot be excluded: no matches for \"bogus\"";
    assert_eq!(last, ["healthz check passed", warning], "{body}");
}

/// The metrics in expressions of PromQL.
fn metrics_in(expressions: &[String]) -> BTreeSet<String> {
    let words = expressions
        .iter()
        .flat_map(|expression| expression.split(|c: char| !c.is_ascii_lowercase() && c != '_'));
    let is_metric = |word: &&str| PREFIXES.iter().any(|it| word.starts_with(it));
    words.filter(is_metric).map(str::to_owned).collect()
}

/// The expressions of the dashboards of the process and of node-ipam.
fn of_dashboards() -> Vec<String> {
    let mut expressions = Vec::new();
    for name in ["host", "node-ipam"] {
        let path = workspace().join(format!("deploy/grafana/{name}.json"));
        let board: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        for panel in board["panels"].as_array().unwrap() {
            let targets = panel["targets"].as_array().unwrap();
            expressions.extend(targets.iter().map(|it| it["expr"].as_str().unwrap().to_owned()));
        }
    }
    assert!(expressions.len() > 30, "{expressions:?}");
    expressions
}

/// The expressions of `deploy/prometheus/rules/process.yaml`.
fn of_alerts() -> Vec<String> {
    let path = workspace().join("deploy/prometheus/rules/process.yaml");
    let rules: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let expressions: Vec<_> = rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
    assert!(expressions.len() > 9, "{expressions:?}");
    expressions
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_the_names_that_dashboards_ask_for_and_other_paths_are_404() {
    let scene = Scene::set().await;
    let manager = leader(&scene).await;
    scene.serves("a").await;
    let metrics = manager.metrics().await;
    let names = metrics.names();
    for name in [
        "icm_build_info",
        "icm_controller_restarts_total",
        "icm_event_dropped_total",
        "icm_informer_synced",
        "icm_lease_renew_duration_seconds_count",
        "icm_panics_total",
        "leader_election_master_status",
        "leader_election_slowpath_total",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "rest_client_request_duration_seconds_bucket",
        "rest_client_request_size_bytes_bucket",
        "rest_client_requests_total",
        "rest_client_response_size_bytes_bucket",
        "running_managed_controllers",
        "version_info",
        "workqueue_adds_total",
        "workqueue_depth",
        "workqueue_queue_duration_seconds_bucket",
    ] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    for (whose, expressions) in [("a dashboard", of_dashboards()), ("an alert", of_alerts())] {
        let asked = metrics_in(&expressions);
        assert!(asked.len() > 7, "{asked:?}");
        for name in asked {
            assert!(names.contains(&&*name), "{whose} asks for {name}, missing in {names:?}");
        }
    }
    let bound = [("name", "cidrallocator_node"), ("le", "1e-08")];
    assert!(
        metrics.value("workqueue_work_duration_seconds_bucket", &bound).is_some(),
        "as stock's"
    );
    let lease = [("name", "infra-controller-manager")];
    assert_eq!(metrics.value("leader_election_master_status", &lease), Some(1.0));
    assert!(!names.contains(&"kubernetes_build_info"), "it would raise KubeVersionMismatch");

    let (status, slis) = manager.get("/metrics/slis").await.unwrap();
    assert_eq!(status, 200);
    assert!(slis.contains("kubernetes_healthcheck{name=\"ping\",type=\"readyz\"} 1"), "{slis}");
    let (status, version) = manager.get("/version").await.unwrap();
    assert_eq!(status, 200);
    let version: Value = serde_json::from_str(&version).unwrap();
    assert!(version.is_object(), "{version}");
    for path in ["/", "/metrics/", "/healthz/", "/debug/pprof/", "/api", "/livez/../metrics"] {
        let (status, body) = manager.get(path).await.unwrap();
        assert_eq!(status, 404, "{path}: {body}");
        assert!(!body.contains("workqueue"), "{path}: {body}");
    }
}

/// Requests the document of this kind.
async fn document(manager: &Process, path: &str, kind: &str) -> Value {
    let accept = format!("application/json;as={kind};v=v1beta1;g=config.k8s.io");
    let request = http::Request::get(path).header(http::header::ACCEPT, accept);
    let request = request.body(Body::empty()).unwrap();
    let (status, body) = ask(manager.port(), AuthInfo::default(), request).await.unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_about_the_process_show_its_flags_and_set_its_log_level() {
    let scene = Scene::set().await;
    let manager = scene
        .start("--disabled-metrics=icm_build_info --additional-bind-addresses=127.0.0.2")
        .await;
    let (_, config) = manager.get("/configz").await.unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let of_product = &config["infra-controller-manager"];
    assert_eq!(of_product["flags"]["cluster-cidr"], "10.0.0.0/12");
    assert_eq!(of_product["controllers"][0], "node-ipam-controller");
    let (_, flags) = manager.get("/flagz").await.unwrap();
    assert!(flags.starts_with("\ninfra-controller-manager flagz\nWarning: "), "{flags}");
    assert!(flags.contains("\ncluster-cidr:10.0.0.0/12\n"), "{flags}");
    let (_, state) = manager.get("/debug/controllers/node-ipam-controller/").await.unwrap();
    for part in
        ["node-ipam-controller\nhealth: ok\n", "\nqueue cidrallocator_node: ", "\ncache nodes: "]
    {
        assert!(state.contains(part), "{part:?} is missing in {state}");
    }
    let (_, status) = manager.get("/statusz").await.unwrap();
    for part in ["Started: ", "Up: ", "Binary version: v", " /metrics /metrics/slis "] {
        assert!(status.contains(part), "{part} is missing in {status}");
    }
    let flags = document(&manager, "/flagz", "Flagz").await;
    assert_eq!(flags["flags"]["disabled-metrics"], "[icm_build_info]");
    assert_eq!(document(&manager, "/statusz", "Statusz").await["kind"], "Statusz");
    let metrics = manager.metrics().await;
    assert!(!metrics.names().contains(&"icm_build_info"));
    let second = format!("Serving securely on 127.0.0.2:{}", manager.port());
    manager.line(&second).await;

    let put = async |level: &str| {
        let body = Body::from(level.as_bytes().to_vec());
        let request = http::Request::put("/debug/flags/v").body(body).unwrap();
        ask(manager.port(), AuthInfo::default(), request).await.unwrap()
    };
    let traced = |line: &str| line.contains("attempt.rs") && line.contains("Request");
    assert!(!manager.lines().iter().any(|line| traced(line)));
    let set = "successfully set klog.logging.verbosity to 10\n";
    assert_eq!(put("10").await, (200, set.to_owned()));
    manager.line_where("a line of a request", traced).await;
    assert_eq!(put("ten").await.0, 400);
}
