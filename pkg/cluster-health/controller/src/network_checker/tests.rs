use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use validation::CheckResult;

use super::*;

fn checker(policy: DialPolicy) -> NetworkChecker {
    let options = NetworkOptions {
        ssh: true,
        import: true,
        policy,
        insecure_without_ca: false,
        secret_namespace: None,
    };
    NetworkChecker::new(options).unwrap()
}

/// A checker that may dial this host.
fn at_home() -> NetworkChecker {
    checker(DialPolicy::default())
}

/// The policy of the shipped manifests.
fn denied_here() -> DialPolicy {
    DialPolicy::new(&["127.0.0.0/8", "::1/128"].map(str::to_owned), &[]).unwrap()
}

async fn answers(
    checker: &NetworkChecker,
    questions: &[Question],
    object: &Value,
) -> NetworkChecks {
    let end = Instant::now() + Duration::from_secs(60);
    let objects = StoredObjects::new(Vec::new(), None);
    checker.answers(Asker::Command, questions, object, &objects, end).await.known
}

fn code(code: &str) -> CheckResult {
    CheckResult::Failed(code.to_owned())
}

/// A server that says this to everybody, and its address.
async fn saying(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(words).await.unwrap();
        }
    });
    address.to_string()
}

/// rule:the-network-is-asked-with-care
#[tokio::test]
async fn the_api_server_is_not_dialled_by_name_or_by_number() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let own = ["127.0.0.1", "::1"].map(|ip| (ip.parse::<std::net::IpAddr>().unwrap(), port).into());
    let guarded = checker(DialPolicy::default().without(own.to_vec()));
    let target = format!("localhost:{port}");
    let question = [Question::Tcp(target.clone())];
    let known = answers(&guarded, &question, &json!({})).await;
    assert_eq!(known.tcp[&target], code("address-denied"));
    let known = answers(&checker(DialPolicy::default()), &question, &json!({})).await;
    assert_eq!(known.tcp[&target], CheckResult::Passed);
}

#[tokio::test]
async fn each_question_has_an_answer_or_a_code() {
    let checker = at_home();
    let (ssh, web) = (saying(b"SSH-2.0-x\r\n").await, saying(b"HTTP/1.1 200\r\n\r\n").await);
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let questions: Vec<Question> = [
        Question::Ssh(ssh.clone()),
        Question::Ssh(closed.clone()),
        Question::Tcp(web.clone()),
        Question::Tcp("no-such-host.invalid:1".to_owned()),
        Question::Tcp("no port".to_owned()),
    ]
    .into();
    let known = answers(&checker, &questions, &json!({})).await;
    assert_eq!(known.ssh[&ssh], CheckResult::Passed);
    assert_eq!(known.ssh[&closed], code("connect-refused"));
    assert_eq!(known.tcp[&web], CheckResult::Passed);
    assert_eq!(known.tcp["no-such-host.invalid:1"], code("dns"));
    assert_eq!(known.tcp["no port"], code("bad-endpoint"));
}

/// rule:the-network-is-asked-with-care
#[tokio::test]
async fn this_host_is_not_dialled_by_name_or_by_number_where_that_is_denied() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let checker = checker(denied_here());
    let targets = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let questions = targets.clone().map(Question::Tcp);
    let known = answers(&checker, &questions, &json!({})).await;
    for target in targets {
        assert_eq!(known.tcp[&target], code("address-denied"), "{target}");
    }
    let cluster = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
        "metadata": {"name": "one"}, "spec": {"type": "Imported",
            "clusterCredentialRef": {"name": "cc"},
            "addresses": [{"type": "Real", "host": "127.0.0.1", "port": port}]}});
    let credential = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
        "metadata": {"name": "cc"}, "clusterName": "one", "token": "planted"});
    let objects = StoredObjects::new(vec![credential], None);
    let questions = [Question::Credential("cc".to_owned()), Question::Import("one".to_owned())];
    let end = Instant::now() + Duration::from_secs(60);
    let known = checker.answers(Asker::Command, &questions, &cluster, &objects, end).await.known;
    assert_eq!(known.credentials["cc"], code("address-denied"));
    assert!(known.imports.is_empty(), "the answer is unknown");
    let quiet = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(quiet.is_err(), "it was dialled");
}

