//! [`Loopback`]: an [`ApiServer`] on a port, for tests of what only a connection shows; with TLS and
//! HTTP/2 for measurements.

use std::io;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::server::ApiServer;

/// A server on a free loopback port. Dropped, it ends with all of its connections.
#[derive(Debug)]
pub struct Loopback {
    /// `http://127.0.0.1:<port>`, or `https` with TLS.
    pub url: String,
    /// The certificate that a client has to trust, in PEM; empty without TLS.
    pub certificate: String,
    _connections: JoinSet<()>,
}

impl ApiServer {
    /// Serves HTTP/1.1 without TLS on a free loopback port. [`Refused`](crate::Reply::Refused) and
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
        Loopback { url, certificate: String::new(), _connections: task }
    }

    /// Serves HTTP/2 with TLS, as a kube-apiserver does.
    pub async fn listen_with_tls(&self) -> Loopback {
        let certificate = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(certificate.signing_key.serialize_der().into());
        let chain = vec![certificate.cert.der().clone()];
        let mut tls =
            ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("https://{}", listener.local_addr().expect("it is bound"));
        let (server, mut task) = (self.clone(), JoinSet::new());
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve_with_tls(server.clone(), tls.clone(), stream));
            }
        });
        Loopback { url, certificate: certificate.cert.pem(), _connections: task }
    }
}

async fn serve_with_tls(server: ApiServer, tls: TlsAcceptor, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    // A client that hangs up is no failure of the server.
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(|request: Request<Incoming>| {
        let server = server.clone();
        async move { server.answer(request).await.map_err(io::Error::other) }
    });
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new());
    http.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    http.serve_connection(TokioIo::new(stream), service).await.ok();
}

/// Streams on one connection, as kube-apiserver allows them by default.
const MAX_STREAMS: u32 = 100;
