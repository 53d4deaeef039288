//! Checks of a member on real API servers: what its objects say, as conditions of the Cluster in the hub.

use jiff::Timestamp;
use serde_json::{Value, json};
use tests::control_plane::ControlPlane;
use tests::kubectl::{Kubectl, Shell};
use tests::member::{Account, member};
use tests::planted::Planted;
use tests::poll::poll;

use crate::cluster_api::{HEALTHY, NAMESPACE, REACHABLE, condition, hub, kubeconfig, of, start};
use crate::cluster_profile as profiles;

const CONFIG: &str = "cluster-health-checks";
const CHECKS: &str = "
checks:
- {name: NodesUp, selector: rights=all, interval: 30s, nodesReady: {minRatio: 0.5}}
- {name: AllNodesUp, selector: rights=all, interval: 30s, nodesReady: {minRatio: 1}}
- {name: Kubelets, selector: rights=all, interval: 30s, nodeLeases: {minFresh: 0.5, maxAge: 10m}}
- {name: AllKubelets, selector: rights=all, interval: 30s, nodeLeases: {minFresh: 1, maxAge: 10m}}
- {name: Apps, selector: rights=all, interval: 30s, apiService: {name: v1.apps}}
- {name: Metrics, selector: rights=all, interval: 30s, apiService: {name: v1beta1.metrics.k8s.io}}
- {name: Good, selector: rights=all, interval: 30s, available: {kind: Deployment, namespace: kube-system, name: good}}
- {name: Bad, selector: rights=all, interval: 30s, available: {kind: StatefulSet, namespace: kube-system, name: bad}}
- {name: NoNodes, selector: rights=none, interval: 30s, nodesReady: {}, gatesReady: true}
- {name: NoLeases, selector: rights=none, interval: 30s, nodeLeases: {}, gatesReady: true}
- {name: NoAPI, selector: rights=none, interval: 30s, apiService: {name: v1.apps}, gatesReady: true}
- {name: NoRight, selector: rights=none, interval: 30s, available: {kind: DaemonSet, namespace: a, name: b}, gatesReady: true}
";

const UNUSABLE: &str = "checks: [{name: One, command: [rm]}]";
const GATE: &str = "checks: [{name: AllNodesUp, interval: 30s, nodesReady: {minRatio: 1}, gatesReady: true, \
    selector: rights=all}]";

/// The ConfigMap with this document.
fn config(text: &str) -> Value {
    config_in(NAMESPACE, text)
}

fn config_in(namespace: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG, "namespace": namespace},
        "data": {"checks.yaml": text},
    })
}

fn create_cluster(hub: &Kubectl, name: &str, rights: &str, kubeconfig: &str) {
    hub.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{name}-kubeconfig"), "namespace": NAMESPACE},
        "stringData": {"value": kubeconfig},
    }));
    hub.create(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"rights": rights}},
        "spec": {
            "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": name},
        },
    }));
    let initialized = json!({"initialization": {"controlPlaneInitialized": true}});
    hub.patch_status(&of(name), &initialized);
}

/// Nodes, Leases and workloads, half of them as they should be.
fn furnish(at_home: &Shell) {
    let now = format!("{:.6}", Timestamp::now());
    for (name, status, renewed) in
        [("one", "True", &*now), ("two", "False", "2026-01-01T00:00:00.000000Z")]
    {
        at_home.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
        set_ready(at_home, name, status);
        at_home.create(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"renewTime": renewed},
        }));
    }
    for (kind, name) in [("Deployment", "good"), ("StatefulSet", "bad")] {
        let labels = json!({"app": name});
        let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        at_home.create(&json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        }));
    }
    let available = json!({"conditions": [{"type": "Available", "status": "True"}]});
    at_home.patch_status("-n kube-system deployment good", &available);
}

fn set_ready(at_home: &Shell, node: &str, status: &str) {
    let conditions = json!({"conditions": [{"type": "Ready", "status": status}]});
    at_home.patch_status(&format!("node {node}"), &conditions);
}

fn clear(at_home: &Shell) {
    at_home.run("delete -n kube-node-lease lease one two");
    at_home.run("delete -n kube-system deployment/good statefulset/bad");
    at_home.run("delete -f config/member/checks.yaml");
}

/// An account with the rights of `config/member`, and one with those of every user.
async fn accounts(member: &ControlPlane, at_home: &Shell) -> [Account; 2] {
    let (able, unable) = (Account::of(member).await, Account::of(member).await);
    able.empower().await;
    at_home.run("apply -f config/member/checks.yaml");
    let subject = format!("--serviceaccount=default:{}", able.name);
    let name = format!("{}-checks", able.name);
    let role = "infra-controller-manager-checks";
    at_home.run(&format!("create clusterrolebinding {name} --clusterrole={role} {subject}"));
    for namespace in ["kube-node-lease", "kube-system"] {
        at_home.run(&format!("create rolebinding {name} -n {namespace} --role={role} {subject}"));
    }
    [able, unable]
}

