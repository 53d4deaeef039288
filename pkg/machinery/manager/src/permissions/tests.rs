//! What is said of missing rights, and what is not.

use http::Response;
use prometheus::IntGauge;
use tokio::sync::mpsc;

use super::*;
use crate::testing::{Log, Reply};

const NEEDED: &[Permission] = &[
    Permission { verb: "get", group: "", resource: "nodes" },
    Permission { verb: "patch", group: "", resource: "nodes" },
    Permission { verb: "update", group: "example.com", resource: "widgets" },
];

/// Checks [`NEEDED`] against a server that answers so; the metric and the log.
async fn checked(
    by_account: bool,
    answer: impl Fn() -> Reply + Send + Sync + 'static,
) -> (i64, Log) {
    let log = Log::default();
    let _captured = log.capture();
    let missing = IntGauge::new("missing", "Missing rights.").unwrap();
    let subject = Subject { controller: "fake-controller", account: "fake-account", by_account };
    let client = crate::testing::client(move |_| answer());
    check(client, subject, NEEDED, missing.clone()).await;
    (missing.get(), log)
}

fn verdict(allowed: bool) -> Reply {
    Reply::Json(201, json!({"status": {"allowed": allowed}}))
}

#[tokio::test]
async fn rights_that_are_there_are_no_news() {
    let (missing, log) = checked(false, || verdict(true)).await;
    assert_eq!(missing, 0);
    assert!(log.lines("").is_empty(), "{:?}", log.lines(""));
}

#[tokio::test]
async fn each_missing_right_is_counted_and_one_line_with_its_cure() {
    let (missing, log) = checked(false, || verdict(false)).await;
    assert_eq!(missing, 3);
    let lines = log.lines("Missing permission");
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for (line, right) in lines.iter().zip(NEEDED) {
        for part in [
            "ERROR",
            "fake-controller",
            right.verb,
            right.resource,
            "--use-service-account-credentials=true",
            "kube-system/fake-account",
        ] {
            assert!(line.contains(part), "{part:?} is missing in {line}");
        }
    }
}

#[tokio::test]
async fn to_an_account_without_its_role_the_cure_is_the_role() {
    let (missing, log) = checked(true, || verdict(false)).await;
    assert_eq!(missing, 3);
    let lines = log.lines("Missing permission");
    assert!(lines[0].contains("system:controller:fake-account"), "{}", lines[0]);
    assert!(!lines[0].contains("--use-service-account-credentials"), "{}", lines[0]);
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
        let (missing, log) = checked(false, answer).await;
        assert_eq!(missing, 0);
        assert!(log.lines("ERROR").is_empty(), "{:?}", log.lines(""));
    }
}

#[tokio::test]
async fn the_question_names_verb_group_and_resource_of_each_right() {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = asked.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await?;
            asked.send((path, body)).unwrap();
            let reply = json!({"status": {"allowed": true}}).to_string().into_bytes();
            Ok::<_, kube::Error>(Response::new(Body::from(reply)))
        }
    });
    let subject = Subject { controller: "c", account: "a", by_account: false };
    let missing = IntGauge::new("missing", "Missing rights.").unwrap();
    check(kube::Client::new(service, "default"), subject, NEEDED, missing).await;
    for right in NEEDED {
        let (path, body) = questions.recv().await.unwrap();
        assert_eq!(path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let wanted = json!({"verb": right.verb, "group": right.group, "resource": right.resource});
        assert_eq!(body["spec"]["resourceAttributes"], wanted);
    }
}
