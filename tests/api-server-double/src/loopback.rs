//! [`Loopback`]: an [`ApiServer`] on a port, for tests of what only a connection shows.

use std::io;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::ApiServer;

/// A server that speaks HTTP/1.1 without TLS on a free loopback port. Dropped, it ends with all of
/// its connections.
#[derive(Debug)]
pub struct Loopback {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    _connections: JoinSet<()>,
}

impl ApiServer {
    /// Serves on a free loopback port. [`Refused`](crate::Reply::Refused) and
    /// [`Fails`](crate::Reply::Fails) close the connection.
    pub async fn listen(&self) -> Loopback {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (server, mut task) = (self.clone(), JoinSet::new());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let server = server.clone();
                    async move { server.answer(request).await.map_err(io::Error::other) }
                });
                connections.spawn(async move {
                    let io = TokioIo::new(stream);
                    http1::Builder::new().serve_connection(io, service).await.ok();
                });
            }
        });
        Loopback { url, _connections: task }
    }
}
