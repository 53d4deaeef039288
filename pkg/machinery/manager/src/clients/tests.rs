//! Clients for other purposes and other clusters, against a server that notes who asks.

use std::time::Duration;

use client::CallError;
use http::{Method, Request};
use kube::client::Body;
use prometheus::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

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

/// A server that answers one request, and what it was asked.
async fn server() -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            text.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.unwrap();
        String::from_utf8(text).unwrap()
    });
    (address, asked)
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
    let (address, asked) = server().await;
    let member =
        source(Fence::always_open()).await.of_cluster(&kubeconfig(&address)).await.unwrap();
    let client = member.for_purpose("probe", (-1.0, 1)).unwrap();
    let answer = client::answer(&client, request(Method::GET), LIMIT).await.unwrap();
    assert!(answer.status.is_success());
    let asked = asked.await.unwrap().to_lowercase();
    assert!(asked.contains("authorization: bearer member-token"), "{asked}");
    assert!(asked.contains("/tester"), "the user agent names the controller: {asked}");
}

#[tokio::test]
async fn no_write_to_another_cluster_leaves_without_the_lease() {
    let (address, asked) = server().await;
    let member = source(Fence::closed()).await.of_cluster(&kubeconfig(&address)).await.unwrap();
    let client = member.for_purpose("work", (-1.0, 1)).unwrap();
    let answer = client::answer(&client, request(Method::DELETE), LIMIT).await;
    assert!(matches!(answer, Err(CallError::Fenced)), "{answer:?}");
    assert!(!asked.is_finished());
}

#[tokio::test]
async fn a_kubeconfig_that_names_a_file_of_this_machine_is_refused() {
    let named =
        kubeconfig("https://member").replace("token: member-token", "tokenFile: /etc/passwd");
    let refused = source(Fence::always_open()).await.of_cluster(&named).await;
    assert!(matches!(refused.err(), Some(ClientError::Config(ConfigError::Object(_)))));
}
