//! The rules of the fleet's PATCHes. That the product reads its Nodes is a test of `informer`.

use futures::stream::StreamExt as _;
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::ApiServer;

fn fleet(nodes: usize) -> (Fleet, kube::Client) {
    let size = NodeSize::Registered;
    let fleet = Fleet::new(FleetOptions { nodes, size, streams_lists: true });
    let served = fleet.clone();
    (fleet, ApiServer::new(move |asked| served.answer(asked)).without_record().client())
}

async fn patch(client: &kube::Client, name: &str, uid: &str, cidr: &str) -> (u16, Value) {
    let body = json!({"metadata": {"uid": uid}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}});
    let request = Request::patch(format!("/api/v1/nodes/{name}"));
    let request = request.body(Body::from(body.to_string().into_bytes())).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_node_gets_one_cidr_once_and_only_under_its_own_uid() {
    let (fleet, client) = fleet(2);
    let uid = uid_of(1);
    let (status, answer) = patch(&client, "worker-0000001", &uid, "10.0.0.0/24").await;
    assert_eq!((status, &answer["metadata"]["uid"]), (200, &json!(uid)));
    for (name, uid, cidr, status) in [
        ("worker-0000001", &uid, "10.0.0.0/24", 200),
        ("worker-0000001", &uid, "10.0.1.0/24", 422),
        ("worker-0000000", &uid, "10.0.1.0/24", 409),
        ("worker-0000002", &uid_of(2), "10.0.1.0/24", 404),
    ] {
        assert_eq!(patch(&client, name, uid, cidr).await.0, status, "{name} {cidr}");
    }
    assert_eq!(*fleet.counts().borrow(), FleetCounts { changes: 3, assigned: 1, duplicates: 0 });
    patch(&client, "worker-0000000", &uid_of(0), "10.0.0.0/24").await;
    assert_eq!(fleet.counts().borrow().duplicates, 1);
    assert!(fleet.times().iter().all(|(joined, assigned)| assigned.unwrap() > *joined));
}

#[tokio::test]
async fn a_watch_shows_each_change_as_it_was_then() {
    let (fleet, client) = fleet(1);
    patch(&client, "worker-0000000", &uid_of(0), "10.0.0.0/24").await;
    fleet.join(1);
    let mut events = fleet.changes_after(Encoding::Json, 0);
    let body = events.next().await.unwrap();
    let mut seen = Vec::new();
    for line in std::str::from_utf8(&body).unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (meta, spec) = (&event["object"]["metadata"], &event["object"]["spec"]);
        seen.push(json!([event["type"], meta["name"], meta["resourceVersion"], spec["podCIDR"]]));
    }
    assert_eq!(
        json!(seen),
        json!([
            ["ADDED", "worker-0000000", "1", null],
            ["MODIFIED", "worker-0000000", "2", "10.0.0.0/24"],
            ["ADDED", "worker-0000001", "3", null],
        ])
    );
}

#[tokio::test]
async fn a_lease_is_won_by_who_takes_it_back_and_an_annotation_is_a_change() {
    let (fleet, client) = fleet(1);
    fleet.hold_lease("leader");
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader";
    let put = |lease: &Value| {
        let body = lease.to_string().into_bytes();
        client.request::<Value>(Request::put(path).body(body).unwrap())
    };
    let read = || client.request::<Value>(Request::get(path).body(Vec::new()).unwrap());
    let held = read().await.unwrap();
    assert_eq!(held["spec"]["holderIdentity"], "another");
    fleet.give_lease_back();
    assert!(put(&held).await.is_err(), "its version is old");
    assert!(fleet.lease_won().is_none());
    let mut lease = read().await.unwrap();
    lease["spec"]["holderIdentity"] = "us".into();
    put(&lease).await.unwrap();
    assert!(fleet.lease_won().is_some());

    let body = json!({"metadata": {"uid": uid_of(0), "annotations": {"a": "b"}}}).to_string();
    let request = Request::patch("/api/v1/nodes/worker-0000000").body(body.into_bytes()).unwrap();
    let answer: Value = client.request(request).await.unwrap();
    assert_eq!(answer["metadata"]["resourceVersion"], "2");
    assert_eq!(*fleet.counts().borrow(), FleetCounts { changes: 2, assigned: 0, duplicates: 0 });
}
