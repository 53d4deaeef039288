//! One connection from its first byte to its last. Whatever the peer sends ends this connection
//! at worst: every stage has a time limit.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::guard::{Clients, SharedGuard};
use crate::sources::Activity;
use crate::{Pages, Peer, Reply, answer};

/// From the accepted connection to agreed TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// From the first wait for a request to the end of its head, as kube-controller-manager. hyper
/// counts the pause between two requests of one HTTP/1 connection into it as well.
const HEAD: Duration = Duration::from_secs(32);
/// Without a request for so long, or with an answer that the peer does not read; as
/// kube-controller-manager.
const IDLE: Duration = Duration::from_secs(90);
/// The time that an idle peer gets to close the connection in order.
const CLOSE: Duration = Duration::from_secs(2);
/// Far above what probes, scrapers and the API server send: these ports are open to strangers, who
/// must not fill our memory.
const HEAD_BYTES: u32 = 64 * 1024;
/// HTTP/2 streams of a connection unless the options say otherwise.
const STREAMS: u32 = 100;
/// The bytes that a peer may send of one request, and on its connection, before they are read.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// The parts that all connections of a listener share.
pub(crate) struct Connections {
    pub(crate) pages: Pages,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) guard: SharedGuard,
    pub(crate) clients: Clients,
    /// 0 means [`STREAMS`].
    pub(crate) max_streams: u32,
    pub(crate) metrics: ListenerMetrics,
    pub(crate) stop: CancellationToken,
}

impl Connections {
    /// Serves one peer until either side is done.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: IpAddr,
        activity: Arc<Activity>,
    ) {
        let _open = Open::count(&self.metrics);
        let handshake = timeout(HANDSHAKE, self.agree_on_tls(stream));
        let agreed = tokio::select! {
            outcome = handshake => outcome,
            () = self.stop.cancelled() => return,
        };
        match agreed {
            Ok(Ok(stream)) => {
                activity.agreed();
                self.serve_http(stream, peer, &activity).await;
            }
            Ok(Err(err)) => self.count_failed_handshake(peer, &err),
            Err(err) => self.count_failed_handshake(peer, &err),
        }
    }

    async fn agree_on_tls(&self, mut stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        if speaks_plain_http(&stream).await? {
            stream.write_all(PLAIN_HTTP_ANSWER).await?;
            stream.shutdown().await?;
            return Err(std::io::Error::other("the client sent HTTP without TLS"));
        }
        self.acceptor.accept(stream).await
    }

    fn count_failed_handshake(&self, peer: IpAddr, err: &dyn Display) {
        self.metrics.handshake_errors.inc();
        debug!(v = 5, logger = "serving", %peer, %err, "TLS handshake failed");
    }

    async fn peer(&self, address: IpAddr, stream: &TlsStream<TcpStream>) -> Peer {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        Peer::new(address, self.clients.state_of(chain).await)
    }

    async fn serve_http(
        &self,
        stream: TlsStream<TcpStream>,
        address: IpAddr,
        activity: &Arc<Activity>,
    ) {
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let peer = self.peer(address, &stream).await;
        let service = service_fn(|request: Request<Incoming>| {
            let (pages, guard) = (self.pages.clone(), self.guard.clone());
            let (peer, running) = (peer.clone(), activity.begin());
            async move {
                let reply = answer(&pages, guard.get(), peer, request).await;
                drop(running);
                Ok::<Reply, Infallible>(reply)
            }
        });
        let io = TokioIo::new(stream);
        // The protocol is known from ALPN. Guessing it from the first bytes, as hyper-util's
        // automatic builder does, has no time limit for a peer that sends none.
        if http2 {
            let streams = if self.max_streams == 0 { STREAMS } else { self.max_streams };
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(streams)
                .max_header_list_size(HEAD_BYTES)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .serve_connection(io, service);
            self.drive(connection, activity).await;
        } else {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(HEAD_BYTES as usize)
                .serve_connection(io, service);
            self.drive(connection, activity).await;
        }
    }

    /// Runs the connection; asks it to end after the stop or when idle. After the stop the server
    /// sets the limit, when idle we do.
    async fn drive<C>(&self, connection: C, activity: &Activity)
    where
        C: GracefulConnection,
        C::Error: Display,
    {
        let mut connection = pin!(connection);
        let outcome = tokio::select! {
            outcome = connection.as_mut() => Some(outcome),
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                Some(connection.await)
            }
            () = activity.idle(IDLE) => {
                connection.as_mut().graceful_shutdown();
                timeout(CLOSE, connection).await.ok()
            }
        };
        if let Some(Err(err)) = outcome {
            debug!(v = 6, logger = "serving", %err, "Connection ended with an error");
        }
    }
}

const PLAIN_HTTP_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    this port speaks https\n";

/// Whether the first bytes are an HTTP method: a probe with the wrong scheme, which deserves a
/// better answer than a TLS alert. Takes nothing out of the stream.
async fn speaks_plain_http(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; 4];
    let seen = stream.peek(&mut start).await?;
    Ok(matches!(
        &start[..seen],
        b"GET " | b"HEAD" | b"POST" | b"PUT " | b"DELE" | b"OPTI" | b"PRI "
    ))
}

/// One open connection in the gauge.
struct Open(prometheus::IntGauge);

impl Open {
    fn count(metrics: &ListenerMetrics) -> Self {
        metrics.connections.inc();
        Self(metrics.connections.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Metrics of all listeners of a process, told apart by the label `listener`. Clones share them.
#[derive(Clone, Debug)]
pub struct ServingMetrics {
    connections: IntGaugeVec,
    handshake_errors: IntCounterVec,
    rejected: IntCounterVec,
}

/// Metrics of one listener.
#[derive(Clone)]
pub(crate) struct ListenerMetrics {
    pub(crate) connections: IntGauge,
    pub(crate) handshake_errors: IntCounter,
    pub(crate) rejected: IntCounter,
}

impl ServingMetrics {
    /// Registers the metrics in `registry`.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let labels = &["listener"];
        let counter = |name: &str, help: &str| metrics::counter(registry, name, help, labels);
        let help = "Open connections, by listener.";
        Ok(Self {
            connections: metrics::gauge(registry, "icm_serving_connections", help, labels)?,
            handshake_errors: counter(
                "icm_serving_handshake_errors_total",
                "Connections that ended before the TLS handshake was complete, by listener.",
            )?,
            rejected: counter(
                "icm_serving_rejected_connections_total",
                "Connections that were closed because too many were open, by listener.",
            )?,
        })
    }

    pub(crate) fn of(&self, listener: &str) -> ListenerMetrics {
        let label = &[listener];
        ListenerMetrics {
            connections: self.connections.with_label_values(label),
            handshake_errors: self.handshake_errors.with_label_values(label),
            rejected: self.rejected.with_label_values(label),
        }
    }
}
