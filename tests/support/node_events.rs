//! Events on Nodes, as the API server has them.

use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::poll;

/// Waits for an event on a Node of one reason.
pub async fn node_event(client: &Client, node: &str, reason: &str) -> Event {
    let what = format!("event {reason} on {node}");
    poll(&what, async || node_events(client, node, reason).await.pop()).await
}

/// The events on a Node of one reason.
pub async fn node_events(client: &Client, node: &str, reason: &str) -> Vec<Event> {
    let fields = format!("involvedObject.name={node},reason={reason}");
    let events = Api::<Event>::namespaced(client.clone(), "default");
    events.list(&ListParams::default().fields(&fields)).await.unwrap().items
}
