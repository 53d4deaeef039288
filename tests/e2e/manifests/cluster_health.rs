//! `config/rbac/cluster-health*.yaml`: the rights of cluster-health, as the identity of the process
//! and with an account of its own.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::fault_proxy::{Recorded, Wire};
use tests::kubectl::Kubectl;
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::{FaultProxy, PATIENCE, Process};

use crate::files::manifest;
use crate::rights::Right;

const USER: &str = "system:serviceaccount:kube-system:infra-controller-manager";
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const NAMESPACE: &str = "kube-federation-system";
/// Manifests for the identity of the process.
const OWN: [&str; 2] = ["config/rbac/cluster-health.yaml", "config/rbac/cluster-health-tke.yaml"];
const SHARDS: &str = "config/rbac/cluster-health-shards.yaml";
const ACCOUNT: &str = "config/rbac/cluster-health-account.yaml";
/// Gives the process the rights of the account.
const PROCESS: &str = "config/rbac/cluster-health-process.yaml";
/// Tokens in a Secret, a ClusterCredential and a Machine; no other place may contain them.
const TOKENS: [&str; 3] =
    ["planted-token-of-a-secret", "planted-token-of-a-credential", "planted-password-of-a-machine"];

/// A cluster of each flavour at addresses without a server, a Machine, and a Secret for both.
async fn hub(manifests: &[&str]) -> Kubectl {
    let hub = Kubectl::with_crds().await;
    hub.run(&format!("create namespace {NAMESPACE}"));
    for file in ["config/rbac/role.yaml", "config/rbac/role-binding.yaml"].iter().chain(manifests) {
        hub.run(&format!("apply -f {file}"));
    }
    hub.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "member", "namespace": NAMESPACE,
            "labels": {"infra-controller-manager/send-to-member": "true"}},
        "stringData": {"token": TOKENS[0], "ca.crt": hub.plane.ca_pem()},
    }));
    hub.create(&json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": "fed", "namespace": NAMESPACE},
        "spec": {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "member"}},
    }));
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-own"}, "tenantID": "t", "clusterName": "cls-two",
        "secretRef": {"namespace": NAMESPACE, "name": "member"},
    }));
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc-one"}, "tenantID": "t", "clusterName": "cls-one", "token": TOKENS[1],
    }));
    cluster(&hub, "cls-one", &json!({}));
    cluster(&hub, "cls-two", &json!({"clusterCredentialRef": {"name": "cc-own"}}));
    hub.create(&json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine", "metadata": {"name": "mc-one"},
        "spec": {"tenantID": "t", "type": "Baremetal", "clusterName": "cls-one", "ip": "10.0.0.1",
            "port": 22, "username": "root", "password": STANDARD.encode(TOKENS[2])},
    }));
    hub.patch_status("mc mc-one", &json!({"phase": "Running"}));
    hub
}

fn cluster(hub: &Kubectl, name: &str, more: &Value) {
    let mut cluster = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"tenantID": "t", "type": "Imported",
            "addresses": [{"type": "Real", "host": "127.0.0.1", "port": 1}]},
    });
    for (field, value) in more.as_object().unwrap() {
        cluster["spec"][field] = value.clone();
    }
    hub.create(&cluster);
}

/// The product, which must show no secret.
fn product(hub: &Kubectl, kubeconfig: &Path, args: &str) -> Discreet {
    let manager = Process::with_kubeconfig(kubeconfig)
        .args(["--controllers=cluster-health-controller", "--v=2"])
        .args(["--cluster-health-machine-period=1s", "--cluster-health-confirm-interval=1s"])
        .args(args.split_whitespace())
        .start();
    let planted = Planted::default();
    for token in TOKENS {
        planted.plant(token);
    }
    Discreet::new(manager, &planted, hub)
}

async fn until_failed(hub: &Kubectl, object: &str) {
    poll(&format!("{object} has failed"), async || {
        let status = hub.object(object)["status"].clone();
        (status["conditions"][0]["status"] == "False").then_some(())
    })
    .await;
}

