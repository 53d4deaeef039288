//! Clusters stay in the account that they were made in, and each has its own owner id.

use serde_json::{Value, json};

use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

const ACCOUNT: &str = "aws.cluster.x-k8s.io/account-id";
const ABANDON: &str = "aws.cluster.x-k8s.io/allow-abandon";
const OWNER: &str = "aws.cluster.x-k8s.io/owner-id";

/// Keys of another account, which moto knows by the role.
pub(crate) async fn other_keys(stage: &Stage) -> [String; 3] {
    keys_of(stage, "111111111111").await
}

pub(crate) async fn keys_of(stage: &Stage, account: &str) -> [String; 3] {
    let role = format!("arn:aws:iam::{account}:role/other");
    let assume = [("Action", "AssumeRole"), ("RoleArn", &*role), ("RoleSessionName", "other")];
    let answer = stage.proxy.upstream().sts(REGION, &assume).await;
    ["AccessKeyId", "SecretAccessKey", "SessionToken"].map(|name| {
        let (_, after) = answer.split_once(&format!("<{name}>")).unwrap();
        after.split('<').next().unwrap().to_owned()
    })
}

pub(crate) fn calls_but_sts(stage: &Stage) -> Vec<String> {
    let calls = stage.proxy.calls().into_iter().map(|call| call.action);
    calls.filter(|action| action != "GetCallerIdentity").collect()
}

pub(crate) fn says(kind: &'static str, text: &'static str) -> impl Fn(&Value) -> bool {
    move |it| condition(it, kind)["message"].as_str().is_some_and(|said| said.contains(text))
}

/// rule:an-awscluster-stays-in-its-account, rule:one-awscluster-for-an-owner-id
#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_another_account_make_no_call_neither_to_keep_nor_to_delete() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let manager = stage.start_with_aws("");
    for name in ["kept", "gone", "means-another"] {
        stage.create(&ours(name, &spec("10.1.1.0/24")));
        stage.create(&cluster(name));
    }
    for name in ["kept", "gone", "means-another"] {
        let made = stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
        assert_eq!(made["metadata"]["annotations"][ACCOUNT], "123456789012");
    }
    let of_kept = stage.find(AWS_CLUSTERS, "kept").await.unwrap()["metadata"]["uid"].clone();
    stage.end(manager).await;

    // A copied manifest.
    let mut copy = ours("copy", &spec("10.1.1.0/24"));
    copy["metadata"]["annotations"] = json!({OWNER: of_kept});
    stage.create(&copy);
    stage.create(&cluster("copy"));
    let [key, secret, token] = other_keys(&stage).await;
    // One that was never made, with its account from a backup.
    let mut fresh = ours("fresh", &spec("10.1.1.0/24"));
    fresh["metadata"]["annotations"] = json!({ACCOUNT: "123456789012"});
    stage.create(&fresh);
    stage.create(&cluster("fresh"));
    stage.proxy.forget();
    let made = stage.totals().await;
    let manager = stage
        .launch("--leader-elect=false")
        .env("AWS_ACCESS_KEY_ID", &key)
        .env("AWS_SECRET_ACCESS_KEY", &secret)
        .env("AWS_SESSION_TOKEN", &token)
        .start();
    stage.run(&format!("delete {CLUSTERS} gone --wait=false"));
    let wrong = "the credentials belong to account 111111111111, but the cluster is in account 123456789012";
    let kept = stage
        .until(
            AWS_CLUSTERS,
            "kept",
            "is in another account",
            says("PrincipalCredentialRetrieved", wrong),
        )
        .await;
    assert_eq!(condition(&kept, "PrincipalCredentialRetrieved")["reason"], "WrongAccount");
    assert_eq!(kept["status"]["ready"], true);
    stage.until(AWS_CLUSTERS, "gone", "cannot be deleted", says("Deleting", wrong)).await;
    let belongs = |it: &Value| {
        let ready = condition(it, "Ready");
        let text = ready["message"].as_str().unwrap_or_default();
        ready["reason"] == "OwnershipConflict" && text.contains("belongs to default/kept")
    };
    stage.until(AWS_CLUSTERS, "copy", "has the owner id of another", belongs).await;
    let is_wrong = says("PrincipalCredentialRetrieved", wrong);
    stage.until(AWS_CLUSTERS, "fresh", "is in another account", is_wrong).await;
    // `fresh` may be abandoned; `gone` may not, because resources of it are known.
    for name in ["gone", "fresh"] {
        stage.run(&format!("annotate {AWS_CLUSTERS} {name} {ABANDON}=true"));
    }
    stage.run(&format!("delete {CLUSTERS} fresh --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "fresh").await;
    stage.has_event_about("Abandoned", "AWS is not accessible").await;
    assert!(stage.find(AWS_CLUSTERS, "gone").await.is_some(), "it has a network");
    assert_eq!(calls_but_sts(&stage), [""; 0]);
    stage.end(manager).await;

    // Other credentials than those of the process are meant.
    let role =
        json!({"spec": {"identityRef": {"kind": "AWSClusterRoleIdentity", "name": "other"}}});
    stage.patch(&format!("{AWS_CLUSTERS} means-another"), "merge", &role);
    stage.run(&format!("annotate {AWS_CLUSTERS} means-another aws.cluster.x-k8s.io/adopt=true"));
    stage.run(&format!("delete {CLUSTERS} means-another --wait=false"));
    stage.run(&format!("annotate {AWS_CLUSTERS} copy {OWNER}-"));
    let manager = stage.start_with_aws("");
    let refused = says("Deleting", "cannot use AWSClusterRoleIdentity other");
    stage.until(AWS_CLUSTERS, "means-another", "cannot be deleted", refused).await;
    stage.until_gone(AWS_CLUSTERS, "gone").await;
    stage.until(AWS_CLUSTERS, "copy", "is ready", is_ready).await;
    let now = stage.totals().await;
    assert_eq!(now["Vpcs"], made["Vpcs"], "one is gone and one is made: {now:?}");
    stage.patch(
        &format!("{AWS_CLUSTERS} means-another"),
        "merge",
        &json!({"spec": {"identityRef": {"kind": "AWSClusterControllerIdentity", "name": "default"}}}),
    );
    for name in ["kept", "copy"] {
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    }
    for name in ["means-another", "kept", "copy"] {
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
