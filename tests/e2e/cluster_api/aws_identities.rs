//! AWSClusters with the credentials of upstream's identities, in several AWS accounts at once.

use std::time::Duration;

use serde_json::{Value, json};
use tests::Stopwatch;
use tests::aws_proxy::{Call, Fate};
use tests::poll::poll;

use crate::aws_accounts::{keys_of, says};
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

const ACCOUNT: &str = "aws.cluster.x-k8s.io/account-id";
const OF_PROCESS: &str = "123456789012";
pub(crate) const OF_ROLE: &str = "111111111111";
pub(crate) const OF_KEYS: &str = "222222222222";
const USAGE: &str = "PrincipalUsageAllowed";
const CREDENTIALS: &str = "PrincipalCredentialRetrieved";

fn identity(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": format!("AWSCluster{kind}Identity"), "metadata": {"name": name}, "spec": spec})
}

/// A role of another account that namespaces of team a may use.
pub(crate) fn role() -> Value {
    let source = json!({"kind": "AWSClusterControllerIdentity", "name": "default"});
    let spec = json!({"roleARN": format!("arn:aws:iam::{OF_ROLE}:role/icm"), "sourceIdentityRef": source,
        "allowedNamespaces": {"selector": {"matchLabels": {"team": "a"}}}});
    identity("Role", "role", &spec)
}

pub(crate) fn keys() -> Value {
    let spec = json!({"secretRef": "aws-keys", "allowedNamespaces": {"list": ["default"]}});
    identity("Static", "keys", &spec)
}

pub(crate) fn secret([key, secret, token]: &[String; 3]) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "aws-keys", "namespace": "kube-system"},
        "stringData": {"AccessKeyID": key, "SecretAccessKey": secret, "SessionToken": token}})
}

/// An AWSCluster that uses an identity.
pub(crate) fn using(name: &str, kind: &str) -> Value {
    let mut spec = spec("10.1.1.0/24");
    spec["identityRef"] = json!({"kind": format!("AWSCluster{kind}Identity"), "name": name});
    ours(name, &spec)
}

