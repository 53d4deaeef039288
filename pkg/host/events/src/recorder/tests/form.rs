//! Requests for a new event, and for one that repeats.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_event_is_posted_in_core_v1_with_source_and_reporter() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, _broadcaster, _) = pipeline(&server);
    tell(&recorder, "node-7", "no block");
    let post = server.until_asked(1).await.remove(0);
    assert_eq!(post.method(), Method::POST);
    assert_eq!(post.path(), "/api/v1/namespaces/default/events");
    let body = post.json();
    assert_eq!(
        body["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Node", "name": "node-7", "uid": "u-1"})
    );
    assert_eq!(body["source"], json!({"component": "cidrAllocator"}));
    assert_eq!(body["reportingComponent"], "cidrAllocator");
    assert_eq!(body["reportingInstance"], "host_1");
    assert_eq!((&body["type"], &body["reason"]), (&json!("Normal"), &json!("CIDRNotAvailable")));
    assert_eq!((&body["message"], &body["count"]), (&json!("no block"), &json!(1)));
    assert_eq!(body["firstTimestamp"], body["lastTimestamp"]);
    assert_eq!(body["metadata"]["namespace"], "default");
    let name = body["metadata"]["name"].as_str().unwrap();
    u64::from_str_radix(name.strip_prefix("node-7.").unwrap(), 16).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_about_a_namespaced_object_is_in_its_namespace() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, _broadcaster, _) = pipeline(&server);
    let lease = ObjectRef::lease("kube-system", "icm", "u-2");
    recorder.event(lease, EventType::Normal, "LeaderElection", "a became leader".into());
    let post = server.until_asked(1).await.remove(0);
    assert_eq!(post.path(), "/api/v1/namespaces/kube-system/events");
    assert_eq!(post.json()["involvedObject"]["apiVersion"], "coordination.k8s.io/v1");
    assert_eq!(post.json()["involvedObject"]["namespace"], "kube-system");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_a_strategic_patch_of_count_and_time() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, _broadcaster, _) = pipeline(&server);
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no block");
    let seen = server.until_asked(2).await;
    let created = seen[0].json();
    let name = created["metadata"]["name"].as_str().unwrap();
    assert_eq!(seen[1].method(), Method::PATCH);
    assert_eq!(seen[1].path(), format!("/api/v1/namespaces/default/events/{name}"));
    assert_eq!(seen[1].header("content-type"), "application/strategic-merge-patch+json");
    let patch = seen[1].json();
    assert_eq!(
        patch.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["count", "lastTimestamp", "message"]
    );
    assert_eq!(patch["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_an_event_the_server_forgot_is_created_with_its_count() {
    let forgets = |asked: &Asked| match *asked.method() {
        Method::PATCH => Reply::failure(404, "NotFound"),
        _ => Reply::stored(asked),
    };
    let server = ApiServer::new(forgets);
    let (recorder, _broadcaster, metrics) = pipeline(&server);
    tell(&recorder, "n", "no block");
    tell(&recorder, "n", "no block");
    let seen = server.until_asked(3).await;
    assert_eq!((seen[2].method(), &seen[2].json()["count"]), (&Method::POST, &json!(2)));
    assert_eq!(seen[2].json()["metadata"]["name"], seen[0].json()["metadata"]["name"]);
    assert_eq!(metrics.dropped(DropReason::Rejected), 0);
}

#[tokio::test(start_paused = true)]
async fn events_that_differ_have_names_that_differ() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, broadcaster, _) = pipeline(&server);
    for n in 0..9 {
        tell(&recorder, "n", &format!("message {n}"));
    }
    broadcaster.flush(2 * SECOND).await;
    let names: std::collections::HashSet<_> =
        server.asked().iter().map(|seen| seen.json()["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 9);
}
