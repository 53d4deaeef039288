//! The informer against a server that answers by hand. Time is paused: waits cost nothing and
//! can be measured exactly.

use prometheus::{Registry, TextEncoder};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::Server;

mod breaches;
mod decoding;
mod explored;
mod failures;
mod history;
mod lists;
mod position;
mod sizes;
mod users;
mod watches;

pub(super) const PRODUCT: &str = "infra-controller-manager";

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) informer: Informer<kube_api::Node>,
    pub(super) deltas: Deltas,
    registry: Registry,
    stop: CancellationToken,
}

pub(super) fn metrics_of(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// A running informer with one subscriber.
pub(super) fn start() -> Fixture {
    let (client, server) = Server::new();
    let registry = Registry::new();
    let informer = Informer::of_all(client, &InformerMetrics::new(&registry, PRODUCT).unwrap());
    let deltas = Deltas::of(&informer);
    let stop = CancellationToken::new();
    let (running, stopped) = (informer.clone(), stop.clone());
    tokio::spawn(async move { running.run(stopped).await });
    Fixture { server, informer, deltas, registry, stop }
}

impl Fixture {
    /// Names and versions in the store.
    pub(super) fn store(&self) -> Vec<String> {
        self.informer.frozen(|objects| {
            let mut all: Vec<_> =
                objects.values().map(|o| format!("{}@{}", o.name, o.resource_version)).collect();
            all.sort();
            all
        })
    }

    pub(super) fn metrics(&self) -> String {
        metrics_of(&self.registry)
    }

    pub(super) fn assert_metric(&self, line: &str) {
        let text = self.metrics();
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The deltas that a handler got.
pub(super) struct Deltas {
    told: mpsc::UnboundedReceiver<String>,
    _subscription: Subscription<kube_api::Node>,
}

impl Deltas {
    pub(super) fn of(informer: &Informer<kube_api::Node>) -> Self {
        let (sender, told) = mpsc::unbounded_channel();
        let subscription = informer.subscribe(move |delta| {
            let text = match delta {
                Delta::Added(o) => format!("added {}@{}", o.name, o.resource_version),
                Delta::Updated { old, new } => {
                    format!(
                        "updated {}@{}-{}",
                        new.name, old.resource_version, new.resource_version
                    )
                }
                Delta::Deleted(o) => format!("deleted {}@{}", o.name, o.resource_version),
                Delta::ListStarts | Delta::ListEnds => return,
            };
            drop(sender.send(text));
        });
        Self { told, _subscription: subscription }
    }

    /// The next so many deltas, in the order of their delivery.
    pub(super) async fn next(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            let next = timeout(Duration::from_secs(2000), self.told.recv()).await;
            all.push(next.expect("another delta must come").unwrap());
        }
        all
    }

    /// Deltas of a list, sorted, since a list has no order.
    pub(super) async fn next_sorted(&mut self, count: usize) -> Vec<String> {
        let mut all = self.next(count).await;
        all.sort();
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_the_loop_and_keeps_the_store() {
    let (client, mut server) = Server::new();
    let informer: Informer<kube_api::Node> =
        Informer::of_all(client, &InformerMetrics::new(&Registry::new(), PRODUCT).unwrap());
    let stop = CancellationToken::new();
    let (running, stopped) = (informer.clone(), stop.clone());
    let task = tokio::spawn(async move { running.run(stopped).await });
    let wire = server.serve_list(1, &[crate::testing::node("a", 1)]).await;
    informer.synced().await;
    stop.cancel();
    task.await.unwrap();
    assert!(wire.is_abandoned());
    assert!(informer.get("a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_scrape_shows_the_state_of_the_store() {
    let mut run = start();
    run.assert_metric("icm_informer_synced{resource=\"nodes\",source=\"\"} 0");
    let wire = run.server.serve_list(1_000_000_000_000_042, &[crate::testing::node("a", 1)]).await;
    run.deltas.next(1).await;
    run.informer.synced().await;
    tokio::time::advance(Duration::from_secs(3)).await;
    for line in [
        "icm_informer_synced{resource=\"nodes\",source=\"\"} 1",
        "icm_informer_objects{resource=\"nodes\",source=\"\"} 1",
        "icm_informer_last_event_seconds{resource=\"nodes\",source=\"\"} 3",
        "icm_informer_lists_total{resource=\"nodes\"} 1",
        "icm_informer_watches_total{resource=\"nodes\"} 1",
        "icm_informer_list_duration_seconds_count{resource=\"nodes\"} 1",
        "informer_store_resource_version{group=\"\",name=\"infra-controller-manager\",\
         resource=\"nodes\",version=\"v1\"} 42",
        "informer_queued_items{group=\"\",name=\"infra-controller-manager\",resource=\"nodes\",\
         version=\"v1\"} 0",
    ] {
        run.assert_metric(line);
    }
    wire.event("MODIFIED", &crate::testing::node("a", 1_000_000_000_000_043));
    run.deltas.next(1).await;
    run.assert_metric(
        "informer_processing_latency_seconds_count{group=\"\",name=\"infra-controller-manager\",\
         resource=\"nodes\",version=\"v1\"} 1",
    );
}
