//! Helpers of this crate's tests: services that answer from a script, a server on a loopback
//! port, and files.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::client::Body;
use parking_lot::Mutex;
use prometheus::{Registry, TextEncoder};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::call::metrics::{ClientMetrics, RequestMetrics};
use crate::{ClientOptions, Clients, Profile};

/// A body that needs no connection.
pub(crate) type Reply = Response<Full<Bytes>>;

pub(crate) fn reply(status: u16) -> Reply {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

pub(crate) fn reply_after(status: u16, retry_after: &'static str) -> Reply {
    let mut response = reply(status);
    response.headers_mut().insert("retry-after", http::HeaderValue::from_static(retry_after));
    response
}

pub(crate) fn request(method: Method, uri: &str) -> Request<Body> {
    let body = if method == Method::GET { Body::empty() } else { Body::from(b"{}".to_vec()) };
    Request::builder().method(method).uri(uri).body(body).unwrap()
}

/// Metrics of a client `work` of the server `api:6443`, and their page.
pub(crate) fn metrics() -> (Arc<ClientMetrics>, Registry) {
    let registry = Registry::new();
    let metrics = RequestMetrics::new(&registry).unwrap().for_client("api:6443", "work");
    (Arc::new(metrics), registry)
}

pub(crate) fn page(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// Value of the sample `series` on the page; 0 if it is not there.
pub(crate) fn sample(registry: &Registry, series: &str) -> f64 {
    page(registry)
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or(0.0)
}

/// A file of its own in the temporary folder, gone when dropped.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new(content: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("icm-client-{}-{n}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A kubeconfig with one cluster and one user of these fields, in YAML's flow form.
pub(crate) fn kubeconfig_text(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    )
}

/// The file of such a kubeconfig.
pub(crate) fn kubeconfig(cluster: &str, user: &str) -> TempFile {
    TempFile::new(&kubeconfig_text(cluster, user))
}

pub(crate) fn options() -> ClientOptions {
    ClientOptions {
        kubeconfig: None,
        master: None,
        product: "infra-controller-manager".to_owned(),
        version: "v0.1.0-dev".to_owned(),
        commit: "0123456789abcdef".to_owned(),
    }
}

pub(crate) fn profile() -> Profile {
    Profile::root("work")
}

pub(crate) async fn load(
    options: &ClientOptions,
    registry: &Registry,
) -> Result<Clients, crate::ConfigError> {
    Clients::load(options, &RequestMetrics::new(registry).unwrap()).await
}

/// A factory for a server that needs no credentials.
pub(crate) async fn clients(address: &str) -> (Clients, Registry) {
    let registry = Registry::new();
    let options = ClientOptions { master: Some(address.to_owned()), ..options() };
    (load(&options, &registry).await.unwrap(), registry)
}

/// A list that tests fill from inside services.
pub(crate) type Log<T> = Arc<Mutex<Vec<T>>>;

/// How the server behaves towards one request.
pub(crate) enum Conduct {
    /// Answers in full.
    Answer(Reply),
    /// Reads the request and never answers.
    Silence,
    /// Reads the request and closes the connection.
    HangUp,
    /// Sends the headers and the first byte, then nothing.
    StallInBody,
    /// Sends the headers and the first byte, then closes the connection.
    HangUpInBody,
}

/// One request as the server saw it.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) head: Arc<Parts>,
    pub(crate) body: Bytes,
    /// The client certificate of the connection, in DER.
    pub(crate) certificate: Option<Vec<u8>>,
    /// Port of the client's end, one per connection.
    pub(crate) connection: u16,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn path(&self) -> &str {
        self.head.uri.path()
    }
}

type Script = Arc<dyn Fn(&Seen) -> Conduct + Send + Sync>;

/// The server; it ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Log<Seen>,
    _task: JoinSet<()>,
}

impl Server {
    /// Speaks plain HTTP.
    pub(crate) async fn plain(script: impl Fn(&Seen) -> Conduct + Send + Sync + 'static) -> Self {
        Self::start(None, Arc::new(script)).await
    }

    /// Speaks TLS, asks for client certificates, and offers HTTP/2.
    pub(crate) async fn tls(
        authority: &Authority,
        script: impl Fn(&Seen) -> Conduct + Send + Sync + 'static,
    ) -> Self {
        Self::start(Some(authority.acceptor()), Arc::new(script)).await
    }

    async fn start(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Log::default();
        let mut task = JoinSet::new();
        let log = Arc::clone(&seen);
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((tcp, peer)) = listener.accept().await {
                let (tls, script, log) = (tls.clone(), Arc::clone(&script), Arc::clone(&log));
                connections.spawn(async move {
                    let Some(tls) = tls else { return serve(tcp, None, peer, script, log).await };
                    if let Ok(stream) = tls.accept(tcp).await {
                        let certificate = stream.get_ref().1.peer_certificates();
                        let certificate = certificate.map(|chain| chain[0].to_vec());
                        serve(stream, certificate, peer, script, log).await;
                    }
                });
            }
        });
        Self { address, seen, _task: task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

async fn serve(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    certificate: Option<Vec<u8>>,
    peer: SocketAddr,
    script: Script,
    log: Log<Seen>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (script, log) = (Arc::clone(&script), Arc::clone(&log));
        let certificate = certificate.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let seen = Seen { head: Arc::new(head), body, certificate, connection: peer.port() };
            let conduct = script(&seen);
            log.lock().push(seen);
            behave(conduct).await
        }
    });
    auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(io), service).await.ok();
}

type StreamedBody = UnsyncBoxBody<Bytes, io::Error>;

async fn behave(conduct: Conduct) -> io::Result<Response<StreamedBody>> {
    let first = || stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
    let broken = || io::Error::other("hung up");
    match conduct {
        Conduct::Answer(reply) => {
            Ok(reply
                .map(|body: Full<Bytes>| body.map_err(|e: Infallible| match e {}).boxed_unsync()))
        }
        Conduct::Silence => std::future::pending().await,
        Conduct::HangUp => Err(broken()),
        Conduct::StallInBody => {
            Ok(Response::new(StreamBody::new(first().chain(stream::pending())).boxed_unsync()))
        }
        Conduct::HangUpInBody => {
            let end = stream::iter([Err(broken())]);
            Ok(Response::new(StreamBody::new(first().chain(end)).boxed_unsync()))
        }
    }
}

/// A certificate authority with a server certificate for 127.0.0.1 and client certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certificate and key of the client `name`, in PEM.
    pub(crate) fn client(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}
