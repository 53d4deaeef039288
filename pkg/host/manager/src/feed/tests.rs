//! What becomes of the deltas of one cache: on a paused clock, from a server whose watch is
//! scripted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use api_server_double::{Reply, client};
use futures::stream::{self, StreamExt as _};
use kube_api::Node;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use workqueue::{Backoff, Jitter};

use super::*;
use crate::Context;
use crate::testing::context;

const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::None);

/// Keys of two kinds on one queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Node(Arc<str>),
    Cidr(String),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

fn node(name: &str, version: u32, cidr: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"podCIDRs": [cidr]}})
}

/// A server with one Node, whose watch tells of this event a second later.
fn server(event: Value) -> kube::Client {
    client(move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") && query.contains("resourceVersion=1") => {
            let event = event.clone();
            let told = async move {
                sleep(Duration::from_secs(1)).await;
                event
            };
            Reply::Watch(stream::once(told).boxed())
        }
        query if query.contains("watch=true") => Reply::Silence,
        _ => Reply::Json(
            200,
            json!({"kind": "NodeList", "metadata": {"resourceVersion": "1"},
                "items": [node("a", 1, "10.0.0.0/24")]}),
        ),
    })
}

fn keys(node: &Node) -> Vec<Work> {
    let cidrs = node.pod_cidrs.iter().map(|cidr| Work::Cidr(cidr.to_string()));
    std::iter::once(Work::Node(Arc::clone(&node.name))).chain(cidrs).collect()
}

async fn fed(context: &Context, expected: usize) -> Vec<Work> {
    let (nodes, queue) = (context.informers.get::<Node>(), context.queue("test", BACKOFF));
    let _subscription = feed(&nodes, &queue, keys);
    let mut seen = Vec::new();
    while seen.len() < expected {
        let next = timeout(Duration::from_secs(60), queue.next()).await;
        seen.push((*next.expect("there is more to do").unwrap()).clone());
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn an_object_of_one_kind_is_work_on_keys_of_several() {
    let context = context(server(Value::Null)).await;
    let seen = fed(&context, 2).await;
    assert_eq!(seen, [Work::Node("a".into()), Work::Cidr("10.0.0.0/24".into())]);
}

#[tokio::test(start_paused = true)]
async fn what_an_object_referred_to_before_hears_of_its_change() {
    let event = json!({"type": "MODIFIED", "object": node("a", 2, "10.0.1.0/24")});
    let context = context(server(event)).await;
    let seen = fed(&context, 2 + 3).await;
    let before = Work::Cidr("10.0.0.0/24".into());
    assert_eq!(seen[2..], [before, Work::Node("a".into()), Work::Cidr("10.0.1.0/24".into())]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_is_work_too() {
    let event = json!({"type": "DELETED", "object": node("a", 2, "10.0.0.0/24")});
    let context = context(server(event)).await;
    let seen = fed(&context, 4).await;
    assert_eq!(seen[2..], seen[..2]);
}
