//! [`Stranger`]: a server of an attacker, which writes down every credential that reaches it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Listens on a loopback port until dropped, and answers `ok` to everything.
pub(crate) struct Stranger {
    pub(crate) port: u16,
    /// The CA that verifies its certificate, in PEM.
    pub(crate) ca_pem: String,
    heard: Arc<Heard>,
    _stop: DropGuard,
}

#[derive(Default)]
struct Heard {
    connections: AtomicUsize,
    credentials: Mutex<Vec<String>>,
}

impl Stranger {
    pub(crate) async fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, stop) = (Arc::<Heard>::default(), CancellationToken::new());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (hears, ended) = (Arc::clone(&heard), stop.clone());
        tokio::spawn(async move {
            while let Some(Ok((stream, _))) = ended.run_until_cancelled(listener.accept()).await {
                hears.connections.fetch_add(1, Ordering::Relaxed);
                let answered = answer(acceptor.clone(), stream, Arc::clone(&hears));
                let ended = ended.clone();
                tokio::spawn(async move { ended.run_until_cancelled(answered).await });
            }
        });
        Self { port, ca_pem: certificate.pem(), heard, _stop: stop.drop_guard() }
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.heard.connections.load(Ordering::Relaxed)
    }

    /// Whether this token arrived.
    pub(crate) fn has(&self, token: &str) -> bool {
        self.heard.credentials.lock().iter().any(|heard| heard.contains(token))
    }
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream, heard: Arc<Heard>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request: Request<Incoming>| {
        let credential = request.headers().get(AUTHORIZATION);
        if let Some(credential) = credential.and_then(|it| it.to_str().ok()) {
            heard.credentials.lock().push(credential.to_owned());
        }
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok")))) }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    drop(connection.serve_connection(TokioIo::new(stream), service).await);
}
