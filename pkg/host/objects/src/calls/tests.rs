//! Paths and parameters.

use api_server_double::Reply;

use super::*;
use crate::testing::WIDGETS;

fn calls(resource: Resource) -> Calls {
    let client = api_server_double::client(|_| Reply::Silence);
    Calls::new(client, resource, "a b".into(), Duration::from_secs(1))
}

#[tokio::test]
async fn each_write_goes_to_its_path_with_its_field_manager() {
    let calls = calls(WIDGETS);
    let base = "/apis/example.org/v1/namespaces/ns/widgets";
    for (part, verb, uri) in [
        (Part::Main, Verb::Create, format!("{base}?fieldManager=a+b&fieldValidation=Strict")),
        (Part::Main, Verb::MergePatch, format!("{base}/a?fieldManager=a+b")),
        (Part::Status, Verb::MergePatch, format!("{base}/a/status?fieldManager=a+b")),
        (Part::Main, Verb::Apply { force: true }, format!("{base}/a?fieldManager=a+b&force=true")),
        (Part::Main, Verb::Apply { force: false }, format!("{base}/a?fieldManager=a+b")),
        (Part::Main, Verb::Delete, format!("{base}/a")),
    ] {
        assert_eq!(calls.uri("ns/a", part, verb).unwrap(), uri, "{part:?} {verb:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_no_name_leads_nowhere() {
    let namespaced = calls(WIDGETS);
    for key in ["a", "ns/", "/a", "ns/..", "../a", "ns/a/status", "ns/a?x", "ns/a%2f", "ns/a b"] {
        assert!(matches!(namespaced.path(key), Err(Why::Key)), "{key}");
    }
    let cluster = calls(Resource::cluster("", "v1", "Node", "nodes"));
    assert_eq!(cluster.path("system:n-1.x").unwrap(), "/api/v1/nodes/system:n-1.x");
    assert!(matches!(cluster.path("ns/a"), Err(Why::Key)));
}
