//! A member cluster: a real API server with a service account for the prober.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use serde_json::{Value, json};
use tests::control_plane::{ControlPlane, Options};

const ACCOUNT: &str = "prober";

pub(crate) struct Member {
    pub(crate) plane: ControlPlane,
}

impl Member {
    pub(crate) async fn start() -> Self {
        let plane = ControlPlane::start(Options::default()).await.expect("a member starts");
        Self { plane }
    }

    /// A token of a new service account, which has the rights that everybody has.
    pub(crate) async fn token(&self) -> String {
        let accounts = self.accounts().await;
        let metadata = ObjectMeta { name: Some(ACCOUNT.to_owned()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let made = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await;
        made.unwrap().status.unwrap().token.unwrap()
    }

    /// The service account may do everything.
    pub(crate) async fn empower(&self) {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}],
        });
        self.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    }

    pub(crate) async fn create_node(&self, name: &str, zone: &str, region: &str) {
        let labels =
            json!({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": region});
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        self.create("/api/v1/nodes", &node).await;
    }

    async fn create(&self, path: &str, object: &Value) {
        let request =
            http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
        let _made: Value = self.plane.client().await.request(request).await.unwrap();
    }

    /// The tokens of the service account are good no more.
    pub(crate) async fn revoke(&self) {
        self.accounts().await.delete(ACCOUNT, &DeleteParams::default()).await.unwrap();
    }

    async fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.plane.client().await, "default")
    }
}
