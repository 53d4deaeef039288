//! A management cluster with the kinds of Cluster API, the product in it, and the test's own hands.

use std::ops::Deref;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::kubectl::{IDENTITY, Kubectl};
use tests::poll::poll;
use tests::pool::{Lent, Pool};
use tests::process::Launch;
use tests::{PATIENCE, Process};

/// Full names: other groups have Clusters and Machines, too.
pub(crate) const CLUSTERS: &str = "clusters.v1alpha2.cluster.x-k8s.io";
pub(crate) const AWS_CLUSTERS: &str = "awsclusters.v1alpha2.infrastructure.cluster.x-k8s.io";
pub(crate) const MACHINES: &str = "machines.v1alpha2.cluster.x-k8s.io";
const KINDS: &str = "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,\
                     awsclusters.infrastructure.cluster.x-k8s.io,secrets,events";
/// Kinds without a namespace.
const IDENTITIES: &str =
    "awsclustercontrolleridentities,awsclusterroleidentities,awsclusterstaticidentities";
pub(crate) const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
/// Our kinds that the core does not have.
pub(crate) const OUR_KINDS: [&str; 4] = [
    "awsclusters",
    "awsclustercontrolleridentities",
    "awsclusterroleidentities",
    "awsclusterstaticidentities",
];
/// User that the controllers work as.
const ACCOUNT: &str = "system:serviceaccount:kube-system:cluster-api-infrastructure-controller";
const OLDER: &str = "infrastructure.cluster.x-k8s.io/v1alpha2";

/// A management cluster for one test.
pub(crate) async fn hub() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    let make = async || {
        let hub = Kubectl::with_crds().await;
        hub.run("apply -f config/rbac/cluster-api.yaml");
        rights_are_known(&hub).await;
        hub
    };
    HUBS.lend(make, async |hub: &Kubectl| clean(hub)).await
}

/// A management cluster for one test with the kinds of Cluster API's own core in place of ours.
pub(crate) async fn hub_of_core() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    hub_for_a_core(&HUBS).await
}

/// Like [`hub_of_core`], for an older core: the CRDs of the newer one may not be replaced by its own.
pub(crate) async fn hub_of_older_core() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    hub_for_a_core(&HUBS).await
}

/// Like [`hub_of_core`], for upstream's AWS provider, whose CRDs replace ours.
pub(crate) async fn hub_of_upstream() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    hub_for_a_core(&HUBS).await
}

async fn hub_for_a_core(hubs: &'static Pool<Kubectl>) -> Lent<Kubectl> {
    let make = async || {
        let hub = Kubectl::without_crds().await;
        for kind in OUR_KINDS {
            hub.run(&format!("apply -f config/crd/{INFRASTRUCTURE}_{kind}.yaml"));
        }
        hub.run("apply -f config/rbac/cluster-api.yaml");
        rights_are_known(&hub).await;
        hub
    };
    let clean = async |hub: &Kubectl| {
        // The core is not there any more to answer them.
        hub.run("delete mutatingwebhookconfigurations,validatingwebhookconfigurations --all");
        clean(hub);
    };
    hubs.lend(make, clean).await
}

fn clean(hub: &Kubectl) {
    hub.run(&format!("delete {KINDS} --all -n default --wait=false"));
    // The product is not there any more to let go of them.
    for held in hub.run(&format!("get {KINDS} -n default -o name")).lines() {
        let none = r#"{"metadata":{"finalizers":null}}"#;
        hub.run(&format!("patch {held} -n default --type=merge -p {none}"));
    }
    hub.run(&format!("delete {KINDS} --all -n default"));
    hub.run(&format!("delete {IDENTITIES} --all"));
}

/// The API server hears of roles by its own watches.
async fn rights_are_known(hub: &Kubectl) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "resourceAttributes":
            {"verb": "patch", "group": "cluster.x-k8s.io", "resource": "clusters", "subresource": "status"}},
    });
    let client = hub.plane.client().await;
    poll("the rights are known", async || {
        let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        let answer: Value = client.request(request.unwrap()).await.ok()?;
        (answer["status"]["allowed"] == true).then_some(())
    })
    .await;
}

/// An AWSCluster of this version and with this spec, which the test makes, and not the product.
pub(crate) fn aws_cluster(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "AWSCluster",
        "metadata": {"name": name, "namespace": "default",
            "annotations": {"cluster.x-k8s.io/managed-by": "the test"}},
        "spec": spec,
    })
}

/// A Cluster that refers to the AWSCluster of its name, in the words of v1alpha2.
pub(crate) fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"infrastructureRef": {"apiVersion": OLDER, "kind": "AWSCluster", "name": name}},
    })
}

/// A management cluster in which the product keeps Clusters. The test plays the part of what makes
/// infrastructure and Machines.
pub(crate) struct Scene {
    hub: Lent<Kubectl>,
    client: kube::Client,
}

impl Deref for Scene {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.hub
    }
}

impl Scene {
    pub(crate) async fn set() -> Self {
        Self::at(hub().await).await
    }

