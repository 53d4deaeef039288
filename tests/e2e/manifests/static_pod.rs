//! `deploy/static-pod`: the API server takes it, the product takes its arguments, and its probes
//! ask where the product answers.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tests::kubectl::Kubectl;
use tests::programs::workspace;
use tests::temp_dir::TempDir;
use tests::{Process, cluster, poll};

use crate::files::{apply, dry_run, manifest};

const FILE: &str = "deploy/static-pod/infra-controller-manager.yaml";
/// Manifest whose command line the tests of kubeadm's manifest cover.
const REPLACEMENT: &str = "deploy/replacement/kube-controller-manager.yaml";
/// Flags that a test sets itself: files of this machine and free ports.
const OF_THE_TEST: [&str; 6] = [
    "additional-bind-addresses",
    "kubeconfig",
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "bind-address",
    "secure-port",
];

fn pod() -> Pod {
    let [object] = &manifest(FILE)[..] else { panic!("{FILE} holds one object") };
    serde_json::from_value(object.clone()).unwrap()
}

fn container() -> Container {
    let [container] = &pod().spec.unwrap().containers[..] else { panic!("one container") };
    container.clone()
}

fn arguments() -> Vec<String> {
    let command = container().command.unwrap();
    assert_eq!(command[0], "infra-controller-manager");
    command[1..].to_vec()
}

/// The value of a flag, which has to be there.
fn flag(name: &str) -> String {
    let start = format!("--{name}=");
    let arguments = arguments();
    let value = arguments.iter().find_map(|argument| argument.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("--{name} is not in {arguments:?}")).to_owned()
}

