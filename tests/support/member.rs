//! Member clusters: API servers that are lent to tests, and accounts at them.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::Value;

use crate::control_plane::{ControlPlane, Options};
use crate::pool::{Lent, Pool};
use crate::programs::workspace;

const NAMESPACE: &str = "default";

/// A member for one test, without Nodes and Pods. Accounts of other tests may still be there: they
/// have names of their own.
pub async fn member() -> Lent<ControlPlane> {
    static MEMBERS: Pool<ControlPlane> = Pool::new();
    let make = async || ControlPlane::start(Options::default()).await.expect("a member starts");
    MEMBERS.lend(make, clean).await
}

async fn clean(member: &ControlPlane) {
    let client = member.client().await;
    let (all, at_once) = (ListParams::default(), DeleteParams::default().grace_period(0));
    let nodes = Api::<Node>::all(client.clone()).delete_collection(&at_once, &all).await;
    nodes.expect("Nodes are deleted");
    let pods = Api::<Pod>::namespaced(client, NAMESPACE).delete_collection(&at_once, &all).await;
    pods.expect("Pods are deleted");
}

fn member_role() -> ClusterRole {
    let path = workspace().join("config/member/rbac.yaml");
    let text = std::fs::read_to_string(path).expect("the manifest is there");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
    let role = objects.into_iter().find(|object| object["kind"] == "ClusterRole");
    serde_json::from_value(role.expect("it has a role")).expect("the role is whole")
}

/// A service account of a member, at first with the rights that everybody has.
pub struct Account {
    client: Client,
    /// In the namespace `default`.
    pub name: String,
    /// Good for an hour.
    pub token: String,
}

impl Account {
    /// A new one.
    pub async fn of(member: &ControlPlane) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("prober-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let client = member.client().await;
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE);
        accounts.create(&PostParams::default(), &account).await.expect("an account is made");
        let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let made = accounts.create_token_request(&name, &PostParams::default(), &request).await;
        let token = made.expect("a token is given").status.expect("with a status").token;
        Self { client, name, token: token.expect("in its status") }
    }

    /// Grants the account the permissions of `config/member/rbac.yaml`, and no more.
    pub async fn empower(&self) {
        let role = member_role();
        let roles = Api::<ClusterRole>::all(self.client.clone());
        match roles.create(&PostParams::default(), &role).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            made => drop(made.expect("a role is made")),
        }
        self.bind(role.metadata.name.as_deref().expect("a name")).await;
    }

    /// Grants the account all permissions, as kubeconfigs of Cluster API have them.
    pub async fn make_admin(&self) {
        self.bind("cluster-admin").await;
    }

    async fn bind(&self, role: &str) {
        let binding = ClusterRoleBinding {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".into()),
                kind: "ClusterRole".into(),
                name: role.to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".into(),
                name: self.name.clone(),
                namespace: Some(NAMESPACE.into()),
                ..Subject::default()
            }]),
        };
        self.bindings().create(&PostParams::default(), &binding).await.expect("a right is given");
    }

    /// Takes all permissions from the account, except those of every user.
    pub async fn disempower(&self) {
        let deleted = self.bindings().delete(&self.name, &DeleteParams::default()).await;
        deleted.expect("a right is taken away");
    }

    /// Deletes the account, which makes its tokens invalid.
    pub async fn delete(&self) {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), NAMESPACE);
        let deleted = accounts.delete(&self.name, &DeleteParams::default()).await;
        deleted.expect("an account is deleted");
    }

    fn bindings(&self) -> Api<ClusterRoleBinding> {
        Api::all(self.client.clone())
    }
}