    /// A scene at this management cluster.
    pub(crate) async fn at(hub: Lent<Kubectl>) -> Self {
        let client = hub.plane.client().await;
        Self { hub, client }
    }

    /// Starts the product with the rights of `config/rbac/cluster-api.yaml` and no others.
    pub(crate) fn start(&self, args: &str) -> Process {
        let kubeconfig = self.hub.plane.kubeconfig(IDENTITY, &[]).unwrap();
        Self::start_by(&kubeconfig, args)
    }

    /// Starts the product with this kubeconfig.
    pub(crate) fn start_by(kubeconfig: &Path, args: &str) -> Process {
        launch(kubeconfig, args).args(["--leader-elect=false"]).start()
    }

    /// Ends the product, which must not have lacked a right or failed at anything.
    pub(crate) async fn end(&self, manager: Process) {
        manager.terminate();
        assert!(manager.exit(PATIENCE).await.success());
        for line in manager.lines() {
            assert!(
                !line.contains("is forbidden: User") && !line.contains("Missing permission"),
                "{line}"
            );
        }
    }

    /// An object, if it is there: an API server that does not answer is asked again.
    pub(crate) async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let path = match kind.split_once('.') {
            Some((plural, group)) => {
                let (version, group) = group.split_once('.').unwrap();
                format!("/apis/{group}/{version}/namespaces/default/{plural}/{name}")
            }
            None => format!("/api/v1/namespaces/default/{kind}/{name}"),
        };
        poll(&format!("an answer about {kind} {name}"), async || {
            let request = http::Request::get(&path).body(Vec::new()).unwrap();
            match self.client.request(request).await {
                Ok(object) => Some(Some(object)),
                Err(kube::Error::Api(status)) if status.is_not_found() => Some(None),
                Err(_) => None,
            }
        })
        .await
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        poll(&format!("{kind} {name} {what}"), async || {
            self.find(kind, name).await.filter(|object| wanted(object))
        })
        .await
    }

    /// Waits until an object is gone.
    pub(crate) async fn until_gone(&self, kind: &str, name: &str) {
        poll(&format!("{kind} {name} is gone"), async || {
            self.find(kind, name).await.is_none().then_some(())
        })
        .await;
    }

    /// Waits for an event of this reason.
    pub(crate) async fn has_event(&self, reason: &str) {
        self.has_event_about(reason, "").await;
    }

    /// Waits for an event of this reason with this in its message.
    pub(crate) async fn has_event_about(&self, reason: &str, text: &str) {
        poll(&format!("there is an event {reason} about {text:?}"), async || {
            let request = http::Request::get("/api/v1/namespaces/default/events").body(Vec::new());
            let events: Value = self.client.request(request.unwrap()).await.ok()?;
            let mut events = events["items"].as_array()?.iter();
            let is_it = |event: &&Value| {
                event["reason"] == reason && event["message"].as_str().unwrap().contains(text)
            };
            events.find(is_it).map(drop)
        })
        .await;
    }

    /// Says of an AWSCluster that it is ready, at this endpoint: first the spec, then the status.
    pub(crate) fn is_ready(&self, name: &str, host: &str, port: u16) {
        let endpoint = json!({"host": host, "port": port});
        let of = format!("{AWS_CLUSTERS} {name}");
        self.patch(&of, "merge", &json!({"spec": {"controlPlaneEndpoint": endpoint}}));
        self.patch_status(
            &of,
            &json!({"ready": true, "initialization": {"provisioned": true},
            "apiEndpoints": [endpoint], "failureDomains": [{"name": "a", "controlPlane": true}]}),
        );
    }

    /// Makes a Machine of a cluster, and says that it has a Node if it has.
    pub(crate) fn enlist(&self, name: &str, of: &str, control_plane: bool, owner: Option<&Value>) {
        let mut machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Machine",
            "metadata": {"name": name, "namespace": "default", "finalizers": ["example.org/test"],
                "labels": {"cluster.x-k8s.io/cluster-name": of}},
            "spec": {},
        });
        if control_plane {
            machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = json!("");
        }
        if let Some(owner) = owner {
            machine["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "cluster.x-k8s.io/v1alpha2", "kind": "Cluster",
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            }]);
        }
        self.create(&machine);
    }

    /// Takes away what the test holds an object by.
    pub(crate) fn let_go(&self, kind: &str, name: &str) {
        let none = json!({"metadata": {"finalizers": null}});
        self.patch(&format!("{kind} {name}"), "merge", &none);
    }
}

/// The product, which knows no account of AWS, whatever this machine knows.
pub(crate) fn launch(kubeconfig: &Path, args: &str) -> Launch {
    Process::with_kubeconfig(kubeconfig)
        .args(["--controllers=cluster-api-infrastructure-controller", "--v=4"])
        .args(["--use-service-account-credentials=true"])
        .args(args.split_whitespace())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("AWS_ACCESS_KEY_ID", "")
        .env("AWS_SECRET_ACCESS_KEY", "")
        // No server listens at this port.
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
}

/// The condition of this type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

/// A text in a Secret.
pub(crate) fn secret_text(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_else(|| panic!("no {key}"));
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}
