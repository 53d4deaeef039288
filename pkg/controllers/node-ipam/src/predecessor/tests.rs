use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::Response;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// Answers every list with the next of these pages; what was asked for.
fn server(pages: Vec<(u16, Value)>) -> (kube::Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let (log, pages) = (asked.clone(), Arc::new(Mutex::new(pages.into_iter())));
    let service = tower::service_fn(move |request: Request<Body>| {
        log.lock().unwrap().push(request.uri().to_string());
        let (status, page) = pages.lock().unwrap().next().expect("no further page is asked for");
        let answer =
            Response::builder().status(status).body(Body::from(page.to_string().into_bytes()));
        async move { Ok::<_, Infallible>(answer.unwrap()) }
    });
    (kube::Client::new(service, "default"), asked)
}

fn page(nodes: &[Value], next: &str) -> (u16, Value) {
    let items: Vec<_> = nodes.iter().map(|spec| json!({"metadata": {}, "spec": spec})).collect();
    (200, json!({"kind": "NodeList", "metadata": {"continue": next}, "items": items}))
}

#[tokio::test]
async fn one_node_with_a_pod_cidr_is_enough_and_the_rest_is_not_read() {
    for spec in [json!({"podCIDR": "10.0.0.0/24"}), json!({"podCIDRs": ["10.0.0.0/24"]})] {
        let (client, asked) = server(vec![page(&[json!({}), spec], "more")]);
        assert!(has_assigned(client).await.unwrap());
        assert_eq!(*asked.lock().unwrap(), ["/api/v1/nodes?limit=500"]);
    }
}

#[tokio::test]
async fn a_cluster_without_pod_cidrs_is_read_to_its_end() {
    let pages = vec![page(&[json!({}), json!({"podCIDR": ""})], "a b&c"), page(&[json!({})], "")];
    let (client, asked) = server(pages);
    assert!(!has_assigned(client).await.unwrap());
    assert_eq!(asked.lock().unwrap()[1], "/api/v1/nodes?limit=500&continue=a+b%26c");
    let (client, _) = server(vec![page(&[], "")]);
    assert!(!has_assigned(client).await.unwrap(), "no Node at all");
}

#[tokio::test]
async fn a_refusal_is_an_error_that_says_what_was_tried() {
    let status = json!({"kind": "Status", "status": "Failure", "message": "nodes is forbidden", "code": 403});
    let (client, _) = server(vec![(403, status)]);
    let error = has_assigned(client).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot list the Nodes that have a pod CIDR: "), "{error}");
    assert!(error.contains("forbidden"), "{error}");
}
