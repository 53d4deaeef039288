//! Clusters stay in their AWS account although the product dies between the steps in which the
//! account becomes known, the credentials change within one reconciliation, or STS does not answer.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::Process;
use tests::aws_proxy::{Call, Fate};
use tests::temp_dir::TempDir;

use crate::aws_accounts::{calls_but_sts, other_keys, says};
use crate::aws_crashes::end;
use crate::aws_stage::{Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

const ACCOUNT: &str = "aws.cluster.x-k8s.io/account-id";
const WRONG: &str =
    "the credentials belong to account 111111111111, but the cluster is in account 123456789012";
const STS: &str = "GetCallerIdentity";

/// Whether a process dies of a call.
type Dies = fn(&Call) -> bool;

/// Credentials that a test can change while the product has them: a process of the profile prints
/// them, and they are asked for before each call.
pub(crate) struct Keys {
    _dir: TempDir,
    file: PathBuf,
    config: PathBuf,
    other: [String; 3],
}

impl Keys {
    pub(crate) async fn new(stage: &Stage) -> Self {
        let dir = TempDir::new("keys").unwrap();
        let (file, script) = (dir.join("keys.sh"), dir.join("print.sh"));
        let print = format!(
            ". {}\nprintf '{{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"%s\",\"SessionToken\":\"%s\",\
             \"Expiration\":\"%s\"}}' \"$key\" \"$secret\" \"$token\" \"$(date -u -d '+5 seconds' +%FT%TZ)\"\n",
            file.display()
        );
        std::fs::write(&script, print).unwrap();
        let config = dir.join("config");
        let profile = format!("[default]\ncredential_process = /bin/sh {}\n", script.display());
        std::fs::write(&config, profile).unwrap();
        let other = other_keys(stage).await;
        let keys = Self { _dir: dir, file, config, other };
        keys.be_right();
        keys
    }

    /// Switches to the credentials of the account of the clusters.
    pub(crate) fn be_right(&self) {
        write_keys(&self.file, &["AKIATEST", "planted-secret", "none"].map(str::to_owned));
    }

    /// Switches to the credentials of another account at the first call of this name.
    pub(crate) fn change_at(&self, stage: &Stage, action: &'static str) {
        let (file, other, mut is_done) = (self.file.clone(), self.other.clone(), false);
        stage.proxy.decide(move |_, call| {
            if call.action == action && !is_done {
                write_keys(&file, &other);
                is_done = true;
            }
            Fate::Pass
        });
    }

    pub(crate) fn start(&self, stage: &Stage, args: &str) -> Process {
        let launch = stage.launch(args).args(["--leader-elect=false"]);
        let launch = launch.env("AWS_ACCESS_KEY_ID", "").env("AWS_SECRET_ACCESS_KEY", "");
        launch.env("AWS_CONFIG_FILE", self.config.to_str().unwrap()).start()
    }

    /// Calls with the credentials of the other account, but to ask whose they are.
    pub(crate) fn strayed(&self, stage: &Stage) -> Vec<Call> {
        let mut calls = stage.proxy.calls();
        calls.retain(|call| call.key == self.other[0] && call.action != STS);
        calls
    }
}

fn write_keys(file: &PathBuf, [key, secret, token]: &[String; 3]) {
    let next = file.with_extension("next");
    std::fs::write(&next, format!("key='{key}'\nsecret='{secret}'\ntoken='{token}'\n")).unwrap();
    std::fs::rename(&next, file).unwrap();
}

/// rule:an-awscluster-stays-in-its-account, rule:held-before-the-first-write
#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_between_the_steps_to_the_first_write_leaves_the_account_known_before_it()
{
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let name = "stepwise";
    stage.create(&ours(name, &spec("10.1.1.0/24")));
    stage.create(&cluster(name));
    // Whether it dies of a call, how, whether the account is known then, and how many VPCs there are.
    let steps: [(Dies, Fate, bool, usize); 4] = [
        (|call| call.action == STS, Fate::CrashBefore, false, 0),
        (|call| call.action == STS, Fate::CrashAfter, false, 0),
        (|call| call.action != STS, Fate::CrashBefore, true, 0),
        (|call| call.action == "CreateVpc", Fate::CrashAfter, true, 1),
    ];
    for (dies, fate, is_known, vpcs) in steps {
        stage.proxy.decide(move |_, call| if dies(call) { fate.clone() } else { Fate::Pass });
        let manager = stage.start_with_aws("");
        stage.died().await;
        end(&stage, manager).await;
        let object = stage.find(AWS_CLUSTERS, name).await.unwrap();
        let metadata = &object["metadata"];
        let account = if is_known { json!("123456789012") } else { Value::Null };
        assert_eq!(metadata["annotations"][ACCOUNT], account, "{metadata:#}");
        assert_eq!(metadata["annotations"]["aws.cluster.x-k8s.io/owner-id"], metadata["uid"]);
        let made = stage.totals().await["Vpcs"] - before["Vpcs"];
        assert_eq!(made, vpcs, "{metadata:#}");
    }

    let [key, secret, token] = other_keys(&stage).await;
    let manager = stage
        .launch("--leader-elect=false")
        .env("AWS_ACCESS_KEY_ID", &key)
        .env("AWS_SECRET_ACCESS_KEY", &secret)
        .env("AWS_SESSION_TOKEN", &token)
        .start();
    let is_wrong = says("PrincipalCredentialRetrieved", WRONG);
    stage.until(AWS_CLUSTERS, name, "is in another account", is_wrong).await;
    assert_eq!(calls_but_sts(&stage), [""; 0]);
    stage.end(manager).await;

    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
    assert_eq!(stage.totals().await["Vpcs"], before["Vpcs"] + 1, "there is no second network");
    stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    stage.until_gone(AWS_CLUSTERS, name).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

/// rule:a-request-reaches-one-account
#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_change_within_a_reconciliation_reach_nothing_in_their_account() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let (keys, name) = (Keys::new(&stage).await, "swapped");
    stage.create(&ours(name, &spec("10.1.1.0/24")));
    stage.create(&cluster(name));

    keys.change_at(&stage, "CreateSubnet");
    let manager = keys.start(&stage, "");
    let is_wrong = says("PrincipalCredentialRetrieved", WRONG);
    stage.until(AWS_CLUSTERS, name, "is in another account", is_wrong).await;
    assert!(stage.writes().contains(&"CreateSubnet".to_owned()), "{:?}", stage.writes());
    assert_eq!(keys.strayed(&stage), []);
    stage.end(manager).await;

    keys.be_right();
    keys.change_at(&stage, "DeleteSubnet");
    let manager = keys.start(&stage, "");
    stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
    stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    stage.until(AWS_CLUSTERS, name, "cannot be deleted", says("Deleting", WRONG)).await;
    assert_eq!(keys.strayed(&stage), []);
    assert_eq!(stage.added(&before).await["Vpcs"], 1);
    stage.end(manager).await;

    keys.be_right();
    stage.proxy.forget();
    let manager = keys.start(&stage, "");
    stage.until_gone(AWS_CLUSTERS, name).await;
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}

/// rule:an-awscluster-stays-in-its-account
#[tokio::test(flavor = "multi_thread")]
async fn while_sts_does_not_answer_aws_is_read_only() {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    let manager = stage.start_with_aws("");
    for name in ["kept", "gone"] {
        stage.create(&ours(name, &spec("10.1.1.0/24")));
        stage.create(&cluster(name));
    }
    for name in ["kept", "gone"] {
        stage.until(AWS_CLUSTERS, name, "is ready", is_ready).await;
    }
    stage.end(manager).await;

    stage.create(&ours("fresh", &spec("10.1.1.0/24")));
    stage.create(&cluster("fresh"));
    // Something to repair, and something to delete.
    let wider = json!({"spec": {"additionalTags": {"team": "a"}}});
    stage.patch(&format!("{AWS_CLUSTERS} kept"), "merge", &wider);
    stage.proxy.forget();
    let lost = |_, call: &Call| if call.action == STS { Fate::CallLost } else { Fate::Pass };
    stage.proxy.decide(lost);
    let manager = stage.start_with_aws("");
    let unknown = "cannot find the account of the credentials";
    stage.run(&format!("delete {CLUSTERS} gone --wait=false"));
    for name in ["kept", "fresh"] {
        let is_unknown = says("PrincipalCredentialRetrieved", unknown);
        let found = stage.until(AWS_CLUSTERS, name, "has no known account", is_unknown).await;
        assert_eq!(condition(&found, "PrincipalCredentialRetrieved")["reason"], "AccountUnknown");
        assert_eq!(found["status"]["ready"] == true, name == "kept");
    }
    let is_unknown = says("PrincipalCredentialRetrieved", unknown);
    stage
        .until(AWS_CLUSTERS, "gone", "is not deleted", |it| {
            is_unknown(it) && condition(it, "Deleting")["status"] == "True"
        })
        .await;
    let read = calls_but_sts(&stage).iter().filter(|it| it.starts_with("Describe")).count();
    assert!(read > 0 && stage.writes().is_empty(), "{:?}", stage.writes());
    stage.end(manager).await;

    stage.proxy.forget();
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "fresh", "is ready", is_ready).await;
    stage.until_gone(AWS_CLUSTERS, "gone").await;
    for name in ["kept", "fresh"] {
        stage.run(&format!("delete {CLUSTERS} {name} --wait=false"));
    }
    for name in ["kept", "fresh"] {
        stage.until_gone(AWS_CLUSTERS, name).await;
    }
    assert_eq!(stage.totals().await, before, "nothing is left");
    stage.end(manager).await;
}
