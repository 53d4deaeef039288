//! Log lines about missing rights.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_server_double::{ApiServer, Reply, client};
use log_capture::Capture;

use super::*;

const NEEDED: &[Permission] = &[
    Permission::new("get", "", "nodes"),
    Permission::new("patch", "", "nodes").subresource("status"),
    Permission::new("update", "example.com", "widgets").in_namespace("ns").named("w"),
];

fn check(client: kube::Client, by_account: bool) -> PermissionCheck {
    PermissionCheck {
        client,
        subject: Subject { account: "fake-account", by_account, manifest: None },
        missing: IntGauge::new("missing", "Missing rights.").unwrap(),
    }
}

/// Checks [`NEEDED`] once against a server that answers so; the metric and the log.
async fn checked(
    by_account: bool,
    answer: impl Fn() -> Reply + Send + Sync + 'static,
) -> (i64, Capture) {
    let captured = Capture::begin();
    let check = check(client(move |_| answer()), by_account);
    check.ask(NEEDED, &mut HashSet::new()).await;
    (check.missing.get(), captured)
}

fn verdict(allowed: bool) -> Reply {
    Reply::Json(201, json!({"status": {"allowed": allowed}}))
}

#[tokio::test]
async fn rights_that_are_there_are_no_news() {
    let (missing, captured) = checked(false, || verdict(true)).await;
    assert_eq!(missing, 0);
    assert!(captured.with("").is_empty(), "{:?}", captured.with(""));
}

#[tokio::test]
async fn each_missing_right_is_counted_and_one_line_with_its_cure() {
    let (missing, captured) = checked(false, || verdict(false)).await;
    assert_eq!(missing, 3);
    let lines = captured.with("Missing permission");
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for (line, right) in lines.iter().zip(NEEDED) {
        for part in [
            "ERROR",
            right.verb,
            right.resource,
            right.subresource,
            &*right.namespace,
            right.name,
            "--use-service-account-credentials=true",
            "kube-system/fake-account",
        ] {
            assert!(line.contains(part), "{part:?} is missing in {line}");
        }
    }
}

#[tokio::test]
async fn to_an_account_without_its_role_the_cure_is_the_role() {
    let (missing, captured) = checked(true, || verdict(false)).await;
    assert_eq!(missing, 3);
    let lines = captured.with("Missing permission");
    for (line, right) in lines.iter().zip([
        "get nodes;",
        "patch nodes/status;",
        "update widgets w in the API group example.com in the namespace ns;",
    ]) {
        let text = format!("service account kube-system/fake-account may not {right} restore");
        assert!(line.contains(&text), "{line}");
    }
    assert!(lines[0].contains("system:controller:fake-account"), "{}", lines[0]);
    assert!(!lines[0].contains("--use-service-account-credentials"), "{}", lines[0]);
}

#[tokio::test]
async fn where_a_manifest_grants_the_rights_the_cure_is_the_manifest() {
    for (by_account, who) in [(true, "kube-system/fake-account"), (false, "--kubeconfig")] {
        let captured = Capture::begin();
        let mut check = check(client(|_| verdict(false)), by_account);
        check.subject.manifest = Some("config/rbac/fake.yaml");
        check.ask(NEEDED, &mut HashSet::new()).await;
        let lines = captured.with("Missing permission");
        assert!(lines[0].contains("apply config/rbac/fake.yaml"), "{}", lines[0]);
        assert!(lines[0].contains(who), "{}", lines[0]);
        assert!(!lines[0].contains("system:controller"), "{}", lines[0]);
    }
}

#[tokio::test]
async fn a_server_that_cannot_tell_is_no_missing_right() {
    let answers: [fn() -> Reply; 4] = [
        || Reply::Refused,
        || Reply::Json(403, json!({"kind": "Status"})),
        || Reply::Json(500, json!({"kind": "Status"})),
        || Reply::Json(201, json!({"kind": "SelfSubjectAccessReview"})),
    ];
    for answer in answers {
        let (missing, captured) = checked(false, answer).await;
        assert_eq!(missing, 0);
        assert!(captured.with("ERROR").is_empty(), "{:?}", captured.with(""));
    }
}

#[tokio::test]
async fn the_question_names_everything_that_a_right_is_about() {
    let server = ApiServer::new(|_| verdict(true));
    check(server.client(), false).ask(NEEDED, &mut HashSet::new()).await;
    let asked = server.asked();
    assert_eq!(asked.len(), NEEDED.len());
    for (right, question) in NEEDED.iter().zip(asked) {
        assert_eq!(question.path(), "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        let wanted = json!({
            "verb": right.verb, "group": right.group, "resource": right.resource,
            "subresource": right.subresource, "namespace": right.namespace, "name": right.name,
        });
        assert_eq!(question.json()["spec"]["resourceAttributes"], wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn rights_are_checked_again_every_few_minutes_and_each_change_is_reported_once() {
    let captured = Capture::begin();
    let granted = Arc::new(AtomicBool::new(false));
    let server = granted.clone();
    let client = client(move |_| verdict(server.load(Ordering::SeqCst)));
    let check = check(client, false);
    let (missing, stop) = (check.missing.clone(), CancellationToken::new());
    let running = tokio::spawn(check.run(NEEDED.to_vec(), stop.clone()));
    let later = |minutes: u64| tokio::time::sleep(Duration::from_secs(60 * minutes));
    later(11).await;
    assert_eq!((missing.get(), captured.with("Missing permission").len()), (3, 3));
    granted.store(true, Ordering::SeqCst);
    later(5).await;
    assert_eq!((missing.get(), captured.with("Permission is granted now").len()), (0, 3));
    granted.store(false, Ordering::SeqCst);
    later(5).await;
    assert_eq!((missing.get(), captured.with("Missing permission").len()), (3, 6));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_tell_changes_nothing_that_was_known() {
    let failing = Arc::new(AtomicBool::new(false));
    let server = failing.clone();
    let check = check(
        client(
            move |_| {
                if server.load(Ordering::SeqCst) { Reply::Refused } else { verdict(false) }
            },
        ),
        false,
    );
    let mut missing = HashSet::new();
    check.ask(NEEDED, &mut missing).await;
    failing.store(true, Ordering::SeqCst);
    check.ask(NEEDED, &mut missing).await;
    assert_eq!(check.missing.get(), 3);
}