/// One life of the product; everything that it asked for.
async fn life(hub: &Kubectl, wire: Wire, args: &str) -> Vec<Recorded> {
    let proxy = FaultProxy::start_with(wire, &hub.plane, USER, &GROUPS).await;
    let manager = product(hub, proxy.kubeconfig(), args);
    for object in ["cls cls-one", "cls cls-two", "-n kube-federation-system kubefedcluster fed"] {
        until_failed(hub, object).await;
    }
    poll("the machine is unknown", async || {
        let status = hub.object("mc mc-one")["status"].clone();
        (status["conditions"][0]["reason"] == "ClusterUnhealthy").then_some(())
    })
    .await;
    poll("an event", async || {
        hub.run("get events -A -o jsonpath={.items[*].reason}")
            .contains("ClusterOffline")
            .then_some(())
    })
    .await;
    poll("the lease of a replica that has ended is gone", async || {
        let leases = hub.run("-n infra-controller-manager get leases -o name");
        (!leases.contains("cluster-health-before")).then_some(())
    })
    .await;
    assert_eq!(manager.metric("icm_missing_permissions", &[]).await, Some(0.0));
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
    for line in manager.lines() {
        assert!(
            !line.contains("is forbidden: User") && !line.contains("Missing permission"),
            "{line}"
        );
    }
    proxy.requests()
}

fn needed(requests: &[Recorded], with_token: bool) -> BTreeSet<Right> {
    let of = requests.iter().filter(|seen| seen.request.has_token() == with_token);
    let rights = of.filter_map(|seen| Right::needed(&seen.request));
    rights.filter(|right| !right.is_everybodys()).collect()
}

fn granted(files: &[&str]) -> Vec<Right> {
    let objects = files.iter().flat_map(|file| manifest(file));
    let roles = objects.filter(|object| object["rules"].is_array());
    roles.flat_map(|role| Right::granted(&role)).collect()
}

/// Used in other tests, or in the other one here: an Event is counted up after five minutes at the
/// earliest, replicas that share the clusters have leases, and an object is read again after a move or
/// the loss of the lease.
fn elsewhere(right: &Right) -> bool {
    let counted_up = right.resource == "events" && right.verb == "patch";
    reads_a_member_again(right) || counted_up || right.resource == "leases"
}

fn reads_a_member_again(right: &Right) -> bool {
    ["kubefedclusters", "clusters"].contains(&&*right.resource) && right.verb == "get"
}

/// A leader whose replicas do not share looks whether it may have a lease that others see, and goes
/// on without.
fn is_asked_in_vain(right: &Right) -> bool {
    right.resource == "leases" && right.verb == "list"
}

fn covers(all: &[Right], right: &Right) -> bool {
    all.iter().any(|own| own.covers(right))
}

