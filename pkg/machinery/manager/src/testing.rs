//! What the tests of this crate share: an API server that is a function, a runner that is another,
//! a context for it, and a log that can be read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use events::EventMetrics;
use futures::future::{BoxFuture, pending};
use http::{Request, Response};
use informer::InformerMetrics;
use kube::client::Body;
use parking_lot::Mutex;
use prometheus::{IntCounter, Registry};
use tokio_util::sync::CancellationToken;
use tracing::subscriber::DefaultGuard;
use workqueue::QueueMetrics;

use crate::{Context, Failure, Informers, Permission, Runner, Stopped};

/// What becomes of a request.
pub(crate) enum Reply {
    Json(u16, serde_json::Value),
    /// The connection is refused.
    Refused,
    /// No answer, ever.
    Silence,
}

/// A client of a server that answers so.
pub(crate) fn client(
    answer: impl Fn(&Request<Body>) -> Reply + Send + Sync + 'static,
) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let reply = answer(&request);
        async move {
            match reply {
                Reply::Json(code, body) => {
                    let body = Body::from(body.to_string().into_bytes());
                    Ok(Response::builder().status(code).body(body).expect("a valid answer"))
                }
                Reply::Refused => Err(io::Error::other("connection refused")),
                Reply::Silence => pending().await,
            }
        }
    });
    kube::Client::new(service, "default")
}

/// A context whose API server is this client.
pub(crate) fn context(client: kube::Client) -> Context {
    let registry = Registry::new();
    let metrics = EventMetrics::new(&registry).unwrap();
    let (recorder, _nobody_listens) = events::start(client.clone(), "test", "test", metrics);
    let metrics = InformerMetrics::new(&registry).unwrap();
    Context {
        informers: Informers::new(client.clone(), metrics, CancellationToken::new()),
        client,
        recorder,
        queue_metrics: QueueMetrics::new(&registry).unwrap(),
        registry,
        panics: IntCounter::new("panics", "Contained panics.").unwrap(),
        stop: CancellationToken::new(),
        patch_timeout: Duration::ZERO,
    }
}

pub(crate) type Run = BoxFuture<'static, Result<Stopped, Failure>>;

/// A runner whose `n`th run (from 0) is `run(n, …)`.
pub(crate) struct Fake<F> {
    run: F,
    runs: AtomicUsize,
}

impl<F: Fn(usize, Context) -> Run + Send + Sync + 'static> Fake<F> {
    pub(crate) fn runner(run: F) -> Arc<dyn Runner> {
        Arc::new(Self { run, runs: AtomicUsize::new(0) })
    }
}

impl<F: Fn(usize, Context) -> Run + Send + Sync> Runner for Fake<F> {
    fn service_account(&self) -> &'static str {
        "fake"
    }

    fn permissions(&self) -> &'static [Permission] {
        &[]
    }

    fn event_component(&self) -> &'static str {
        "fake"
    }

    fn run(self: Arc<Self>, context: Context) -> Run {
        (self.run)(self.runs.fetch_add(1, Ordering::Relaxed), context)
    }
}

/// The log of this thread, from [`Log::capture`] on.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn capture(&self) -> DefaultGuard {
        let sink = self.clone();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || sink.clone());
        tracing::subscriber::set_default(log.finish())
    }

    /// The lines so far that contain `text`.
    pub(crate) fn lines(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8(self.0.lock().clone()).expect("a log is text");
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
