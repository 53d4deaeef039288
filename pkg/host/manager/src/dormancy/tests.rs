use api_server_double::{ApiServer, Reply};
use serde_json::{Value, json};

use super::*;

const MEMBERS: Resource =
    Resource::namespaced("core.kubefed.io", "v1beta1", "KubeFedCluster", "kubefedclusters");
const CLUSTERS: Resource = Resource::cluster("platform.tkestack.io", "v1", "Cluster", "clusters");

/// A server of these two kinds; what it says of the Clusters, and how often it was asked.
async fn asked(discovery: Value, clusters: Reply) -> (Result<bool, String>, Vec<String>) {
    let clusters = std::sync::Mutex::new(Some(clusters));
    let server = ApiServer::new(move |asked| match asked.path() {
        "/apis/core.kubefed.io/v1beta1" => Reply::failure(404, "NotFound"),
        "/apis/platform.tkestack.io/v1" => Reply::Json(200, discovery.clone()),
        _ => clusters.lock().unwrap().take().unwrap(),
    });
    let kinds = [(MEMBERS, Some("fed".to_owned())), (CLUSTERS, None)].map(|(kind, namespace)| {
        Awaited { kind, crd: CrdOf::Default, namespace, rights: Vec::new() }
    });
    let answer = is_any_there(&server.client(), &kinds).await.map_err(|error| error.to_string());
    let paths = server.asked().iter().map(|asked| asked.path().to_owned()).collect();
    (answer, paths)
}

#[tokio::test]
async fn a_predecessor_may_be_writing_where_there_is_an_object_of_a_kind_that_is_served() {
    let served = || json!({"resources": [{"name": "clusters/status"}, {"name": "clusters"}]});
    let items = |items: Value| Reply::Json(200, json!({"items": items}));
    let rows = [
        (served(), items(json!([{"metadata": {}}])), Ok(true), 3),
        (served(), items(json!([])), Ok(false), 3),
        (served(), Reply::failure(403, "Forbidden"), Ok(false), 3),
        (json!({"resources": [{"name": "machines"}]}), items(json!([])), Ok(false), 2),
    ];
    for (discovery, clusters, expected, requests) in rows {
        let (answer, paths) = asked(discovery, clusters).await;
        assert_eq!((answer, paths.len()), (expected, requests), "{paths:?}");
    }
    let (answer, _) = asked(served(), Reply::failure(500, "InternalError")).await;
    assert!(answer.is_err(), "it is unknown: {answer:?}");
}