/// The keys that sign the calls about a cluster.
fn keys_for(stage: &Stage, name: &str) -> Vec<String> {
    let tag = format!("cluster/{name}");
    let calls = stage.proxy.calls().into_iter().filter(|call| {
        call.parameters.iter().any(|(key, value)| key.contains(&tag) || value.contains(&tag))
    });
    let mut keys: Vec<_> = calls.map(|call| call.key).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Wants another tag, so that there is something to write.
fn tag(stage: &Stage, name: &str, value: &str) {
    let wanted = json!({"spec": {"additionalTags": {"value": value}}});
    stage.patch(&format!("{AWS_CLUSTERS} {name}"), "merge", &wanted);
}

async fn tagged(stage: &Stage, value: &'static str) {
    poll(&format!("the tag {value} is written"), async || {
        let calls = stage.proxy.calls();
        let mut writes = calls.iter().filter(|call| call.action == "CreateTags");
        writes.find(|call| call.parameters.values().any(|it| it == value)).map(drop)
    })
    .await;
}

/// rule:an-awscluster-stays-in-its-account, rule:a-request-reaches-one-account
#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_several_accounts_are_kept_at_once_and_a_secret_is_rotated_live() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    stage.run("label namespace default team=a --overwrite");
    let first = keys_of(&stage, OF_KEYS).await;
    stage.create_all(&[role(), keys(), secret(&first)]);
    for name in ["role", "keys"] {
        stage.create(&using(name, if name == "role" { "Role" } else { "Static" }));
        stage.create(&cluster(name));
    }
    stage.create(&ours("own", &spec("10.1.1.0/24")));
    stage.create(&cluster("own"));
    let manager = stage.start_with_aws("");
    for (name, account) in [("own", OF_PROCESS), ("role", OF_ROLE), ("keys", OF_KEYS)] {
        let made = stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
        assert_eq!(made["metadata"]["annotations"][ACCOUNT], account);
        assert_eq!(condition(&made, USAGE)["status"], "True");
    }
    assert_eq!(stage.added(&before).await["Vpcs"], 1, "each network is in its account");
    assert_eq!(keys_for(&stage, "own"), ["AKIATEST"]);
    assert_eq!(keys_for(&stage, "keys"), [&*first[0]]);
    let of_role = keys_for(&stage, "role");
    assert_eq!(of_role.len(), 1, "one session is used");
    assert!(!["AKIATEST", &*first[0]].contains(&&*of_role[0]), "{of_role:?}");
    let mut calls = stage.proxy.calls().into_iter();
    let assumed = calls.find(|call| call.action == "AssumeRole").unwrap();
    assert_eq!((&*assumed.key, assumed.parameter("RoleSessionName")), ("AKIATEST", "icm-role"));
    let found = stage.object("secret aws-keys -n kube-system");
    assert_eq!(found["metadata"]["ownerReferences"][0]["name"], "keys");

    let second = keys_of(&stage, OF_KEYS).await;
    let rotated = json!({"stringData": secret(&second)["stringData"]});
    stage.patch("secret aws-keys -n kube-system", "merge", &rotated);
    stage.proxy.forget();
    tag(&stage, "keys", "rotated");
    tagged(&stage, "rotated").await;
    assert_eq!(keys_for(&stage, "keys"), [&*second[0]]);
    assert!(stage.proxy.calls().iter().all(|call| call.key != first[0]), "the old key is not used");
    for secret in [&first[1], &second[1], &first[2], &second[2]] {
        assert!(!manager.has_said(secret), "the log has a secret");
    }
    for name in ["own", "role", "keys"] {
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    }
    for name in ["own", "role", "keys"] {
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.run("delete secret aws-keys -n kube-system");
    stage.end(manager).await;
}

/// rule:an-awscluster-stays-in-its-account
#[tokio::test(flavor = "multi_thread")]
async fn without_a_permitted_identity_nothing_is_written_and_a_deletion_names_it() {
    let Some(stage) = Stage::set().await else { return };
    stage.run("label namespace default team=a --overwrite");
    stage.create(&role());
    stage.create(&using("role", "Role"));
    stage.create(&cluster("role"));
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "role", "is ready", is_ready).await;

    stage.run("label namespace default team-");
    let refused = says(USAGE, "Namespace is not permitted to use AWSClusterRoleIdentity: role");
    let found = stage.until(AWS_CLUSTERS, "role", "is not permitted", &refused).await;
    assert_eq!(condition(&found, USAGE)["reason"], "PrincipalUsageUnauthorized");
    assert_eq!(found["status"]["ready"], true);
    stage.proxy.forget();
    tag(&stage, "role", "unpermitted");
    let is_judged = |it: &Value| it["status"]["observedGeneration"] == it["metadata"]["generation"];
    stage.until(AWS_CLUSTERS, "role", "is judged again", is_judged).await;
    assert_eq!(stage.proxy.calls(), []);
    stage.run("label namespace default team=a");
    tagged(&stage, "unpermitted").await;

    // STS refuses, as when the trust policy of the role was changed.
    stage.end(manager).await;
    stage.proxy.decide(|_, call| match &*call.action {
        "AssumeRole" => Fate::Refuse("AccessDenied"),
        _ => Fate::Pass,
    });
    let manager = stage.start_with_aws("");
    let refused = says(CREDENTIALS, "cannot assume the role arn:aws:iam::111111111111:role/icm: ");
    let found = stage.until(AWS_CLUSTERS, "role", "has no session", refused).await;
    let shown = condition(&found, CREDENTIALS);
    assert_eq!(shown["reason"], "CredentialProviderBuildFailed");
    assert!(shown["message"].as_str().unwrap().contains("AccessDenied"), "{shown}");
    stage.end(manager).await;
    stage.proxy.decide(|_, _| Fate::Pass);

    let manager = stage.start_with_aws("");
    stage.run("delete awsclusterroleidentity role");
    stage.run(&format!("delete {CLUSTERS} role --wait=false"));
    let lost = says(
        "Deleting",
        "cannot use AWSClusterRoleIdentity role: it is not served or does not exist",
    );
    let blocked = stage.until(AWS_CLUSTERS, "role", "cannot be deleted", lost).await;
    let shown = condition(&blocked, CREDENTIALS);
    assert_eq!(shown["reason"], "PrincipalCredentialRetrievalFailed");
    stage.create(&role());
    stage.until_gone(AWS_CLUSTERS, "role").await;
    stage.end(manager).await;
}

/// A region whose STS does not answer stops only its own clusters.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_assumed_in_the_region_of_each_cluster() {
    const WEST: &str = "us-west-2";
    let Some(stage) = Stage::set().await else { return };
    stage.run("label namespace default team=a --overwrite");
    stage.create(&role());
    let mut west = using("west", "Role");
    west["spec"] = serde_json::from_str(&west["spec"].to_string().replace(REGION, WEST)).unwrap();
    west["spec"]["identityRef"]["name"] = json!("role");
    stage.create_all(&[using("role", "Role"), west, cluster("role"), cluster("west")]);
    stage.proxy.decide(|_, call| match (&*call.action, &*call.region) {
        ("AssumeRole", REGION) => Fate::Refuse("AccessDenied"),
        _ => Fate::Pass,
    });
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "west", "is ready", is_ready).await;
    let refused = says(CREDENTIALS, "AccessDenied");
    stage.until(AWS_CLUSTERS, "role", "has no session", refused).await;
    let calls = stage.proxy.calls().into_iter().filter(|call| call.action == "AssumeRole");
    let mut regions: Vec<_> = calls.map(|call| call.region).collect();
    regions.sort();
    assert_eq!(regions, [REGION, WEST]);
    stage.end(manager).await;
}

