//! Nodes of the size that they have in large clusters, read in each way that an API server has.

#![allow(clippy::unwrap_used, reason = "clippy does not know the functions of a test for tests")]

use std::time::Duration;

use api_server_double::{ApiServer, Fleet, FleetOptions, NodeSize};
use http::Request;
use informer::{Format, Informer, InformerMetrics, Server, Source};
use kube::client::Body;
use kube_api::{Node, StaticKind};
use tokio_util::sync::CancellationToken;

const NODES: usize = 2000;

fn served(streams_lists: bool) -> (Fleet, ApiServer) {
    let fleet = Fleet::new(FleetOptions { nodes: NODES, size: NodeSize::Grown, streams_lists });
    let server = fleet.clone();
    (fleet, ApiServer::new(move |asked| server.answer(asked)))
}

fn informer(server: &ApiServer, format: Format) -> Informer<Node> {
    let metrics = InformerMetrics::new(&prometheus::Registry::new(), "test").unwrap();
    let source = Source::new(Server::own(server.client()), Node::KIND);
    let informer = Informer::new(source, &metrics, format);
    let running = informer.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    informer
}

/// Gives a Node a CIDR.
async fn patch(server: &ApiServer, node: &Node) {
    let cidr = "fd00:0:0:7::/64";
    let uid = &node.uid;
    let body = format!(r#"{{"metadata":{{"uid":"{uid}"}},"spec":{{"podCIDR":"{cidr}"}}}}"#);
    let request = Request::patch(format!("/api/v1/nodes/{}", node.name));
    let request = request.body(Body::from(body.into_bytes())).unwrap();
    assert!(server.client().send(request).await.unwrap().status().is_success());
}

#[tokio::test]
async fn nodes_of_50_kb_are_read_and_followed_in_each_encoding_streamed_and_in_pages() {
    let patience = Duration::from_secs(120);
    for (format, streams_lists) in [
        (Format::Protobuf, true),
        (Format::Protobuf, false),
        (Format::Json, true),
        (Format::Json, false),
    ] {
        let way = format!("{format:?}, streamed: {streams_lists}");
        let (fleet, server) = served(streams_lists);
        let informer = informer(&server, format);
        tokio::time::timeout(patience, informer.synced()).await.expect(&way);
        assert_eq!(informer.len(), NODES, "{way}");
        let node = informer.get("worker-0001234").unwrap();
        assert_eq!(
            (&*node.uid, node.resource_version),
            ("7f0c1d5e-1a7b-4b0e-9a49-0000000004d2", 1235)
        );
        assert!(node.pod_cidrs.is_empty(), "{way}");

        fleet.join(1);
        patch(&server, &node).await;
        let followed = async {
            while informer.len() == NODES || informer.get(&node.name).unwrap().pod_cidrs.is_empty()
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(patience, followed).await.expect(&way);
        let node = informer.get(&node.name).unwrap();
        assert_eq!(node.pod_cidrs.iter().collect::<Vec<_>>(), ["fd00:0:0:7::/64"], "{way}");
        assert_eq!(node.resource_version, NODES as u64 + 2, "{way}");
        let pages = server.asked().iter().filter(|it| it.query().contains("limit=")).count();
        // 500 of them have 25 MB, 250 fit into a page.
        assert_eq!(pages, if streams_lists { 0 } else { 1 + NODES / 250 }, "{way}");
    }
}
