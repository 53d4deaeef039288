//! A control plane that serves the kinds of the sample, and the test's own hands on them.

use std::path::Path;
use std::time::Duration;

use client::{ClientOptions, Clients, Profile, RequestMetrics};
use informer::MANAGED_BY;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_api::Resource;
use objects::{ObjectClient, Schema};
use prometheus::Registry;
use sample::{PARCELS, SHIPMENTS, VANS, crds};
use tests::control_plane::{ControlPlane, Options};
use tests::poll::poll;

/// Time limit of one attempt of a write.
const ATTEMPT: Duration = Duration::from_secs(5);

/// A control plane of its own: CRDs and what is left under them would be in others' way.
pub(crate) struct Scene {
    pub(crate) plane: ControlPlane,
    admin: kube::Client,
    clients: Clients,
}

impl Scene {
    /// A scene without any of the sample's kinds.
    pub(crate) async fn bare() -> Self {
        let plane = ControlPlane::start(Options::default()).await.expect("a control plane starts");
        let admin = plane.client().await;
        let clients = clients(&plane.admin_kubeconfig()).await;
        Self { plane, admin, clients }
    }

    /// A scene with all kinds of the sample.
    pub(crate) async fn set() -> Self {
        let scene = Self::bare().await;
        for resource in [SHIPMENTS, PARCELS, VANS] {
            scene.install(&resource).await;
        }
        scene
    }

    /// Installs the CRD of a kind and waits until it is served.
    pub(crate) async fn install(&self, resource: &Resource) {
        let crd = serde_json::from_value(crds::manifest(resource)).unwrap();
        self.crds().create(&PostParams::default(), &crd).await.unwrap();
        let path = resource.collection_path(None);
        poll(&format!("{path} is served"), async || self.list(&path).await).await;
    }

    /// Sets the label of an installed CRD to the name of a product; without a name, removes the label.
    pub(crate) async fn hand_to(&self, resource: &Resource, product: Option<&str>) {
        let name = format!("{}.{}", resource.plural, resource.group);
        let label = serde_json::json!({"metadata": {"labels": {MANAGED_BY: product}}});
        self.crds().patch(&name, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    }

    /// A client of the product's own, without limits.
    pub(crate) fn client(&self) -> kube::Client {
        self.clients.build(Profile::root("test")).unwrap()
    }

    /// Removes the CRD of a kind, and its objects with it.
    pub(crate) async fn remove(&self, resource: &Resource) {
        let name = format!("{}.{}", resource.plural, resource.group);
        self.crds().delete(&name, &DeleteParams::default()).await.unwrap();
        poll(&format!("{name} is gone"), async || {
            self.crds().get_opt(&name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// The objects of a collection; `None` when it is not served.
    pub(crate) async fn list(&self, path: &str) -> Option<Vec<serde_json::Value>> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let mut list: serde_json::Value = self.admin.request(request).await.ok()?;
        serde_json::from_value(list["items"].take()).ok()
    }

    /// Writes as another controller than the sample, past all proxies.
    pub(crate) fn objects<S: Schema>(&self, resource: &Resource) -> ObjectClient<S> {
        objects(&self.clients, resource, "test")
    }

    fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.admin.clone())
    }
}

/// The product's own clients, for this kubeconfig.
pub(crate) async fn clients(kubeconfig: &Path) -> Clients {
    let options = ClientOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        master: None,
        product: "test".to_owned(),
        version: "v0.0.0".to_owned(),
        commit: "0000000".to_owned(),
    };
    let metrics = RequestMetrics::new(&Registry::new()).unwrap();
    Clients::load(&options, &metrics).await.unwrap()
}

/// Objects of one kind, written by this field manager.
pub(crate) fn objects<S: Schema>(
    clients: &Clients,
    resource: &Resource,
    manager: &str,
) -> ObjectClient<S> {
    let client = clients.build(Profile::root(manager)).unwrap();
    ObjectClient::new(client, resource.clone(), manager, ATTEMPT)
}
