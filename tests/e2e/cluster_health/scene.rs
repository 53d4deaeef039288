//! The managing control plane with its CRDs, the product, and the test's own hands on the objects.

use kube::Client;
use serde_json::{Value, json};
use tests::kubectl::{FEDERATION, IDENTITY, Kubectl, hub};
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::pool::Lent;
use tests::process::Process;

pub(crate) struct Scene {
    // Fields drop in this order.
    _manager: Discreet,
    pub(crate) hub: Lent<Kubectl>,
    client: Client,
    planted: Planted,
}

impl Scene {
    /// A scene with a probe period of one second, and an outage published after three failures.
    pub(crate) async fn set() -> Self {
        Self::set_with(&[]).await
    }

    /// Like [`Self::set`], with further flags.
    pub(crate) async fn set_with(flags: &[&str]) -> Self {
        let hub = hub().await;
        let client = hub.plane.client().await;
        let kubeconfig = hub.plane.kubeconfig(IDENTITY, &[]).unwrap();
        let manager = Process::with_kubeconfig(&kubeconfig)
            .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=4"])
            .args(["--cluster-health-flavours=kubefed"])
            .args(["--cluster-health-period=1s", "--cluster-health-timeout=900ms"])
            .args(["--cluster-health-confirm-interval=1s"])
            .args(flags)
            .start();
        let planted = Planted::default();
        Self { _manager: Discreet::new(manager, &planted, &hub), hub, client, planted }
    }

    /// Output of kubectl.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.hub.run(arguments)
    }

    /// Creates a Secret. No output may contain its values, except certificates.
    pub(crate) async fn create_secret(&self, name: &str, data: &Value) {
        self.plant(data);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data,
        });
        self.send("POST", &secrets(), &secret).await;
    }

    pub(crate) async fn change_secret(&self, name: &str, data: &Value) {
        self.plant(data);
        let patch = json!({ "stringData": data });
        self.send("PATCH", &format!("{}/{name}", secrets()), &patch).await;
    }

    fn plant(&self, data: &Value) {
        let texts = data.as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str());
        for text in texts.filter(|text| !text.contains("BEGIN CERTIFICATE")) {
            self.planted.plant(text);
        }
    }

    /// Adds a text that no output may contain.
    pub(crate) fn plant_text(&self, secret: &str) {
        self.planted.plant(secret);
    }

    pub(crate) async fn create_cluster(&self, name: &str, spec: &Value) {
        let cluster = json!({
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"name": name}, "spec": spec,
        });
        self.send("POST", &clusters(), &cluster).await;
    }

    pub(crate) async fn change_cluster(&self, name: &str, spec: &Value) {
        let patch = json!({ "spec": spec });
        self.send("PATCH", &format!("{}/{name}", clusters()), &patch).await;
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
    pub(crate) fn states(&self) -> (String, String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (ready, offline) = (self.of("Ready"), self.of("Offline"));
        (text(&ready["status"]), text(&offline["status"]), text(&ready["reason"]))
    }

    pub(crate) fn message(&self) -> String {
        self.of("Ready")["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.states() == ("True".into(), "False".into(), "ClusterReady".into())
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.states() == ("False".into(), "True".into(), "ClusterNotReachable".into())
    }

    pub(crate) fn is_not_ready(&self) -> bool {
        self.states() == ("False".into(), "False".into(), "ClusterNotReady".into())
    }

    pub(crate) fn is_malformed(&self) -> bool {
        self.states() == ("False".into(), "Unknown".into(), "MalformedClusterConfig".into())
    }
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{FEDERATION}/secrets")
}

fn clusters() -> String {
    format!("/apis/core.kubefed.io/v1beta1/namespaces/{FEDERATION}/kubefedclusters")
}
