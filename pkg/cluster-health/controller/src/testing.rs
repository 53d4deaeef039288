//! [`informer`]: a cache of the tests, with a first list and a watch that tells what they send.

use api_server_double::{ApiServer, Reply};
use futures::stream::{BoxStream, StreamExt as _, pending, poll_fn};
use informer::{Format, Informer, InformerMetrics, Server, Source};
use kube_api::{Cached, Kind, Resource};
use parking_lot::Mutex;
use prometheus::Registry as Metrics;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// Filled with `listed`; what comes by `told` are events of its watch.
pub(crate) async fn informer<T: Cached>(
    kind: &Resource,
    listed: Vec<Value>,
    told: UnboundedReceiver<Value>,
) -> Informer<T> {
    let told = Mutex::new(Some(told));
    let server = ApiServer::new(move |asked| match asked.query() {
        query if query.contains("sendInitialEvents") => Reply::failure(400, "BadRequest"),
        query if query.contains("watch=true") => Reply::Watch(events(told.lock().take())),
        _ => Reply::Json(200, json!({"metadata": {"resourceVersion": "8"}, "items": listed})),
    });
    let cache = informer_of(kind, &server);
    cache.synced().await;
    cache
}

/// A cache that `server` fills, or not.
pub(crate) fn informer_of<T: Cached>(kind: &Resource, server: &ApiServer) -> Informer<T> {
    let metrics = InformerMetrics::new(&Metrics::new(), "test").unwrap();
    let source = Source::new(Server::own(server.client()), Kind::BuiltIn(kind.clone()));
    let cache = Informer::new(source, &metrics, Format::Json);
    let running = cache.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    cache
}

/// The events that are sent, then nothing more on an open connection.
fn events(told: Option<UnboundedReceiver<Value>>) -> BoxStream<'static, Value> {
    let Some(mut told) = told else { return pending().boxed() };
    poll_fn(move |cx| told.poll_recv(cx)).chain(pending()).boxed()
}