fn of_check(status: &Value, check: &str) -> Value {
    condition(status, &format!("infra-controller-manager/{check}"))
}

/// The status of the Cluster, as soon as it is as wanted.
async fn until(hub: &Kubectl, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    poll(&format!("{name} is {what}"), async || {
        let status = hub.object(&of(name))["status"].clone();
        wanted(&status).then_some(status)
    })
    .await
}

fn is_healthy(status: &Value) -> bool {
    [HEALTHY, REACHABLE].iter().all(|kind| condition(status, kind)["status"] == "True")
}

/// What a check says: status, reason, and the beginning of its message.
type Expected = (&'static str, &'static str, &'static str, &'static str);

async fn expect(hub: &Kubectl, name: &str, expected: &[Expected]) {
    let decided = |status: &Value| {
        expected.iter().all(|(check, wanted, ..)| of_check(status, check)["status"] == *wanted)
    };
    let status = until(hub, name, "checked", decided).await;
    for (check, _, reason, message) in expected {
        let condition = of_check(&status, check);
        assert_eq!(condition["reason"], *reason, "{condition}");
        let text = condition["message"].as_str().unwrap();
        assert!(text.starts_with(message) && text.contains("; probed 20"), "{condition}");
    }
    assert!(is_healthy(&status), "{name}: {status}");
}

/// rule:an-answer-proves-reachability
#[tokio::test(flavor = "multi_thread")]
async fn checks_publish_what_the_objects_of_a_member_say_and_gate_only_where_they_are_to() {
    let (hub, member) = futures::join!(hub(), member());
    let at_home = Shell::new(member.admin_kubeconfig());
    let [able, unable] = accounts(&member, &at_home).await;
    let planted = Planted::default();
    for token in [&able.token, &unable.token] {
        planted.plant(token);
    }
    furnish(&at_home);
    hub.run(&format!("apply -n {NAMESPACE} -f config/rbac/namespaces/health-checks.yaml"));
    hub.create(&config(CHECKS));
    let flag = format!("--cluster-health-checks-config={NAMESPACE}/{CONFIG}");
    let manager = start(&hub, &planted, &[&flag]);
    create_cluster(&hub, "one", "all", &kubeconfig(&member, &json!({"token": able.token})));
    create_cluster(&hub, "two", "none", &kubeconfig(&member, &json!({"token": unable.token})));
    let of_one = expect(
        &hub,
        "one",
        &[
            ("NodesUp", "True", "CheckPassed", "1 of 2 Nodes are ready"),
            ("AllNodesUp", "False", "CheckFailed", "1 of 2 Nodes are ready"),
            (
                "Kubelets",
                "True",
                "CheckPassed",
                "1 of 2 Leases of Nodes were renewed in the last 600s",
            ),
            ("AllKubelets", "False", "CheckFailed", "1 of 2 Leases"),
            ("Apps", "True", "CheckPassed", "APIService v1.apps is available"),
            ("Metrics", "False", "CheckFailed", "APIService v1beta1.metrics.k8s.io does not exist"),
            ("Good", "True", "CheckPassed", "Deployment kube-system/good is available"),
            (
                "Bad",
                "False",
                "CheckFailed",
                "0 of 1 Pods of StatefulSet kube-system/bad are available",
            ),
        ],
    );
    let of_two = expect(
        &hub,
        "two",
        &[
            (
                "NoNodes",
                "Unknown",
                "CheckNotAsked",
                "cannot list the Nodes: the API server answered 403",
            ),
            (
                "NoLeases",
                "Unknown",
                "CheckNotAsked",
                "cannot read the Leases in kube-node-lease: the right",
            ),
            ("NoAPI", "Unknown", "CheckNotAsked", "cannot read APIService v1.apps: the right"),
            ("NoRight", "Unknown", "CheckNotAsked", "cannot read DaemonSet a/b: the right"),
        ],
    );
    futures::join!(of_one, of_two);
    let labels = [("check", "Metrics"), ("cluster", "one")];
    assert_eq!(manager.metric("clusterhealth_check_status", &labels).await, Some(0.0));

    // A document that cannot be used changes nothing.
    let patch = |text: &str| {
        hub.patch(&format!("-n {NAMESPACE} configmap {CONFIG}"), "merge", &config(text));
    };
    patch(UNUSABLE);
    poll("the event is there", async || {
        hub.run(&format!("get events -n {NAMESPACE}")).contains("InvalidChecks").then_some(())
    })
    .await;
    let status = hub.object(&of("one"))["status"].clone();
    assert_eq!(of_check(&status, "Bad")["status"], "False", "{status}");

    // The check that fails is to decide about readiness, and all others go.
    patch(GATE);
    let gated =
        until(&hub, "one", "not healthy", |status| condition(status, HEALTHY)["status"] == "False")
            .await;
    let message = condition(&gated, HEALTHY)["message"].as_str().unwrap().to_owned();
    let told = "/readyz responded with ok, but the cluster does not pass a check: check: AllNodesUp: 1 of 2 Nodes are ready";
    assert!(message.starts_with(told), "{message}");
    assert_eq!(condition(&gated, REACHABLE)["status"], "True", "{gated}");
    assert_eq!(of_check(&gated, "Bad"), Value::Null, "{gated}");
    until(&hub, "two", "without checks", |it| of_check(it, "NoRight").is_null() && is_healthy(it))
        .await;

    // After a restart with a document that cannot be used the gate stays shut, and its condition stays.
    patch(UNUSABLE);
    drop(manager);
    let manager = start(&hub, &planted, &[&flag]);
    manager
        .line_where("it is told", |line| line.contains("until it can be used no check runs"))
        .await;
    set_ready(&at_home, "two", "True");
    assert_eq!(manager.metric("clusterhealth_checks_config_unusable", &[]).await, Some(1.0));
    let code = [("flavour", "capi"), ("code", "check")];
    manager.until_metric("clusterhealth_probes_total", &code, |it| it >= 5.0).await;
    let status = hub.object(&of("one"))["status"].clone();
    assert_eq!(condition(&status, HEALTHY)["status"], "False", "{status}");
    assert_eq!(of_check(&status, "AllNodesUp"), of_check(&gated, "AllNodesUp"));
    patch(GATE);
    until(&hub, "one", "healthy again", is_healthy).await;
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
    clear(&at_home);
}

