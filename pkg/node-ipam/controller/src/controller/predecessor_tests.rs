use api_server_double::{ApiServer, Reply};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::*;

/// Answers the one list with these Nodes.
fn server(nodes: Value) -> ApiServer {
    ApiServer::new(move |asked| {
        assert_eq!(asked.number, 0, "one list is enough");
        Reply::Json(200, json!({"kind": "NodeList", "metadata": {}, "items": nodes}))
    })
}

#[tokio::test]
async fn a_node_without_a_pod_cidr_is_enough_for_a_predecessor() {
    let server = server(json!([{"metadata": {}, "spec": {}}]));
    assert!(has_nodes(server.client()).await.unwrap());
    assert_eq!(server.asked()[0].head.uri, "/api/v1/nodes?limit=1");
}

#[tokio::test]
async fn a_cluster_without_nodes_had_no_predecessor() {
    assert!(!has_nodes(server(json!([])).client()).await.unwrap());
}

#[tokio::test]
async fn a_refusal_is_an_error_that_says_what_was_tried() {
    let status = json!({"kind": "Status", "status": "Failure", "message": "nodes is forbidden", "code": 403});
    let server = ApiServer::new(move |_| Reply::Json(403, status.clone()));
    let error = has_nodes(server.client()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list the Nodes of the cluster: "), "{error}");
    assert!(error.contains("forbidden"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_end_is_given_up() {
    let server = ApiServer::new(|_| Reply::Watch(futures::stream::pending().boxed()));
    let error = has_nodes(server.client()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list the Nodes of the cluster: "), "{error}");
}
