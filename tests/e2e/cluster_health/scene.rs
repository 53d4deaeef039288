//! The managing control plane with its CRDs, the product, and the test's own hands on the objects.

use std::path::Path;
use std::process::Command;

use kube::Client;
use serde_json::{Value, json};
use tests::control_plane::{ControlPlane, Options};
use tests::poll::poll;
use tests::process::Process;
use tests::programs::{control_plane_binaries, workspace};

const NAMESPACE: &str = "kube-federation-system";
/// Has the rights of `config/rbac/cluster-health.yaml` and no others.
const IDENTITY: &str = "system:serviceaccount:kube-system:infra-controller-manager";

pub(crate) struct Scene {
    // Fields drop in this order.
    pub(crate) manager: Process,
    pub(crate) plane: ControlPlane,
    client: Client,
}

impl Scene {
    /// With members probed every second, and what they say believed at the third failure.
    pub(crate) async fn set() -> Self {
        let plane = ControlPlane::start(Options::default()).await.expect("a control plane starts");
        let client = plane.client().await;
        let kubeconfig = plane.admin_kubeconfig();
        kubectl(&kubeconfig, "apply -f config/crd");
        kubectl(&kubeconfig, "wait --for=condition=established --timeout=60s crd --all");
        kubectl(&kubeconfig, &format!("create namespace {NAMESPACE}"));
        kubectl(&kubeconfig, "apply -f config/rbac/cluster-health.yaml");
        let kubeconfig = plane.kubeconfig(IDENTITY, &[]).unwrap();
        let manager = Process::with_kubeconfig(&kubeconfig)
            .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=4"])
            .args(["--cluster-health-period=1s", "--cluster-health-timeout=900ms"])
            .args(["--cluster-health-confirm-interval=1s"])
            .start();
        Self { manager, plane, client }
    }

    /// What kubectl prints.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        kubectl(&self.plane.admin_kubeconfig(), arguments)
    }

    pub(crate) async fn create_secret(&self, name: &str, data: &Value) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data,
        });
        self.send("POST", &secrets(), &secret).await;
    }

    pub(crate) async fn change_secret(&self, name: &str, data: &Value) {
        let patch = json!({ "stringData": data });
        self.send("PATCH", &format!("{}/{name}", secrets()), &patch).await;
    }

    pub(crate) async fn create_cluster(&self, name: &str, spec: &Value) {
        let cluster = json!({
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"name": name}, "spec": spec,
        });
        self.send("POST", &clusters(), &cluster).await;
    }

    pub(crate) async fn delete_cluster(&self, name: &str) {
        self.send("DELETE", &format!("{}/{name}", clusters()), &json!({})).await;
    }

    /// The object, as soon as `wanted` holds of its conditions, by their types.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Conditions) -> bool,
    ) -> Conditions {
        let question = format!("{name} is {what}");
        poll(&question, async || {
            let cluster = self.get(&format!("{}/{name}", clusters())).await?;
            let conditions = Conditions(cluster["status"]["conditions"].clone());
            wanted(&conditions).then_some(conditions)
        })
        .await
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        let cluster = self.get(&format!("{}/{name}", clusters())).await;
        cluster.map(|cluster| cluster["status"].clone()).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.client.request(request).await.ok()
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, kind);
        let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
        self.client
            .request(request)
            .await
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

/// The conditions of a member.
#[derive(Clone, Debug)]
pub(crate) struct Conditions(Value);

impl Conditions {
    pub(crate) fn of(&self, kind: &str) -> Value {
        let all = self.0.as_array().into_iter().flatten();
        all.into_iter().find(|it| it["type"] == kind).cloned().unwrap_or_default()
    }

    /// Statuses of Ready and Offline, and the reason of Ready.
    pub(crate) fn told(&self) -> (String, String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (ready, offline) = (self.of("Ready"), self.of("Offline"));
        (text(&ready["status"]), text(&offline["status"]), text(&ready["reason"]))
    }

    pub(crate) fn message(&self) -> String {
        self.of("Ready")["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.told() == ("True".into(), "False".into(), "ClusterReady".into())
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.told() == ("False".into(), "True".into(), "ClusterNotReachable".into())
    }

    pub(crate) fn is_not_ready(&self) -> bool {
        self.told() == ("False".into(), "False".into(), "ClusterNotReady".into())
    }

    pub(crate) fn is_malformed(&self) -> bool {
        self.told() == ("False".into(), "Unknown".into(), "MalformedClusterConfig".into())
    }
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

fn clusters() -> String {
    format!("/apis/core.kubefed.io/v1beta1/namespaces/{NAMESPACE}/kubefedclusters")
}

fn kubectl(kubeconfig: &Path, arguments: &str) -> String {
    let program = control_plane_binaries(&["kubectl"]).unwrap().remove(0);
    let output = Command::new(program)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(arguments.split_whitespace())
        .current_dir(workspace())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
