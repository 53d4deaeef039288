//! Requests that look for a kind, and their answers.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::testing::Server;

fn finding(kind: Kind) -> (Server, JoinHandle<Result<Option<Resource>, Fault>>) {
    let (client, server) = Server::new();
    (server, tokio::spawn(async move { find(&client, &kind).await }))
}

fn listed() -> Value {
    json!({"resources": [
        {"name": "secrets/status", "kind": "Secret", "namespaced": true},
        {"name": "pods", "kind": "Pod", "namespaced": true},
        {"name": "secrets", "kind": "Secret", "namespaced": true},
    ]})
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_the_core_group_is_looked_for_in_its_only_version() {
    let (mut server, found) = finding(Kind::named("", "Secret"));
    let call = server.call().await;
    assert_eq!(call.path(), "/api/v1");
    call.json(200, &listed());
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    assert_eq!(found.await.unwrap().unwrap(), Some(secrets));
}

#[tokio::test(start_paused = true)]
async fn only_404_says_that_a_kind_is_not_served() {
    let (mut server, found) = finding(Kind::named("example.io", "Widget"));
    server.call().await.refuse(404, "NotFound");
    assert_eq!(found.await.unwrap().unwrap(), None);
    for code in [403, 429, 500, 503] {
        let (mut server, found) = finding(Kind::named("example.io", "Widget"));
        server.call().await.refuse(code, "Trouble");
        let fault = found.await.unwrap().unwrap_err();
        assert!(matches!(fault, Fault::Status { code: told, .. } if told == code), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_preferred_version_lacks_is_found_in_another_one() {
    let (mut server, found) = finding(Kind::named("example.io", "Widget"));
    let versions = [json!({"version": "v2"}), json!({"version": "v1"})];
    let group = json!({"preferredVersion": {"version": "v2"}, "versions": versions});
    server.call().await.json(200, &group);
    let call = server.call().await;
    assert_eq!(call.path(), "/apis/example.io/v2");
    call.json(200, &listed());
    let call = server.call().await;
    assert_eq!(call.path(), "/apis/example.io/v1");
    let widgets = json!({"name": "widgets", "kind": "Widget", "namespaced": true});
    call.json(200, &json!({"resources": [widgets]}));
    let widgets = Resource::namespaced("example.io", "v1", "Widget", "widgets");
    assert_eq!(found.await.unwrap().unwrap(), Some(widgets));
}
