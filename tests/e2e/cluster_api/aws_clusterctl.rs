//! What clusterctl expects of the program: the rights, the Lease and the keys of identities in its own namespace, and
//! moves.

use serde_json::{Value, json};
use tests::Process;
use tests::clusterctl::{ACCOUNT, NAMESPACE, arguments, components};
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::pool::Pool;

use crate::aws_stage::{Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, Scene, cluster, condition};

/// Flags of the package that a test sets itself.
const OF_THE_TEST: [&str; 2] = ["--bind-address=", "--secure-port="];

/// Starts the program of the package, which a cluster has, with its flags and its account.
pub(crate) fn start(stage: &Stage, scene: &Scene) -> Process {
    let deployment = scene.object(&format!("deployment infra-controller-manager -n {NAMESPACE}"));
    let args = arguments(&deployment).into_iter();
    let args = args.filter(|arg| !OF_THE_TEST.iter().any(|it| arg.starts_with(it)));
    let kubeconfig = scene.plane.kubeconfig(ACCOUNT, &[]).unwrap();
    stage
        .launch_by(&kubeconfig, "--use-service-account-credentials=false")
        .args(args)
        .args(["--v=4"])
        .start()
}

/// An identity and the Secret with its keys.
pub(crate) fn keys(allowed: &Value) -> [Value; 2] {
    [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": NAMESPACE},
            "stringData": {"AccessKeyID": "AKIAOFKEYS", "SecretAccessKey": "planted-secret"}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSClusterStaticIdentity",
            "metadata": {"name": "keys"}, "spec": {"secretRef": "keys", "allowedNamespaces": allowed}}),
    ]
}

pub(crate) fn identity_ref() -> Value {
    json!({"kind": "AWSClusterStaticIdentity", "name": "keys"})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_of_the_package_needs_no_other_rights_and_leads_in_its_own_namespace() {
    static HUBS: Pool<Kubectl> = Pool::new();
    let make = async || {
        let hub = Kubectl::without_crds().await;
        hub.run("apply -f config/crd/cluster.x-k8s.io_clusters.yaml");
        hub.create_all(&components());
        hub.await_crds();
        // The API server learns of roles by its own watches.
        let namespaced = format!("get secrets -n {NAMESPACE}");
        for right in ["patch awsclusters", "create tokenreviews", &namespaced] {
            let question = format!("auth can-i {right} --as={ACCOUNT}");
            poll(right, async || hub.succeeds(&question).then_some(())).await;
        }
        hub
    };
    let hub = async || Scene::at(HUBS.lend(make, async |_| {}).await).await;
    let Some(stage) = Stage::set_at(hub).await else { return };
    let before = stage.totals().await;
    let manager = start(&stage, &stage);
    stage.create_all(&keys(&json!({"selector": {"matchLabels": {"team": "a"}}})));
    stage.run("label namespace default team=a");
    stage.create(&cluster("one"));
    let owner = stage.object(&format!("{CLUSTERS} one"));
    let mut object = ours("one", &spec("10.1.1.0/24"));
    object["spec"]["identityRef"] = identity_ref();
    // As the core does.
    object["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "one"});
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "name": "one", "uid": owner["metadata"]["uid"]}]);
    stage.create(&object);
    stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    stage.has_event("Ready").await;
    let secret = stage.object(&format!("secret keys -n {NAMESPACE}"));
    let owners = &secret["metadata"]["ownerReferences"];
    assert_eq!(
        owners[0]["kind"], "AWSClusterStaticIdentity",
        "clusterctl moves it with its identity"
    );
    stage.run(&format!("delete {AWS_CLUSTERS} one --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    let leases = stage.run("get leases -A -o jsonpath={.items[*].metadata.namespace}");
    assert_eq!(leases.split(' ').filter(|it| *it == NAMESPACE).count(), 1, "{leases}");
    assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
    let refused = manager.metric("rest_client_requests_total", &[("code", "403")]).await;
    assert_eq!(refused, None);
    stage.end(manager).await;
}

/// clusterctl pauses the Cluster first, which a cache that is late may show as gone.
/// rule:held-before-the-first-write
#[tokio::test(flavor = "multi_thread")]
async fn what_clusterctl_deletes_at_the_source_of_a_move_keeps_its_network() {
    const MOVED: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let manager = stage.start_with_aws("");
    stage.create_all(&[ours("one", &spec("10.1.1.0/24")), cluster("one")]);
    stage.until(AWS_CLUSTERS, "one", "is ready", is_ready).await;
    stage.proxy.forget();
    let of = format!("{AWS_CLUSTERS} one");
    let only = json!([{"op": "add", "path": "/metadata/annotations", "value": {MOVED: ""}}]);
    stage.patch(&of, "json", &only);
    let stays = |it: &Value| {
        let paused = condition(it, "Paused");
        paused["status"] == "True"
            && paused["message"].as_str().unwrap().contains("clusterctl move has set")
    };
    // A move that is repeated can leave this at the target, too; another owner id would make another network.
    stage.until(AWS_CLUSTERS, "one", "gets no owner id", stays).await;
    stage.run(&format!("delete {of} --wait=false"));
    let waits = |it: &Value| {
        stays(it) && condition(it, "Paused")["message"].as_str().unwrap().contains("deletion waits")
    };
    stage.until(AWS_CLUSTERS, "one", "waits for the move", waits).await;
    assert_eq!(stage.writes(), [""; 0]);
    // The move was broken off, and the user wants the cluster to go.
    stage.run(&format!("annotate {of} {MOVED}-"));
    stage.until_gone(AWS_CLUSTERS, "one").await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
