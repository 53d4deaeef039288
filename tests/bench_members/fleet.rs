//! The members: one listener for all loopback addresses, a certificate for each.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::ledger::Ledger;
use crate::options::Options;
use crate::probers::Probers;

/// How long an answer takes when several processes share the members, so that two at once are seen.
const SHARED_ANSWER: Duration = Duration::from_millis(250);

/// Path of a probe.
const PROBED: &str = "/readyz";
/// Nodes of a member with checks, and bytes of one.
const NODES: usize = 10;
const NODE_BYTES: usize = 4096;

/// All members, which answer until this is dropped.
pub(crate) struct Fleet {
    pub(crate) ledger: Ledger,
    pub(crate) handshakes: AtomicU64,
    /// The members with an outage are silent now.
    pub(crate) outage: AtomicBool,
    /// All members are silent now.
    pub(crate) muted: AtomicBool,
    /// Filled when several processes share the members.
    pub(crate) probers: Probers,
    /// Requests of checks.
    pub(crate) check_requests: AtomicU64,
    /// The list of Nodes of a member.
    nodes: Bytes,
    answer_takes: Duration,
    port: u16,
    ca: String,
    acceptors: Vec<TlsAcceptor>,
    members: u32,
    silent: u32,
    affected: u32,
}

impl Fleet {
    /// Makes a certificate for each and listens.
    pub(crate) async fn start(options: &Options) -> anyhow::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        let port = listener.local_addr()?.port();
        let (ca, acceptors) = certificates(options.members)?;
        let fleet = Arc::new(Self {
            ledger: Ledger::new(options.members),
            handshakes: AtomicU64::new(0),
            outage: AtomicBool::new(false),
            muted: AtomicBool::new(false),
            probers: Probers::default(),
            check_requests: AtomicU64::new(0),
            nodes: nodes(if options.checks > 0 { NODES } else { 0 }),
            answer_takes: if options.shards > 1 { SHARED_ANSWER } else { Duration::ZERO },
            port,
            ca,
            acceptors,
            members: options.members,
            silent: options.silent(),
            affected: options.outage(),
        });
        let serving = Arc::clone(&fleet);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        Ok(fleet)
    }

    /// Address of a member.
    pub(crate) fn endpoint(&self, member: u32) -> String {
        format!("https://{}:{}", address(member), self.port)
    }

    /// The certificate of the authority that vouches for all members.
    pub(crate) fn ca(&self) -> &str {
        &self.ca
    }

    fn is_silent(&self, member: u32) -> bool {
        let down = member < self.affected && self.outage.load(Ordering::Relaxed);
        down || self.muted.load(Ordering::Relaxed) || member >= self.members - self.silent
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let Some(member) = stream.local_addr().ok().and_then(number) else { return };
        if self.is_silent(member) {
            self.ledger.note(member);
            // Takes everything in and says nothing, until the other end gives up.
            while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {}
            return;
        }
        let port = stream.peer_addr().map_or(0, |peer| peer.port());
        let Some(acceptor) = self.acceptors.get(member as usize) else { return };
        let Ok(stream) = acceptor.accept(stream).await else { return };
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        let service = service_fn(|request: Request<Incoming>| {
            let fleet = Arc::clone(&self);
            async move { fleet.answer(member, port, request.uri().path()).await }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        // The other end may go at any time.
        drop(connection.serve_connection(TokioIo::new(stream), service).await);
    }

    async fn answer(
        &self,
        member: u32,
        port: u16,
        path: &str,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let prober = self.probers.behind(port);
        let _answering = (path == PROBED).then(|| self.ledger.answer(member, prober));
        if !self.answer_takes.is_zero() {
            sleep(self.answer_takes).await;
        }
        if self.is_silent(member) {
            std::future::pending::<()>().await;
        }
        if path == PROBED {
            return Ok(Response::new(Full::new(Bytes::from_static(b"ok"))));
        }
        // The product asks a member for its health, for the list of Nodes, and for what its checks read.
        self.check_requests.fetch_add(1, Ordering::Relaxed);
        let body = match path {
            "/api/v1/nodes" => self.nodes.clone(),
            _ if path.ends_with("/leases") => leases(),
            _ => Bytes::from_static(
                br#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#,
            ),
        };
        Ok(Response::new(Full::new(body)))
    }
}

fn nodes(number: usize) -> Bytes {
    let node = |number: usize| {
        json!({
            "metadata": {"name": format!("node-{number}"), "annotations": {"size": "x".repeat(NODE_BYTES)}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    let items: Vec<_> = (0..number).map(node).collect();
    json!({"items": items}).to_string().into()
}

/// All renewed now.
fn leases() -> Bytes {
    let now = format!("{:.6}", Timestamp::now());
    let lease = |number: usize| json!({"metadata": {"name": format!("node-{number}")}, "spec": {"renewTime": now}});
    let items: Vec<_> = (0..NODES).map(lease).collect();
    json!({"items": items}).to_string().into()
}

/// 127.1.0.1 and on.
fn address(member: u32) -> Ipv4Addr {
    let [_, _, high, low] = (member + 1).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

fn number(local: SocketAddr) -> Option<u32> {
    let IpAddr::V4(address) = local.ip() else { return None };
    let [_, _, high, low] = address.octets();
    u32::from_be_bytes([0, 0, high, low]).checked_sub(1)
}

fn certificates(members: u32) -> anyhow::Result<(String, Vec<TlsAcceptor>)> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let ca = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    // One key for all: signing is what takes the time, here as there.
    let key = KeyPair::generate()?;
    let acceptor = |member| -> anyhow::Result<TlsAcceptor> {
        let params = CertificateParams::new(vec![address(member).to_string()])?;
        let certificate = params.signed_by(&key, &issuer)?.der().clone();
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate], der);
        Ok(TlsAcceptor::from(Arc::new(config.context("a certificate cannot be used")?)))
    };
    let acceptors = (0..members).map(acceptor).collect::<anyhow::Result<_>>()?;
    Ok((ca, acceptors))
}