#[tokio::test]
async fn what_is_turned_off_or_not_answered_in_time_is_not_known() {
    let policy = DialPolicy::new(&[], &[]).unwrap();
    let options = NetworkOptions {
        ssh: false,
        import: false,
        policy,
        insecure_without_ca: false,
        secret_namespace: None,
    };
    let checker = NetworkChecker::new(options).unwrap();
    let questions = [Question::Ssh("10.0.0.1:22".into()), Question::Import("one".into())];
    assert_eq!(answers(&checker, &questions, &json!({})).await, NetworkChecks::default());

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let question = [Question::Ssh(silent.local_addr().unwrap().to_string())];
    let objects = StoredObjects::new(Vec::new(), None);
    let end = Instant::now();
    let answers = at_home().answers(Asker::Command, &question, &json!({}), &objects, end).await;
    assert_eq!(answers.known, NetworkChecks::default(), "the time of the request is over");
    assert_eq!(answers.not_checked.len(), 1);
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[tokio::test]
async fn nothing_is_dialled_for_an_unknown_caller_or_under_a_name_that_is_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let questions = [Question::Tcp(target.clone()), Question::Ssh(target.clone())];
    let objects = StoredObjects::new(Vec::new(), None);
    let end = Instant::now() + Duration::from_secs(60);
    for asker in [Asker::UnauthenticatedReview, Asker::AuthenticatedReview { name_is_taken: true }]
    {
        let answers = at_home().answers(asker, &questions, &json!({}), &objects, end).await;
        assert_eq!((answers.known, answers.not_checked.len()), (NetworkChecks::default(), 2));
        let quiet = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
        assert!(quiet.is_err(), "{asker:?}: it was dialled");
    }
    let known = Asker::AuthenticatedReview { name_is_taken: false };
    let answers = at_home().answers(known, &questions[..1], &json!({}), &objects, end).await;
    assert_eq!(answers.known.tcp[&target], CheckResult::Passed, "the others could be dialled");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_gets_no_turn_says_so_and_is_not_taken_for_unanswered() {
    let checker = at_home();
    let _all = checker.turns.acquire_many(u32::try_from(AT_ONCE).unwrap()).await.unwrap();
    let objects = StoredObjects::new(Vec::new(), None);
    let end = Instant::now() + Duration::from_secs(8);
    let question = [Question::Tcp("127.0.0.1:1".into())];
    let answers = checker.answers(Asker::Command, &question, &json!({}), &objects, end).await;
    assert!(answers.is_busy && answers.not_checked.is_empty());
}

#[tokio::test]
async fn a_credential_that_is_missing_or_for_another_cluster_is_not_checked() {
    let cluster = |spec: Value| {
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
            "metadata": {"name": "one"}, "spec": spec})
    };
    let address = json!([{"type": "Real", "host": "127.0.0.1", "port": 1}]);
    let named = json!({"name": "cc"});
    let credential = |of: &str| {
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
            "metadata": {"name": "cc"}, "clusterName": of, "token": "planted"})
    };
    let whole = cluster(json!({"clusterCredentialRef": named, "addresses": address}));
    let mut in_secret = credential("one");
    in_secret["token"] = Value::Null;
    in_secret["secretRef"] = json!({"namespace": "n", "name": "s"});
    let end = Instant::now() + Duration::from_secs(60);
    let question = [Question::Credential("cc".to_owned())];
    for (cluster, credentials, why) in [
        (&whole, vec![], "no ClusterCredential cc"),
        (&whole, vec![credential("two")], "clusterName"),
        (&whole, vec![in_secret], "Secret n/s"),
        (&cluster(json!({"clusterCredentialRef": named})), vec![credential("one")], "no address"),
    ] {
        let objects = StoredObjects::new(credentials, None);
        let answers = at_home().answers(Asker::Command, &question, cluster, &objects, end).await;
        assert_eq!(answers.known, NetworkChecks::default(), "{why}");
        assert!(answers.not_checked[0].1.contains(why), "{:?}", answers.not_checked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_says_nothing_takes_three_seconds_and_many_take_no_longer() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let questions: Vec<Question> =
        (1..=12).map(|host| Question::Ssh(format!("127.0.0.{host}:{port}"))).collect();
    let begun = Instant::now();
    let known = answers(&at_home(), &questions, &json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(known.ssh.len(), questions.len());
    assert_eq!(known.ssh[&format!("127.0.0.1:{port}")], code("timeout"));
}
