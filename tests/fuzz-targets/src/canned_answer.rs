//! [`CannedAnswer`]: a server on a loopback port that gives every request the same answer.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// Makes the answer to the path of a request.
type Answering = Box<dyn Fn(&str) -> (StatusCode, Bytes) + Send>;

/// Serves on the runtime that it was started on. Clones share the answer.
#[derive(Clone)]
pub(crate) struct CannedAnswer {
    pub(crate) port: u16,
    answer: Arc<Mutex<Answering>>,
}

impl CannedAnswer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let none: Answering = Box::new(|_| (StatusCode::OK, Bytes::new()));
        let server = Self { port, answer: Arc::new(Mutex::new(none)) };
        let answering = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answering = answering.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let (status, body) = (*answering.answer.lock())(request.uri().path());
                    let mut response = Response::new(Full::new(body));
                    *response.status_mut() = status;
                    std::future::ready(Ok::<_, Infallible>(response))
                });
                let _nodelay = stream.set_nodelay(true);
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        server
    }

    pub(crate) fn set(&self, answer: impl Fn(&str) -> (StatusCode, Bytes) + Send + 'static) {
        *self.answer.lock() = Box::new(answer);
    }
}