/// rule:an-awscluster-stays-in-its-account
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_ends_at_its_next_call_when_another_identity_is_named() {
    let Some(stage) = Stage::set().await else { return };
    stage.run("label namespace default team=a --overwrite");
    let mut second = role();
    second["metadata"]["name"] = json!("second");
    stage.create_all(&[role(), second, using("role", "Role"), cluster("role")]);
    stage.proxy.decide(|_, call| {
        if call.is_write() { Fate::Delay(Duration::from_secs(2)) } else { Fate::Pass }
    });
    let manager = stage.start_with_aws("");
    let writes = || {
        let calls = stage.proxy.calls().into_iter();
        calls.filter(Call::is_write).map(|call| call.key).collect::<Vec<_>>()
    };
    poll("the first write is under way", async || writes().first().map(drop)).await;
    let other = json!({"spec": {"identityRef": {"name": "second"}}});
    stage.patch(&format!("{AWS_CLUSTERS} role"), "merge", &other);
    let written = writes().len();
    let old = writes()[0].clone();
    poll("the other session writes", async || writes().iter().find(|key| **key != old).map(drop))
        .await;
    let of_old = writes().iter().filter(|key| **key == old).count();
    assert!(of_old <= written + 2, "{of_old} writes with the old session, {written} before");
    stage.proxy.decide(|_, _| Fate::Pass);
    stage.until(AWS_CLUSTERS, "role", "is ready", is_ready).await;
    stage.end(manager).await;
}

/// Each look at the identities would wait ten seconds for the list, and there are several.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_of_identities_that_cannot_be_listed_is_waited_for_once() {
    let Some(stage) = Stage::set().await else { return };
    let listed = ["awsclusters", "awsclustercontrolleridentities", "awsclusterroleidentities"];
    let rights = json!([{"op": "replace", "path": "/rules/2/resources", "value": listed}]);
    stage.patch("clusterrole infra-controller-manager-cluster-api", "json", &rights);
    let manager = stage.start_with_aws("");
    let make = async |name: &str| {
        stage.create_all(&[ours(name, &spec("10.1.1.0/24")), cluster(name)]);
        stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
    };
    make("first").await;
    let watch = Stopwatch::start();
    make("second").await;
    let took = watch.elapsed();
    println!("the second is ready after {took:?}");
    let is_refused =
        |line: &str| line.contains("awsclusterstaticidentities") && line.contains("403");
    manager.line_where("the list is refused", is_refused).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    stage.run("apply -f config/rbac/cluster-api.yaml");
    drop(manager);
}

/// Upstream's webhooks refuse the same.
#[tokio::test(flavor = "multi_thread")]
async fn identities_are_as_immutable_as_upstreams_and_a_reference_is_not_removed() {
    let hub = crate::scene::hub().await;
    let allowed = json!({"allowedNamespaces": {}});
    assert!(hub.create_refused(&identity("Controller", "other", &allowed)).contains("only name"));
    // As clients in Go write it.
    let written = json!({"allowedNamespaces": {"list": null, "selector": {}}});
    hub.create_all(&[identity("Controller", "default", &written), role(), keys()]);
    let kept = hub.object("awsclustercontrolleridentity default");
    assert_eq!(kept["spec"], written);
    let mut sourceless = role();
    sourceless["metadata"]["name"] = json!("sourceless");
    sourceless["spec"].as_object_mut().unwrap().remove("sourceIdentityRef");
    assert!(hub.create_refused(&sourceless).contains("sourceIdentityRef"));
    hub.create(&using("keys", "Static"));
    let none = r#"{"spec":{"identityRef":null}}"#;
    for (object, patch, message) in [
        ("awsci default", r#"{"spec":{"allowedNamespaces":null}}"#, "the spec does not change"),
        ("awsci default", r#"{"spec":null}"#, "the spec does not change"),
        ("awssi keys", r#"{"spec":{"secretRef":"other"}}"#, "secretRef does not change"),
        ("awsri role", r#"{"spec":{"durationSeconds":899}}"#, "900"),
        (&format!("{AWS_CLUSTERS} keys"), none, "identityRef is not removed"),
    ] {
        let refused = hub.refused(&format!("patch {object} --type=merge -p {patch}"));
        assert!(refused.contains(message), "{object} {patch}: {refused}");
    }
}
