use api_server_double::{ApiServer, Reply};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::*;

/// Answers every list with the next of these pages.
fn server(pages: Vec<(u16, Value)>) -> ApiServer {
    ApiServer::new(move |asked| {
        let (status, page) = pages.get(asked.number).expect("no further page is asked for");
        Reply::Json(*status, page.clone())
    })
}

/// What it was asked for.
fn uris(server: &ApiServer) -> Vec<String> {
    server.asked().iter().map(|asked| asked.head.uri.to_string()).collect()
}

fn page(nodes: &[Value], next: &str) -> (u16, Value) {
    let items: Vec<_> = nodes.iter().map(|spec| json!({"metadata": {}, "spec": spec})).collect();
    (200, json!({"kind": "NodeList", "metadata": {"continue": next}, "items": items}))
}

#[tokio::test]
async fn one_node_with_a_pod_cidr_is_enough_and_the_rest_is_not_read() {
    for spec in [json!({"podCIDR": "10.0.0.0/24"}), json!({"podCIDRs": ["10.0.0.0/24"]})] {
        let server = server(vec![page(&[json!({}), spec], "more")]);
        assert!(has_assigned(server.client()).await.unwrap());
        assert_eq!(uris(&server), ["/api/v1/nodes?limit=500"]);
    }
}

#[tokio::test]
async fn a_cluster_without_pod_cidrs_is_read_to_its_end() {
    let pages = vec![page(&[json!({}), json!({"podCIDR": ""})], "a b&c"), page(&[json!({})], "")];
    let server = server(pages);
    assert!(!has_assigned(server.client()).await.unwrap());
    assert_eq!(uris(&server)[1], "/api/v1/nodes?limit=500&continue=a+b%26c");
    let server = self::server(vec![page(&[], "")]);
    assert!(!has_assigned(server.client()).await.unwrap(), "no Node at all");
}

#[tokio::test]
async fn a_refusal_is_an_error_that_says_what_was_tried() {
    let status = json!({"kind": "Status", "status": "Failure", "message": "nodes is forbidden", "code": 403});
    let server = server(vec![(403, status)]);
    let error = has_assigned(server.client()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list the Nodes that have a pod CIDR: "), "{error}");
    assert!(error.contains("forbidden"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_end_is_given_up() {
    let server = ApiServer::new(|_| Reply::Watch(futures::stream::pending().boxed()));
    let error = has_assigned(server.client()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list the Nodes that have a pod CIDR: "), "{error}");
}
