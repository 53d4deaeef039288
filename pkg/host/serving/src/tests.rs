//! The server over real sockets: what a client and a hostile peer see.

mod end_to_end;
mod hostile;
mod tls;
mod webhook;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prometheus::Registry;
use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::{
    BuildInfo, Everyone, Exposition, Health, ListenerOptions, Pages, Server, ServingMetrics,
};

/// A running server on a free loopback port.
struct Running {
    address: SocketAddr,
    health: Health,
    registry: Registry,
    metrics: ServingMetrics,
    pages: Pages,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

const BUILD: BuildInfo = BuildInfo { version: "0.0.0", commit: "c", rustc: "r", k8s_compat: "k" };

fn loopback() -> ListenerOptions {
    let bind_address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    ListenerOptions { bind_address, port: 0, ..ListenerOptions::default() }
}

async fn start(options: &ListenerOptions) -> Running {
    let server = Server::bind(options).await.unwrap();
    let address = server.local_addrs().next().unwrap();
    let (health, registry) = (Health::new(), Registry::new());
    let metrics = ServingMetrics::new(&registry).unwrap();
    let pages = Pages::standard(&health, &registry, &BUILD, &Exposition::default());
    let stop = CancellationToken::new();
    let task = spawn(server, pages.clone(), &metrics, &stop);
    Running { address, health, registry, metrics, pages, stop, task }
}

fn spawn(
    server: Server,
    pages: Pages,
    metrics: &ServingMetrics,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let (metrics, stop) = (metrics.clone(), stop.clone());
    tokio::spawn(async move { server.serve(pages, Arc::new(Everyone), &metrics, stop).await })
}

impl Running {
    /// A metric of the server, read past the network.
    fn metric(&self, name: &str) -> f64 {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        family.map_or(0.0, |family| {
            let metric = &family.get_metric()[0];
            metric.get_gauge().get_value() + metric.get_counter().get_value()
        })
    }

    async fn until_metric(&self, name: &str, value: f64) {
        let reached = async {
            while self.metric(name) < value {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), reached).await;
        assert!(waited.is_ok(), "{name} stays at {}", self.metric(name));
    }

    async fn connect(&self, alpn: &[&str]) -> TlsStream<TcpStream> {
        self.connect_as(client_config(alpn)).await.unwrap()
    }

    async fn connect_as(&self, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// One GET over the protocol that ALPN chooses from `alpn`.
    async fn get(&self, alpn: &[&str], path: &str) -> Answer {
        let request = Request::get(format!("https://{}{path}", self.address));
        let request = request.body(Full::default()).unwrap();
        send(self.connect(alpn).await, request).await
    }
}

/// One request over a fresh connection, in the protocol that ALPN chose.
async fn send(stream: TlsStream<TcpStream>, request: Request<Full<Bytes>>) -> Answer {
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    let response = if http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Answer { status: parts.status.as_u16(), version: parts.version, headers: parts.headers, body }
}

struct Answer {
    status: u16,
    version: Version,
    headers: HeaderMap,
    body: String,
}

fn client_config(alpn: &[&str]) -> ClientConfig {
    let mut config =
        client(ring::default_provider(), rustls::DEFAULT_VERSIONS).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// The beginnings of a client that can do what `provider` can.
fn client(
    provider: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(provider);
    ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
}

/// A client like the kubelet's probes: it checks the signature, not who signed.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
