//! Members that are no API servers: something listens, and that is all.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::certificates::Shown;

/// Listens on a loopback port until dropped.
pub(crate) struct Listener {
    pub(crate) url: String,
    _stop: DropGuard,
    /// Connections that fill its queue.
    _waiting: Vec<TcpStream>,
}

/// Says that it is well, whatever it is asked.
pub(crate) async fn well(shown: &Shown) -> Listener {
    let acceptor = TlsAcceptor::from(Arc::new(tls(shown)));
    serve(move |stream| answer(acceptor.clone(), stream)).await
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let ok = service_fn(async |_request| {
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
    });
    // Who asks may hang up at any time.
    let connection = hyper::server::conn::http1::Builder::new();
    drop(connection.serve_connection(TokioIo::new(stream), ok).await);
}

/// Takes everything in and says nothing.
pub(crate) async fn silent() -> Listener {
    serve(async |_held: TcpStream| std::future::pending().await).await
}

/// A listener whose queue is full, so that the kernel drops new connections.
pub(crate) async fn dropping() -> Listener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    let connect = || timeout(Duration::from_millis(300), TcpStream::connect(address));
    while let Ok(Ok(stream)) = connect().await {
        waiting.push(stream);
    }
    let stop = CancellationToken::new();
    let ended = stop.clone();
    tokio::spawn(async move {
        let _listening = listener;
        ended.cancelled().await;
    });
    Listener { url: format!("https://{address}"), _stop: stop.drop_guard(), _waiting: waiting }
}

async fn serve<F>(answer: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Listener
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let ended = stop.clone();
    tokio::spawn(async move {
        while let Some(Ok((stream, _))) = ended.run_until_cancelled(listener.accept()).await {
            let (connection, ended) = (answer(stream), ended.clone());
            tokio::spawn(async move { ended.run_until_cancelled(connection).await });
        }
    });
    Listener { url, _stop: stop.drop_guard(), _waiting: Vec::new() }
}

fn tls(shown: &Shown) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = provider.key_provider.load_private_key(shown.key.clone_key()).unwrap();
    // Not by `with_single_cert`, which cannot read certificates of version 1.
    let shown = CertifiedKey::new(vec![shown.certificate.clone()], key);
    let shown: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(shown));
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    config.unwrap().with_no_client_auth().with_cert_resolver(shown)
}
