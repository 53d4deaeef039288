//! [`ApiServer`]: the function, and what it was asked.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::asked::Asked;
use crate::reply::{Body, BoxError, Reply};

/// More than any wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server; clones are the same one.
#[derive(Clone)]
pub struct ApiServer {
    script: Arc<dyn Fn(&Asked) -> Reply + Send + Sync>,
    asked: watch::Sender<Vec<Asked>>,
    /// Requests are not recorded.
    forgets: bool,
}

/// A client, in memory, of a server that does with each request what `script` says.
pub fn client(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> kube::Client {
    ApiServer::new(script).client()
}

/// A client, in memory, of a server that has these objects and never another: each watch begins
/// with all of them.
pub fn client_of_unchanging(objects: Vec<Value>) -> kube::Client {
    client(move |asked| {
        let mut events = Vec::new();
        if asked.query().contains("sendInitialEvents=true") {
            events.extend(objects.iter().map(|object| json!({"type": "ADDED", "object": object})));
            let end = json!({"k8s.io/initial-events-end": "true"});
            let mark = json!({"metadata": {"resourceVersion": "2", "annotations": end}});
            events.push(json!({"type": "BOOKMARK", "object": mark}));
        }
        Reply::Watch(stream::iter(events).chain(stream::pending()).boxed())
    })
}

impl ApiServer {
    /// A server that does with each request what `script` says. A panic of the script is one of the
    /// client's call.
    pub fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), asked: watch::Sender::default(), forgets: false }
    }

    /// This server, without a record of its requests: there may be millions.
    #[must_use]
    pub fn without_record(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// A client without a connection; its default namespace is `default`.
    pub fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        kube::Client::new(service, "default")
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// The requests so far, as soon as there are `count`.
    ///
    /// # Panics
    /// After a minute without that many.
    pub async fn until_asked(&self, count: usize) -> Vec<Asked> {
        let mut asked = self.asked.subscribe();
        let wait = timeout(PATIENCE, asked.wait_for(|asked| asked.len() >= count)).await;
        let Ok(enough) = wait else { panic!("less than {count} requests: {:?}", self.asked()) };
        enough.expect("the server holds the sender").clone()
    }

    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Result<Response<Body>, BoxError>
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        let mut asked = Asked { number: 0, at: Instant::now(), head, body };
        if !self.forgets {
            self.asked.send_modify(|earlier| {
                asked.number = earlier.len();
                earlier.push(asked.clone());
            });
        }
        (self.script)(&asked).resolve().await
    }
}
