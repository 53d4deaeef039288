//! The port: each request is counted, delayed, made to fail if a test wants so, and answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::cloud::{Cloud, call_of};
use crate::faults::{Fault, Faults};
use crate::reply::{Reply, error, retry_after};
use crate::tokens::Tokens;

/// The state of the stub.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) cloud: Cloud,
    pub(crate) tokens: Tokens,
    pub(crate) faults: Faults,
    pub(crate) calls: Vec<Call>,
    pub(crate) at_once: usize,
    pub(crate) most_at_once: usize,
    pub(crate) delay: Duration,
}

/// A call of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the method, such as `instances.get`.
    pub name: &'static str,
    /// The zone that it was about.
    pub zone: String,
    /// The path of its URL.
    pub path: String,
    /// Time of arrival.
    pub at: Instant,
}

pub(crate) type Shared = Arc<Mutex<State>>;

/// Serves until the set is dropped.
pub(crate) fn serve(listener: TcpListener, state: Shared) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            while connections.try_join_next().is_some() {}
            let state = Arc::clone(&state);
            let service = service_fn(move |request: Request<Incoming>| {
                let state = Arc::clone(&state);
                async move { answer(&state, request).await }
            });
            connections.spawn(async move {
                let io = TokioIo::new(stream);
                http1::Builder::new().serve_connection(io, service).await.ok();
            });
        }
    });
    task
}

async fn answer(state: &Shared, request: Request<Incoming>) -> io::Result<Reply> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Request::from_parts(head, String::from_utf8_lossy(&body).into_owned());
    if let Some(reply) = state.lock().tokens.answer(&request) {
        return Ok(reply);
    }
    let Some((name, zone)) = call_of(&request) else {
        return Ok(error(404, "notFound", request.uri().path()));
    };
    let path = request.uri().path().to_owned();
    state.lock().calls.push(Call { name, zone, path, at: Instant::now() });
    let _under_way = UnderWay::begin(state);
    let delay = state.lock().delay;
    if !delay.is_zero() {
        sleep(delay).await;
    }
    let mut state = state.lock();
    if !state.tokens.admit(&request) {
        return Ok(error(401, "authError", "Invalid Credentials"));
    }
    let fault = state.faults.take(name);
    match fault {
        Some(Fault::Status(status, reason)) => Ok(error(status, reason, "as the test wants")),
        Some(Fault::RetryAfter(seconds)) => Ok(retry_after(seconds)),
        Some(Fault::Cut) => Err(io::Error::other("cut")),
        Some(Fault::LostAnswer) => {
            drop(state.cloud.answer(&request, fault));
            Err(io::Error::other("cut"))
        }
        Some(Fault::LateFailure(_) | Fault::NoLastPage) | None => {
            Ok(state.cloud.answer(&request, fault))
        }
    }
}

/// A call that has not been answered.
struct UnderWay(Shared);

impl UnderWay {
    fn begin(state: &Shared) -> Self {
        let mut locked = state.lock();
        locked.at_once += 1;
        locked.most_at_once = locked.most_at_once.max(locked.at_once);
        Self(Arc::clone(state))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().at_once -= 1;
    }
}