/// Startup, liveness, readiness.
fn probes() -> [HTTPGetAction; 3] {
    let container = container();
    [container.startup_probe, container.liveness_probe, container.readiness_probe]
        .map(|probe| probe.unwrap().http_get.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_the_static_pods_and_refuses_a_misspelt_one() {
    let cluster = cluster().await;
    let client = cluster.client().await;
    for file in [FILE, REPLACEMENT] {
        let pod = dry_run(&client, &manifest(file).remove(0)).await.unwrap();
        assert_eq!(pod.metadata.namespace.as_deref(), Some("kube-system"));
    }
    let mut object = manifest(FILE).remove(0);
    object["spec"]["containers"][0]["livenesProbe"] = serde_json::json!({});
    let error = dry_run(&client, &object).await.unwrap_err().to_string();
    assert!(error.contains("livenesProbe"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_product_runs_with_the_arguments_of_the_static_pod_and_its_probes_pass() {
    let cluster = cluster().await;
    let arguments = arguments().into_iter().filter(|argument| {
        !OF_THE_TEST.iter().any(|name| argument.starts_with(&format!("--{name}=")))
    });
    let kubeconfig = cluster.manager_kubeconfig();
    let manager =
        Process::with_kubeconfig(&kubeconfig).guarded_by(&kubeconfig).args(arguments).start();
    for probe in probes() {
        let path = probe.path.unwrap();
        poll(&format!("{path} is 200"), async || {
            manager.get(&path).await.ok().filter(|(status, _)| *status == 200)
        })
        .await;
    }
    assert_eq!(manager.get("/metrics").await.unwrap().0, 403, "who has no right");
    manager.line("Controller starting...").await;
    for line in manager.lines() {
        assert!(!line.starts_with('W') || !line.contains("--"), "{line}");
    }
    manager.terminate();
    assert!(manager.exit(tests::PATIENCE).await.success());
}

/// Prometheus is on another host: what listens at 127.0.0.1 alone is never scraped.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_the_static_pod_at_the_address_of_its_node() {
    const NODE: &str = "127.0.0.2";
    assert_eq!(flag("additional-bind-addresses"), "$(HOST_IP)");
    let env = container().env.unwrap().remove(0);
    let path = env.value_from.unwrap().field_ref.unwrap().field_path;
    assert_eq!((&*env.name, &*path), ("HOST_IP", "status.hostIP"));

    let kubectl = Kubectl::without_crds().await;
    let client = kubectl.plane.client().await;
    kubectl.run("apply -f config/rbac/metrics-reader.yaml");
    kubectl.run("create namespace monitoring");
    kubectl.run("create serviceaccount prometheus-k8s -n monitoring");
    for object in manifest("deploy/prometheus/service-monitor.yaml") {
        if object["kind"] != "ServiceMonitor" {
            apply(&client, &object).await.unwrap();
        }
    }
    let kubeconfig = kubectl.plane.manager_kubeconfig();
    let manager = Process::with_kubeconfig(&kubeconfig)
        .guarded_by(&kubeconfig)
        .args([format!("--additional-bind-addresses={NODE}")])
        .start();
    manager.line("Successfully acquired lease").await;
    let scrape = async |token: &str| {
        let url = format!("https://{NODE}:{}", manager.port()).parse().unwrap();
        let mut config = kube::Config::new(url);
        config.accept_invalid_certs = true;
        config.default_retry = false;
        config.auth_info.token = Some(token.to_owned().into());
        let request = http::Request::get("/metrics").body(kube::client::Body::empty()).unwrap();
        kube::Client::try_from(config).unwrap().send(request).await.unwrap().status().as_u16()
    };
    let token = |account: &str| {
        kubectl.run(&format!("create token {account} -n monitoring")).trim().to_owned()
    };
    assert_eq!(scrape(&token("prometheus-k8s")).await, 200);
    kubectl.run("create serviceaccount stranger -n monitoring");
    assert_eq!(scrape(&token("stranger")).await, 403);
}

/// The kubelet reads a priority from the number, for a static pod.
#[test]
fn the_static_pods_have_the_priority_of_their_class_and_lie_in_folders_of_their_own() {
    for file in [FILE, REPLACEMENT] {
        let pod: Pod = serde_json::from_value(manifest(file).remove(0)).unwrap();
        let spec = pod.spec.unwrap();
        assert_eq!(spec.priority_class_name.as_deref(), Some("system-node-critical"), "{file}");
        assert_eq!(spec.priority, Some(2_000_001_000), "{file}");
        let folder = workspace().join(file);
        let yaml = fs::read_dir(folder.parent().unwrap()).unwrap().filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|it| it == "yaml")
        });
        assert_eq!(yaml.count(), 1, "`cp *.yaml` must not start another program");
    }
}

#[test]
fn the_probes_ask_at_the_address_and_port_of_the_flags() {
    let ports = container().ports.unwrap();
    for probe in probes() {
        assert_eq!(probe.scheme.as_deref(), Some("HTTPS"));
        assert_eq!(probe.host, Some(flag("bind-address")));
        let IntOrString::String(name) = &probe.port else { panic!("a port by name") };
        let port = ports.iter().find(|port| port.name.as_ref() == Some(name)).unwrap();
        assert_eq!(port.container_port.to_string(), flag("secure-port"));
    }
    let [startup, liveness, readiness] = probes().map(|probe| probe.path.unwrap());
    assert_eq!([&*startup, &liveness, &readiness], ["/livez", "/livez", "/readyz"]);
}

#[test]
fn the_kubeconfig_lies_in_a_read_only_mount_and_nothing_else_is_mounted() {
    let [mount] = &container().volume_mounts.unwrap()[..] else { panic!("one mount") };
    assert_eq!(mount.read_only, Some(true));
    let kubeconfig = flag("kubeconfig");
    for other in ["authentication-kubeconfig", "authorization-kubeconfig"] {
        assert_eq!(flag(other), kubeconfig);
    }
    assert_eq!(Path::new(&kubeconfig).parent(), Some(Path::new(&mount.mount_path)));
    let [volume] = &pod().spec.unwrap().volumes.unwrap()[..] else { panic!("one volume") };
    assert_eq!(volume.name, mount.name);
    let source = volume.host_path.clone().unwrap();
    // A mounted file would stay the old one when it is replaced.
    assert_eq!(
        (source.path, source.type_.as_deref()),
        (mount.mount_path.clone(), Some("Directory"))
    );
}

#[test]
fn the_replacement_has_no_capability_and_no_private_key_in_reach() {
    let object = manifest(REPLACEMENT).remove(0);
    let spec = serde_json::from_value::<Pod>(object).unwrap().spec.unwrap();
    let context = spec.containers[0].security_context.clone().unwrap();
    assert_eq!(context.allow_privilege_escalation, Some(false));
    assert_eq!(context.read_only_root_filesystem, Some(true));
    assert_eq!(context.capabilities.unwrap().drop.unwrap(), ["ALL"]);
    let volumes = spec.volumes.unwrap();
    for path in volumes.iter().map(|volume| &volume.host_path.as_ref().unwrap().path) {
        let is_file = [".crt", ".conf"].iter().any(|end| path.ends_with(end));
        assert!(is_file, "{path} is no single file without a key of the cluster");
    }
}

#[test]
fn the_container_runs_without_root_and_the_grace_is_longer_than_the_shutdown() {
    let spec = pod().spec.unwrap();
    let context = spec.security_context.unwrap();
    assert_eq!(context.run_as_non_root, Some(true));
    let container = container().security_context.unwrap();
    assert_eq!(container.allow_privilege_escalation, Some(false));
    assert_eq!(container.read_only_root_filesystem, Some(true));
    assert_eq!(container.capabilities.unwrap().drop.unwrap(), ["ALL"]);
    // 10 s for the controllers, 10 s for the release of the lease, 2 s each for events and serving.
    assert!(spec.termination_grace_period_seconds.unwrap() >= 24);
}

/// The lines of a systemd unit with this key.
fn unit(kind: &str, key: &str) -> Vec<String> {
    let path = format!("deploy/static-pod/infra-controller-manager-kubeconfig.{kind}");
    let text = fs::read_to_string(workspace().join(path)).unwrap();
    let key = format!("{key}=");
    text.lines().filter_map(|line| line.strip_prefix(&key)).map(str::to_owned).collect()
}

/// Copies the kubeconfig as systemd does when kubeadm has written the original, below another
/// folder and as the user of the test.
fn copy(etc: &Path) {
    let id = Command::new("id").arg("-u").output().unwrap();
    let user = String::from_utf8(id.stdout).unwrap();
    for line in unit("service", "ExecStart") {
        let line = line.replace("/etc/kubernetes", &etc.display().to_string());
        let line = line.replace("65532", user.trim());
        let done = Command::new("sh").args(["-ec", &line]).status().unwrap();
        assert!(done.success(), "{line}");
    }
}

#[test]
fn the_units_copy_kubeadms_kubeconfig_to_where_the_pod_reads_it_for_the_pods_user() {
    let original = "/etc/kubernetes/controller-manager.conf";
    assert_eq!(unit("path", "PathChanged"), [original]);
    let lines = unit("service", "ExecStart");
    assert!(lines[1].contains(original), "{lines:?}");
    assert!(lines.last().unwrap().ends_with(&format!(" {}", flag("kubeconfig"))), "{lines:?}");
    let user = pod().spec.unwrap().security_context.unwrap().run_as_user.unwrap();
    assert!(lines[1].contains(&format!("-m 0400 -o {user} ")), "{lines:?}");
}

/// kubeadm writes the file in place; other tools replace it by a rename.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_kubeconfig_reaches_the_running_process_without_a_person() {
    const END: &str = "icm_client_certificate_expiration_seconds";
    let cluster = cluster().await;
    let dir = TempDir::new("renewal").unwrap();
    let etc = dir.join("kubernetes");
    fs::create_dir(&etc).unwrap();
    let kubeconfig = |days: u32| {
        let life = Duration::from_secs(u64::from(days) * 24 * 3600);
        let made = cluster.client_certificate("admin", &["system:masters"], life).unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.join(format!("{days}.{name}"));
            fs::write(&path, text).unwrap();
            path
        };
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {
                "server": cluster.url(), "certificate-authority": cluster.dir().join("ca.crt"),
            }}],
            "users": [{"name": "u", "user": {
                "client-certificate": file("crt", &made.certificate_pem),
                "client-key": file("key", &made.key_pem),
            }}],
        })
        .to_string()
    };
    let original = etc.join("controller-manager.conf");
    fs::write(&original, kubeconfig(10)).unwrap();
    copy(&etc);
    let manager =
        Process::with_kubeconfig(&etc.join("infra-controller-manager/kubeconfig")).start();
    let day = 24.0 * 3600.0;
    let first = manager.until_metric(END, &[], |end| end > 0.0).await;
    fs::write(&original, kubeconfig(20)).unwrap();
    copy(&etc);
    let second = manager.until_metric(END, &[], |end| end > first + 9.0 * day).await;
    fs::write(dir.join("new"), kubeconfig(30)).unwrap();
    fs::rename(dir.join("new"), &original).unwrap();
    copy(&etc);
    manager.until_metric(END, &[], |end| end > second + 9.0 * day).await;
    assert!(manager.is_running());
}
