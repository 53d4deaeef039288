//! ClusterProfiles, whose CRD and status belong to other programs too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use tests::control_plane::ControlPlane;
use tests::kubectl::{IDENTITY, Kubectl};
use tests::member::{Account, member};
use tests::planted::{Discreet, Planted};
use tests::poll::poll;
use tests::process::Launch;
use tests::programs::workspace;
use tests::{Process, Stopwatch};

use crate::probe_command::probe;

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
pub(crate) const NAMESPACE: &str = "cluster-inventory";
const HEALTHY: &str = "infra-controller-manager/Healthy";
const REACHABLE: &str = "infra-controller-manager/Reachable";
const WITHIN_OBJECTIVE: &str = "infra-controller-manager/WithinObjective";
const CONTROL_PLANE: &str = "ControlPlaneHealthy";
/// How often another program rewrites all conditions: once a second for a minute.
const REWRITES: usize = 60;
pub(crate) const CRD: &str = "tests/cluster-inventory-api/clusterprofiles.yaml";

/// The CRD of upstream.
fn crd() -> Value {
    let text = std::fs::read_to_string(workspace().join(CRD)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// A management cluster with the rights of `config/rbac`, and no CRD.
pub(crate) async fn hub() -> Kubectl {
    let hub = Kubectl::without_crds().await;
    for namespace in [NAMESPACE, "kube-federation-system"] {
        hub.run(&format!("create namespace {namespace}"));
    }
    let files = [
        "cluster-health-account",
        "cluster-health-clusterprofile",
        "cluster-health-member-secrets",
    ];
    for file in ["role", "role-binding"].into_iter().chain(files) {
        hub.run(&format!("apply -f config/rbac/{file}.yaml"));
    }
    hub.run(&format!("apply -n {NAMESPACE} -f config/rbac/namespaces/member-secrets.yaml"));
    hub
}

pub(crate) fn start(hub: &Kubectl, planted: &Planted, flags: &[&str]) -> Discreet {
    Discreet::new(process(hub, flags).start(), planted, hub)
}

fn process(hub: &Kubectl, flags: &[&str]) -> Launch {
    let kubeconfig = hub.plane.kubeconfig(IDENTITY, &GROUPS).unwrap();
    Process::with_kubeconfig(&kubeconfig)
        .args(["--controllers=cluster-health-controller", "--leader-elect=false", "-v=2"])
        .args(["--use-service-account-credentials=true"])
        .args(["--cluster-health-flavours=clusterprofile", "--cluster-health-period=1s"])
        .args(["--cluster-health-timeout=900ms", "--cluster-health-confirm-interval=1s"])
        .args(flags)
}

/// Creates a profile of this manager, and the part of its status that the manager writes.
pub(crate) fn create_profile(hub: &Kubectl, name: &str, manager: &str, member: &ControlPlane) {
    hub.create(&json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"tier": "web"}},
        "spec": {"clusterManager": {"name": manager}},
    }));
    let extension = json!({
        "name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "token"},
    });
    let cluster = json!({
        "server": member.url(), "extensions": [extension],
        "certificate-authority-data": base64(member.ca_pem()),
    });
    let providers = json!([{"name": "secretreader", "cluster": cluster}]);
    hub.patch_status(&of(name), &json!({"accessProviders": providers}));
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

pub(crate) fn of(name: &str) -> String {
    format!("-n {NAMESPACE} clusterprofile {name}")
}

pub(crate) fn create_token(hub: &Kubectl, token: &str) {
    hub.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"token": token},
        "metadata": {"name": "token", "namespace": NAMESPACE},
    }));
}

fn condition(status: &Value, kind: &str) -> Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == kind).cloned().unwrap_or_default()
}

fn is_healthy(status: &Value) -> bool {
    condition(status, HEALTHY)["status"] == "True"
        && condition(status, REACHABLE)["status"] == "True"
}

