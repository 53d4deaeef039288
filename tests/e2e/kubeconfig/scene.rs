//! The words that the tests are written in: a control plane, files, kubeconfigs, the product.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tests::control_plane::{ADMIN_GROUP, Identity};
use tests::temp_dir::TempDir;
use tests::{Cluster, Process, cluster, delete_nodes, mk_node, poll};

/// The shortest timings with which no leader loses the lease when the machine stands still for 4 s.
pub(crate) const SHORT_LEASE: &str = "--leader-elect-lease-duration=6s \
     --leader-elect-renew-deadline=5s --leader-elect-retry-period=500ms";

pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    pub(crate) dir: TempDir,
}

impl Scene {
    pub(crate) async fn set() -> Self {
        let cluster = cluster().await;
        let client = cluster.client().await;
        Self { cluster, client, dir: TempDir::new("kubeconfig").unwrap() }
    }

    /// Writes a file; its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.join(name);
        // As a careful rotation does it: never half a file.
        let half = self.dir.join(format!(".{name}"));
        fs::write(&half, text).unwrap();
        fs::rename(half, &path).unwrap();
        path.display().to_string()
    }

    /// Writes a program; its path.
    pub(crate) fn program(&self, name: &str, script: &str) -> String {
        let path = self.file(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The cluster's CA, as a file.
    pub(crate) fn ca(&self) -> String {
        self.file("ca.crt", &fs::read_to_string(self.cluster.dir().join("ca.crt")).unwrap())
    }

    /// An administrator's certificate for so long.
    pub(crate) fn certificate(&self, life: Duration) -> Identity {
        self.cluster.client_certificate("admin", &[ADMIN_GROUP], life).unwrap()
    }

    /// The fields of the cluster as they usually are.
    pub(crate) fn server(&self) -> Value {
        json!({"server": self.cluster.url(), "certificate-authority": self.ca()})
    }

    /// A kubeconfig with this cluster and user.
    pub(crate) fn kubeconfig(&self, cluster: &Value, user: &Value) -> PathBuf {
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        });
        self.file("kubeconfig", &file.to_string()).into()
    }

    /// A token of a service account that may do everything.
    pub(crate) async fn token(&self) -> String {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), "kube-system");
        let account: ServiceAccount =
            serde_json::from_value(json!({"metadata": {"name": "product"}})).unwrap();
        let post = PostParams::default();
        if accounts.get_opt("product").await.unwrap().is_none() {
            accounts.create(&post, &account).await.unwrap();
        }
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": {"name": "test-product"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "product",
                          "namespace": "kube-system"}],
        }))
        .unwrap();
        // It stays with the lent control plane, and may be there from an earlier test.
        drop(Api::<ClusterRoleBinding>::all(self.client.clone()).create(&post, &binding).await);
        let request: TokenRequest =
            serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
        let answer = accounts.create_token_request("product", &post, &request).await.unwrap();
        answer.status.unwrap().token.unwrap()
    }

    /// The product with this kubeconfig, leading.
    pub(crate) async fn leads(&self, cluster: &Value, user: &Value) -> Process {
        let manager = launch(&self.kubeconfig(cluster, user), "").start();
        manager.line("Controller starting...").await;
        manager
    }

    /// The product works on this kubeconfig: it leads and serves a Node.
    pub(crate) async fn works(&self, cluster: &Value, user: &Value) {
        let _manager = self.leads(cluster, user).await;
        self.serves("a").await;
    }

    /// A Node created now gets its CIDR.
    pub(crate) async fn serves(&self, name: &str) {
        mk_node(name).create(&self.client).await;
        let nodes = Api::<Node>::all(self.client.clone());
        poll("the Node has its CIDR", async || {
            let node = nodes.get(name).await.unwrap();
            node.spec.and_then(|spec| spec.pod_cidr)
        })
        .await;
        delete_nodes(&self.client, [name]).await;
    }
}

/// The product's command line on this kubeconfig.
pub(crate) fn launch(kubeconfig: &std::path::Path, args: &str) -> tests::process::Launch {
    Process::with_kubeconfig(kubeconfig)
        .args(["--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/12", "--v=2"])
        .args(args.split_whitespace())
}

/// PEM as the `…-data` fields of a kubeconfig have it.
pub(crate) fn base64(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}