/// A stolen token of the process neither reads a single credential nor writes a status.
#[test]
fn with_accounts_the_process_only_watches_members_and_asks_for_tokens_of_their_account() {
    let process =
        ["infra-controller-manager-cluster-health", "infra-controller-manager-cluster-health-tke"];
    let objects: Vec<_> = OWN.into_iter().chain([ACCOUNT]).flat_map(manifest).collect();
    let bound = objects.iter().filter(|it| it["subjects"][0]["name"] == "infra-controller-manager");
    let bound: BTreeSet<_> = bound.map(|it| it["roleRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(bound, BTreeSet::from(process));
    let roles = objects.iter().filter(|it| it["rules"].is_array());
    let of_process =
        roles.filter(|role| process.iter().any(|name| role["metadata"]["name"] == **name));
    for right in of_process.flat_map(Right::granted) {
        let watches = ["list", "watch"].contains(&&*right.verb);
        let of_account = right.resource.starts_with("serviceaccounts")
            && right.name.as_deref() == Some("cluster-health-controller");
        assert!(watches || of_account, "{right:?}");
    }
    for binding in manifest(PROCESS) {
        assert_eq!(binding["roleRef"]["name"], "cluster-health-controller");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_health_runs_with_the_rights_of_config_rbac_and_needs_every_one_of_them() {
    let hub = hub(&[OWN[0], OWN[1], ACCOUNT, PROCESS]).await;
    let mut requests = life(&hub, Wire::ProtobufStreamed, "").await;
    hub.run(&format!("delete -f {PROCESS}"));
    // The objects are as before: the product writes its status again.
    for object in ["cls cls-one", "cls cls-two"] {
        hub.patch_status(object, &json!({"conditions": null, "phase": null}));
    }
    hub.patch_status("mc mc-one", &json!({"conditions": null}));
    let fed = "-n kube-federation-system kubefedcluster fed";
    hub.patch_status(fed, &json!({"conditions": []}));
    hub.run("delete events -A --all");
    requests.extend(life(&hub, Wire::JsonPages, "--use-service-account-credentials=true").await);

    let (own, account) = (needed(&requests, false), needed(&requests, true));
    let (by_role, by_account) = (granted(&["config/rbac/role.yaml"]), granted(&[ACCOUNT]));
    let all: Vec<_> = [by_role, granted(&OWN), by_account.clone()].concat();
    let lacking: Vec<_> = own.iter().chain(&account).filter(|right| !covers(&all, right)).collect();
    assert!(
        lacking.iter().all(|right| is_asked_in_vain(right)),
        "through other roles: {lacking:?}"
    );
    let used = |right: &&Right| elsewhere(right) || own.iter().any(|other| right.covers(other));
    let unused: Vec<_> = granted(&OWN).iter().filter(|right| !used(right)).cloned().collect();
    assert!(
        unused.is_empty(),
        "granted to the process and never used: {unused:?}; needed: {own:?}"
    );
    // The tokens are asked for by the process.
    let used = |right: &&Right| {
        elsewhere(right) || account.iter().chain(&own).any(|other| right.covers(other))
    };
    let unused: Vec<_> = by_account.iter().filter(|right| !used(right)).collect();
    assert!(
        unused.is_empty(),
        "granted for the account and never used: {unused:?}; needed: {account:?}"
    );
    let lacking: Vec<_> = account.iter().filter(|right| !covers(&by_account, right)).collect();
    assert!(lacking.is_empty(), "the account used other rights: {lacking:?}");
}

/// A replica that ended a while ago has left its lease, which the next one takes away.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_share_the_clusters_run_with_the_rights_for_their_leases_and_need_every_one()
{
    let files = [OWN[0], OWN[1], SHARDS, ACCOUNT, PROCESS];
    let hub = hub(&files).await;
    hub.create(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "cluster-health-before", "namespace": "infra-controller-manager",
            "labels": {"infra-controller-manager/replica-of": "cluster-health"},
            "annotations": {"infra-controller-manager/shares-with": "before"}},
        "spec": {"holderIdentity": "", "renewTime": "2026-01-01T00:00:00.000000Z"},
    }));
    let requests = life(&hub, Wire::ProtobufStreamed, "--cluster-health-shards=2").await;
    let own = needed(&requests, false);
    let all = [granted(&["config/rbac/role.yaml"]), granted(&files)].concat();
    let lacking: Vec<_> = own.iter().filter(|right| !covers(&all, right)).collect();
    assert!(lacking.is_empty(), "used through other roles: {lacking:?}");
    let for_shards = |right: &&Right| right.resource == "leases" || reads_a_member_again(right);
    let granted = granted(&files);
    let unused = granted.iter().filter(for_shards);
    let unused: Vec<_> = unused.filter(|right| !own.iter().any(|it| right.covers(it))).collect();
    assert!(unused.is_empty(), "granted and never used: {unused:?}; needed: {own:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_rights_for_one_flavour_the_log_names_them_and_the_other_one_runs() {
    let hub = hub(&[OWN[0], ACCOUNT, PROCESS]).await;
    let manager = product(&hub, &hub.plane.kubeconfig(USER, &GROUPS).unwrap(), "");
    let line = manager
        .line_where("the missing right", |line| {
            line.contains("Missing permission")
                && line.contains(OWN[1])
                && line.contains("clusters.platform.tkestack.io is forbidden")
        })
        .await;
    assert!(
        line.contains("cannot list resource") || line.contains("cannot watch resource"),
        "{line}"
    );
    until_failed(&hub, "-n kube-federation-system kubefedcluster fed").await;
    assert!(!manager.has_said("Waiting for caches"), "{:?}", manager.lines());

    hub.run(&format!("apply -f {}", OWN[1]));
    until_failed(&hub, "cls cls-one").await;
    manager.terminate();
    assert!(manager.exit(PATIENCE).await.success());
}
