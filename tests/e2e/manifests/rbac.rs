//! `config/rbac`: the rights of an identity that is not `system:kube-controller-manager`.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tests::fault_proxy::{Outcome, Recorded, Wire};
use tests::node_events::node_event;
use tests::poll::poll;
use tests::{Cluster, FaultProxy, Observer, PATIENCE, Process, cluster, mk_node};

use crate::files::{apply, manifest};
use crate::rights::Right;

pub(crate) const ROLES: &str = "config/rbac/role.yaml";
pub(crate) const BINDINGS: &str = "config/rbac/role-binding.yaml";
/// The service account of the bindings, as a token of it would be read.
pub(crate) const USER: &str = "system:serviceaccount:kube-system:infra-controller-manager";
pub(crate) const GROUPS: [&str; 2] =
    ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// A cluster with the manifests of `config/rbac`.
async fn cluster_with_roles() -> (Cluster, Client) {
    let cluster = cluster().await;
    let client = cluster.client().await;
    for object in manifest(ROLES).iter().chain(&manifest(BINDINGS)) {
        apply(&client, object).await.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    (cluster, client)
}

/// The Node that gets the only block of the pool, and one that finds none.
const NODES: [&str; 2] = ["a", "starved"];

/// One life of the product under the identity: it leads, serves a Node, reports one that it cannot
/// serve, for the `count`-th time, and stops. Returns everything that it asked for in its own name.
async fn life(cluster: &Cluster, client: &Client, wire: Wire, count: i32) -> Vec<Recorded> {
    let nodes = Observer::start(client).await;
    let proxy = FaultProxy::start_with(wire, cluster, USER, &GROUPS).await;
    let manager = Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--use-service-account-credentials=true", "--allocate-node-cidrs=true"])
        .args(["--cluster-cidr=10.0.0.0/24", "--v=2"])
        .start();
    for node in NODES.iter().filter(|_| count == 1) {
        mk_node(*node).create(client).await;
        nodes.until("the first Node has the block", |now| now.assigned() == 1).await;
    }
    let [served, starved] = NODES;
    assert!(!nodes.now().cidrs(served).is_empty());
    // A later leader counts up the Event of the one before it.
    poll("the Node without a block is reported", async || {
        let event = node_event(client, starved, "CIDRNotAvailable").await;
        (event.count == Some(count)).then_some(())
    })
    .await;
    assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
    let refused = manager.metric("rest_client_requests_total", &[("code", "403")]).await;
    assert_eq!(refused, None, "forbidden requests");

    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    for line in manager.lines() {
        assert!(!line.contains("is forbidden: User"), "{line}");
        assert!(!line.contains("Missing permission"), "{line}");
    }
    let mut requests = proxy.requests();
    for seen in &requests {
        let denied = matches!(seen.outcome, Outcome::Answered(401 | 403));
        assert!(!denied, "{} {}", seen.request.method, seen.request.path);
    }
    // What carries a token is of the service accounts that the controllers act as.
    requests.retain(|seen| !seen.request.has_token());
    requests
}

/// One life of a dry run, which leads by a lease of its own.
async fn dry_life(cluster: &Cluster, client: &Client) -> Vec<Recorded> {
    let proxy = FaultProxy::start(cluster, USER, &GROUPS).await;
    let manager = Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--use-service-account-credentials=true", "--allocate-node-cidrs=true"])
        .args(["--cluster-cidr=10.0.0.0/22", "--dry-run"])
        .start();
    mk_node("c").create(client).await;
    manager.line("Would set node PodCIDR").await;
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    let mut requests = proxy.requests();
    requests.retain(|seen| !seen.request.has_token());
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn the_product_runs_with_the_rights_of_config_rbac_and_needs_every_one_of_them() {
    let (cluster, client) = cluster_with_roles().await;
    // A list is the beginning of a watch where the server can, else it needs its own verb.
    let mut requests = life(&cluster, &client, Wire::ProtobufStreamed, 1).await;
    requests.extend(life(&cluster, &client, Wire::ProtobufPages, 2).await);
    requests.extend(dry_life(&cluster, &client).await);
    let needed: BTreeSet<_> = requests
        .iter()
        .filter_map(|seen| Right::needed(&seen.request))
        .filter(|right| !right.is_everybodys())
        .collect();
    let granted: Vec<_> = manifest(ROLES).iter().flat_map(Right::granted).collect();
    let uncovered: Vec<_> =
        needed.iter().filter(|right| !granted.iter().any(|own| own.covers(right))).collect();
    assert!(uncovered.is_empty(), "used through other roles: {uncovered:?}");
    let unused: Vec<_> =
        granted.iter().filter(|own| !needed.iter().any(|right| own.covers(right))).collect();
    assert!(unused.is_empty(), "granted and never used: {unused:?}; needed: {needed:?}");
}

/// Verb, group, resource with subresource, namespace, name.
type Attempt = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Requests that a stolen identity must not be able to make.
const OUT_OF_REACH: [Attempt; 24] = [
    ("get", "", "secrets", "kube-system", ""),
    ("list", "", "secrets", "", ""),
    ("get", "", "configmaps", "kube-system", ""),
    ("list", "", "pods", "", ""),
    ("create", "", "pods", "kube-system", ""),
    ("create", "", "nodes", "", ""),
    ("patch", "", "nodes", "", "a"),
    ("patch", "", "nodes/status", "", "a"),
    ("update", "", "nodes", "", "a"),
    ("delete", "", "nodes", "", "a"),
    ("delete", "", "events", "default", ""),
    ("list", "", "events", "default", ""),
    ("create", "", "serviceaccounts", "default", ""),
    ("delete", "", "serviceaccounts", "kube-system", "node-controller"),
    ("list", "", "serviceaccounts", "kube-system", ""),
    ("create", "", "serviceaccounts/token", "kube-system", "clusterrole-aggregation-controller"),
    ("create", "", "serviceaccounts/token", "kube-system", ""),
    ("update", "coordination.k8s.io", "leases", "kube-system", "kube-controller-manager"),
    ("get", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"),
    ("delete", "coordination.k8s.io", "leases", "kube-system", "infra-controller-manager"),
    ("create", "coordination.k8s.io", "leases", "default", ""),
    ("impersonate", "", "users", "", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", "", ""),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_config_rbac_may_do_nothing_else() {
    let (_cluster, client) = cluster_with_roles().await;
    let leases =
        ("get", "coordination.k8s.io", "leases", "kube-system", "infra-controller-manager");
    // The server takes roles and bindings in within moments.
    poll("the bindings are in effect", async || may(&client, leases).await.then_some(())).await;
    for attempt in OUT_OF_REACH {
        assert!(!may(&client, attempt).await, "{attempt:?}");
    }
}

async fn may(client: &Client, (verb, group, resource, namespace, name): Attempt) -> bool {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, sub)) => (resource, some(sub)),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        verb: some(verb),
        group: some(group),
        resource: some(resource),
        subresource,
        namespace: some(namespace),
        name: some(name),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: some(USER),
        groups: Some(GROUPS.map(ToOwned::to_owned).to_vec()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}