/// rule:a-shared-status-is-shared
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_has_a_condition_for_each_check_next_to_those_of_others() {
    let namespace = profiles::NAMESPACE;
    let (hub, member) = futures::join!(profiles::hub(), member());
    hub.run(&format!("apply --server-side -f {}", profiles::CRD));
    hub.await_crds();
    let at_home = Shell::new(member.admin_kubeconfig());
    let [able, _] = accounts(&member, &at_home).await;
    let planted = Planted::default();
    planted.plant(&able.token);
    hub.run(&format!("apply -n {namespace} -f config/rbac/namespaces/health-checks.yaml"));
    hub.create(&config_in(
        namespace,
        "checks:
        - {name: Apps, flavours: [clusterprofile], interval: 30s, apiService: {name: v1.apps}}
        - {name: Metrics, selector: tier=web, interval: 30s, apiService: {name: v1beta1.metrics.k8s.io}}
        - {name: OfOthers, flavours: [capi], interval: 30s, nodesReady: {}}",
    ));
    profiles::create_token(&hub, &able.token);
    profiles::create_profile(&hub, "one", "another", &member);
    let joined = json!({"type": "Joined", "status": "True", "reason": "Joined", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    hub.patch_status(&profiles::of("one"), &json!({"conditions": [joined]}));
    let flag = format!("--cluster-health-checks-config={namespace}/{CONFIG}");
    let manager = profiles::start(&hub, &planted, &[&flag]);
    let checked = profiles::until(&hub, "one", "checked", |it| {
        of_check(it, "Apps")["status"] == "True" && of_check(it, "Metrics")["status"] == "False"
    })
    .await;
    assert_eq!(of_check(&checked, "Metrics")["reason"], "CheckFailed", "{checked}");
    assert_eq!(of_check(&checked, "OfOthers"), Value::Null, "{checked}");
    hub.patch(
        &format!("-n {namespace} configmap {CONFIG}"),
        "merge",
        &config_in(namespace, "checks: [{name: Apps, interval: 30s, apiService: {name: v1.apps}}]"),
    );
    let fewer = profiles::until(&hub, "one", "without the removed check", |it| {
        of_check(it, "Metrics").is_null()
    })
    .await;
    assert_eq!(of_check(&fewer, "Apps")["status"], "True", "{fewer}");
    for status in [&checked, &fewer] {
        assert_eq!(condition(status, "Joined"), joined);
        assert!(is_healthy(status), "{status}");
    }
    assert!(!manager.has_said("Missing permission"), "{:?}", manager.lines());
    at_home.run("delete -f config/member/checks.yaml");
}