/// The status of a profile, as soon as it is as wanted.
pub(crate) async fn until(
    hub: &Kubectl,
    name: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    poll(&format!("{name} is {what}"), async || {
        let status = hub.object(&of(name))["status"].clone();
        wanted(&status).then_some(status)
    })
    .await
}

/// rule:a-shared-status-is-shared
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_probed_from_its_crd_to_its_deselection_and_nothing_is_written_before() {
    let (hub, member) = futures::join!(hub(), member());
    let account = Account::of(&member).await;
    let planted = Planted::default();
    for token in [&account.token, "planted-bad-token"] {
        planted.plant(token);
    }
    let manager = start(&hub, &planted, &["--cluster-health-profile-selector=tier=web"]);
    manager.line_where("the kind is dormant", |line| line.contains("Kind is dormant")).await;

    // As before v0.1 of the API, an apply would drop the conditions of all others.
    let mut atomic = crd();
    let conditions =
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
    let fields = atomic.pointer_mut(conditions).unwrap().as_object_mut().unwrap();
    fields.retain(|field, _| !field.starts_with("x-kubernetes-list"));
    hub.create(&atomic);
    hub.await_crds();
    create_token(&hub, &account.token);
    create_profile(&hub, "one", "another", &member);
    manager.line_where("it is refused", |line| line.contains("ConditionsNotMergeable")).await;
    let joined = json!([{"type": "Joined", "status": "True", "reason": "Joined", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    hub.patch_status(&of("one"), &json!({ "conditions": joined }));
    let written = manager.metric("clusterhealth_status_writes_total", &[]).await;
    assert!(written.is_none(), "{written:?}");
    assert_eq!(hub.object(&of("one"))["status"]["conditions"], joined);

    hub.run("delete crd clusterprofiles.multicluster.x-k8s.io");
    hub.run(&format!("apply --server-side -f {CRD}"));
    let since_crd = Stopwatch::start();
    hub.await_crds();
    create_profile(&hub, "one", "another", &member);
    let watch = Stopwatch::start();
    until(&hub, "one", "healthy", is_healthy).await;
    let took = watch.elapsed();
    println!("healthy {took:?} after its status, {:?} after the CRD", since_crd.elapsed());
    hub.patch_status(&of("one"), &json!({ "conditions": joined }));
    let status = until(&hub, "one", "healthy beside another condition", is_healthy).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(condition(&status, CONTROL_PLANE), Value::Null, "its manager is another one");
    assert!(status.get("version").is_none(), "{status}");
    assert_eq!(condition(&status, "Joined"), joined[0]);
    let message = condition(&status, HEALTHY)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("/readyz responded with ok; probed 20"), "{message}");
    let property = &status["properties"][0];
    assert_eq!(
        (&property["name"], &property["value"]),
        (&json!("infra-controller-manager/probe"), &json!("ok"))
    );

    let kubeconfig = format!("--kubeconfig={}", hub.plane.admin_kubeconfig().display());
    let probed = probe(&[&format!("clusterprofile/{NAMESPACE}/one"), &kubeconfig]);
    assert!(probed.status.success(), "{probed:?}");

    let patch = json!({"stringData": {"token": "planted-bad-token"}});
    hub.patch(&format!("-n {NAMESPACE} secret token"), "merge", &patch);
    let refused = |status: &Value| {
        let healthy = condition(status, HEALTHY);
        healthy["status"] == "False" && healthy["message"].to_string().contains("unauthorized")
    };
    until(&hub, "one", "refused with the bad token", refused).await;
    let watch = Stopwatch::start();
    let patch = json!({"stringData": {"token": account.token}});
    hub.patch(&format!("-n {NAMESPACE} secret token"), "merge", &patch);
    until(&hub, "one", "healthy with the new token", is_healthy).await;
    let took = watch.elapsed();
    println!("healthy {took:?} after the token");
    // On an idle machine it is used within a second.
    assert!(took < Duration::from_secs(5), "{took:?}");

    hub.run(&format!("label {} tier-", of("one")));
    let left =
        |status: &Value| status["conditions"] == joined && status.get("properties").is_none();
    let status = until(&hub, "one", "without our fields", left).await;
    assert_eq!(status["accessProviders"][0]["name"], "secretreader");
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
}

/// rule:a-shared-status-is-shared
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_rewrites_all_conditions_keeps_its_own_and_ours_come_back() {
    let (hub, member) = futures::join!(hub(), member());
    let mut both = crd();
    let mut newer = both["spec"]["versions"][0].clone();
    newer["name"] = json!("v1alpha2");
    newer["storage"] = json!(false);
    both["spec"]["versions"].as_array_mut().unwrap().push(newer);
    hub.create(&both);
    hub.await_crds();
    let account = Account::of(&member).await;
    create_token(&hub, &account.token);
    let ours = "infra-controller-manager";
    for (name, manager) in [("rewritten", "another"), ("ours", ours), ("shared", ours)] {
        create_profile(&hub, name, manager, &member);
    }
    let theirs = json!({"type": CONTROL_PLANE, "status": "False", "reason": "Theirs",
        "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    hub.patch_status(&of("shared"), &json!({"conditions": [theirs]}));
    let planted = Planted::default();
    planted.plant(&account.token);
    let manager = start(&hub, &planted, &[]);

    // Two in three rewrites leave ours out, and the third brings it back as it was once.
    let whole = until(&hub, "rewritten", "healthy", is_healthy).await;
    let mut outdated = condition(&whole, HEALTHY);
    outdated["status"] = json!("False");
    let rewrites = Stopwatch::start();
    for number in 0..REWRITES {
        let own = json!({"type": "Joined", "status": "True", "reason": "Joined",
            "message": format!("number {number}"), "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut conditions = vec![own.clone()];
        conditions.extend((number % 3 == 2).then(|| outdated.clone()));
        hub.patch_status(&of("rewritten"), &json!({ "conditions": conditions }));
        let status = until(&hub, "rewritten", "healthy again", is_healthy).await;
        assert_eq!(condition(&status, "Joined"), own);
        let known = ["Joined", HEALTHY, REACHABLE, WITHIN_OBJECTIVE];
        let mut conditions = status["conditions"].as_array().unwrap().iter();
        assert!(conditions.all(|it| known.iter().any(|kind| it["type"] == *kind)), "{status}");
        assert_eq!(status["accessProviders"], whole["accessProviders"]);
    }
    println!("{REWRITES} rewrites in {:?}", rewrites.elapsed());

    let versioned = |status: &Value| status["version"]["kubernetes"].is_string();
    let status = until(&hub, "ours", "versioned", versioned).await;
    assert_eq!(condition(&status, CONTROL_PLANE)["status"], "True");
    let version = member.client().await.apiserver_version().await.unwrap().git_version;
    assert_eq!(status["version"]["kubernetes"], version);

    // What another field manager owns stays as it is.
    let status = until(&hub, "shared", "healthy", is_healthy).await;
    assert_eq!(condition(&status, CONTROL_PLANE), theirs);
    poll("the event is there", async || {
        let events = hub.run(&format!("get events -n {NAMESPACE}"));
        events.contains("ConditionOwnedByOther").then_some(())
    })
    .await;
    let outcome = [("flavour", "clusterprofile"), ("outcome", "owned")];
    let owned = manager.metric("clusterhealth_status_writes_total", &outcome).await;
    assert!(owned.unwrap_or_default() >= 1.0);
    let fields = hub.object(&format!("{} --show-managed-fields", of("ours")))["metadata"].clone();
    let writers = fields["managedFields"].as_array().unwrap();
    let writer = writers.iter().find(|it| it["manager"] == "cluster-health-controller").unwrap();
    assert_eq!(
        (&writer["operation"], &writer["apiVersion"]),
        (&json!("Apply"), &json!("multicluster.x-k8s.io/v1alpha2"))
    );
}

/// A program in the folder of the control plane.
fn program(hub: &Kubectl, name: &str, script: &str) -> String {
    let path = hub.plane.dir().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// rule:probes-ask-members-only
#[tokio::test(flavor = "multi_thread")]
async fn plugins_print_credentials_beside_the_probes_and_one_that_hangs_stops_no_other() {
    const V1: &str = "client.authentication.k8s.io/v1";
    let (hub, member) = futures::join!(hub(), member());
    hub.run(&format!("apply --server-side -f {CRD}"));
    hub.await_crds();
    let account = Account::of(&member).await;
    let planted = Planted::default();
    for secret in [&account.token, "planted-bad-token", "planted-own-secret"] {
        planted.plant(secret);
    }
    let file = |name: &str| hub.plane.dir().join(name);
    let text = |name: &str| fs::read_to_string(file(name)).unwrap_or_default();
    fs::write(file("token"), "planted-bad-token").unwrap();
    let script = r#"cd "$FOLDER"; env >environment; token=$(cat token); echo "$token" >>runs
echo "{\"kind\": \"ExecCredential\", \"status\": {\"token\": \"$token\"}}""#;
    let folder = json!([{"name": "FOLDER", "value": hub.plane.dir()}]);
    let exec = |command: String| {
        json!({"command": command, "apiVersion": V1, "provideClusterInfo": true, "env": folder,
            "interactiveMode": "Never"})
    };
    let providers = json!({"providers": [
        {"name": "hang", "execConfig": exec(program(&hub, "hang", "sleep 1000"))},
        {"name": "login", "execConfig": exec(program(&hub, "login", script))},
    ]});
    fs::write(file("providers"), providers.to_string()).unwrap();
    let flag = format!("--cluster-health-profile-providers={}", file("providers").display());
    let process = process(&hub, &[&flag, "--cluster-health-profile-exec"]);
    let started = process.env("PLANTED", "planted-own-secret").start();
    let manager = Discreet::new(started, &planted, &hub);
    for (name, provider) in [("one", "login"), ("two", "hang")] {
        create_profile(&hub, name, "another", &member);
        let mut providers = hub.object(&of(name))["status"]["accessProviders"].take();
        providers[0]["name"] = provider.into();
        hub.patch_status(&of(name), &json!({ "accessProviders": providers }));
    }
    let says = |part: &'static str| {
        move |status: &Value| condition(status, HEALTHY)["message"].to_string().contains(part)
    };
    until(&hub, "one", "refused with the bad token", says("unauthorized")).await;
    fs::write(file("token"), &account.token).unwrap();
    poll("the plugin printed the other token", async || {
        text("runs").contains(&account.token).then_some(())
    })
    .await;
    let watch = Stopwatch::start();
    until(&hub, "one", "healthy with the other token", is_healthy).await;
    let took = watch.elapsed();
    println!("healthy {took:?} after the plugin printed another token");
    assert!(took < Duration::from_secs(5), "{took:?}");

    // The limit is ours: it says nothing about the member.
    let hangs = says("the exec plugin of access provider hang");
    let hanging = until(&hub, "two", "without a credential", hangs).await;
    assert_eq!(condition(&hanging, HEALTHY)["reason"], "ClusterStatusUnknown", "{hanging}");
    assert!(is_healthy(&hub.object(&of("one"))["status"]));
    let environment = text("environment");
    let names: Vec<_> = environment.lines().filter_map(|line| line.split_once('=')).collect();
    let told = names.iter().find(|(name, _)| *name == "KUBERNETES_EXEC_INFO").unwrap().1;
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!(told["spec"]["cluster"]["server"], member.url());
    assert_eq!(told["spec"]["cluster"]["config"], json!({"clusterName": "token"}));
    assert!(!environment.contains("planted"), "{environment}");
    for (provider, outcome) in [("login", "ok"), ("hang", "timeout")] {
        let labels = [("provider", provider), ("outcome", outcome)];
        let runs = manager.metric("clusterhealth_access_plugin_runs_total", &labels).await;
        assert!(runs.unwrap_or_default() >= 1.0, "{provider} {outcome} {runs:?}");
    }
}
