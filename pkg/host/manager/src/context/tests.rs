//! Clients for other purposes and other clusters, against a server that notes who asks.

use std::time::Duration;

use api_server_double::{ApiServer, Reply};
use client::CallError;
use http::{Method, Request};
use kube::client::Body;
use prometheus::Registry;
use serde_json::json;

use super::*;
use crate::testing::clients;

const LIMIT: Duration = Duration::from_secs(30);

async fn source(fence: Fence) -> ClientSource {
    let registry = Registry::new();
    let throttles = ThrottleMetrics::new(&registry).unwrap();
    ClientSource::new(clients(&registry).await, "tester", false, fence, throttles)
}

fn request(method: Method) -> Request<Body> {
    Request::builder().method(method).uri("/api/v1/nodes/a").body(Body::empty()).unwrap()
}

fn kubeconfig(server: &str) -> String {
    format!(
        "{{clusters: [{{name: c, cluster: {{server: '{server}'}}}}], \
         users: [{{name: u, user: {{token: member-token}}}}], current-context: x, \
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]}}"
    )
}

#[tokio::test]
async fn another_clusters_client_acts_as_the_user_of_its_kubeconfig() {
    let server = ApiServer::new(|_| Reply::Json(200, json!({})));
    let loopback = server.listen().await;
    let kubeconfig = kubeconfig(&loopback.url);
    let member = source(Fence::always_open()).await.of_cluster(&kubeconfig).await.unwrap();
    let client = member.for_purpose("probe", (-1.0, 1)).unwrap();
    let answer = client::answer(&client, request(Method::GET), LIMIT).await.unwrap();
    assert!(answer.status.is_success());
    let asked = server.asked().remove(0);
    assert_eq!(asked.header("authorization"), "Bearer member-token");
    let agent = asked.header("user-agent");
    assert!(agent.ends_with("/tester"), "the user agent names the controller: {agent}");
}

#[tokio::test]
async fn no_write_to_another_cluster_leaves_without_the_lease() {
    let server = ApiServer::new(|_| Reply::Json(200, json!({})));
    let loopback = server.listen().await;
    let kubeconfig = kubeconfig(&loopback.url);
    let member = source(Fence::closed()).await.of_cluster(&kubeconfig).await.unwrap();
    let client = member.for_purpose("work", (-1.0, 1)).unwrap();
    let answer = client::answer(&client, request(Method::DELETE), LIMIT).await;
    assert!(matches!(answer, Err(CallError::Fenced)), "{answer:?}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_kubeconfig_that_names_a_file_of_this_machine_is_refused() {
    let named =
        kubeconfig("https://member").replace("token: member-token", "tokenFile: /etc/passwd");
    let refused = source(Fence::always_open()).await.of_cluster(&named).await;
    assert!(matches!(refused.err(), Some(ClientError::Config(ConfigError::Object(_)))));
}

fn retried(why: Why) -> Retry {
    retry(objects::Error { verb: "change", object: "widgets ns/a".into(), why })
}

#[test]
fn the_servers_wish_to_wait_is_no_failure_of_the_key() {
    let asked = Some(Duration::from_secs(7));
    let throttled = retried(Why::Throttled { retry_after: asked });
    assert!(throttled.is_throttled());
    assert_eq!(throttled.pause(), Duration::from_secs(7));
    for nothing in [None, Some(Duration::ZERO)] {
        let throttled = retried(Why::Throttled { retry_after: nothing });
        assert_eq!(throttled.pause(), Duration::from_secs(1), "not at once without end");
    }
}

#[test]
fn an_open_attempt_is_a_failure_that_still_waits_as_the_server_asked() {
    let last = Box::new(Why::Throttled { retry_after: Some(Duration::from_secs(7)) });
    let open = retried(Why::Open { last, settled_at: None });
    assert!(!open.is_throttled());
    assert_eq!(open.pause(), Duration::from_secs(7));
}
