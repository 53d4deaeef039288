//! `proxy-url`: the product reaches the API server through a proxy and in no other way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tests::Cluster;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::scene::Scene;

/// `me:se cret`, as `Proxy-Authorization` has it.
const LOGIN: &str = "Basic bWU6c2UgY3JldA==";

/// A CONNECT proxy that wants a login, in TLS or without.
struct Proxy {
    address: String,
    tunnels: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let tunnels = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tunnels);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, count) = (tls.clone(), Arc::clone(&count));
                connections.spawn(async move {
                    match tls {
                        None => tunnel(stream, &count).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                tunnel(stream, &count).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, tunnels, _accepting: accepting }
    }

    fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }
}

async fn tunnel(mut near: impl AsyncRead + AsyncWrite + Unpin, count: &AtomicUsize) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match near.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split_once(' ')).unwrap().0;
    let login = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
    });
    if login != Some(LOGIN) {
        drop(near.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await);
        return;
    }
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    count.fetch_add(1, Ordering::Relaxed);
    drop(near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await);
    drop(copy_bidirectional(&mut near, &mut far).await);
}

/// A TLS acceptor with the certificate of the API server: a proxy is verified against the same
/// bundle.
fn acceptor(cluster: &Cluster) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_file(cluster.dir().join("server.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(cluster.dir().join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_wants_a_login_works() {
    let scene = Scene::set().await;
    let proxy = Proxy::start(None).await;
    let mut server = scene.server();
    server["proxy-url"] = json!(format!("http://me:se%20cret@{}", proxy.address));
    let manager = scene.leads(&server, &json!({"token": scene.token().await})).await;
    scene.serves("a").await;
    assert!(proxy.tunnels() >= 2, "the lease and the rest each have a connection");
    let log = manager.lines().join("\n");
    assert!(!log.contains("se%20cret") && !log.contains("se cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_speaks_tls_works_with_a_client_certificate_inside() {
    let scene = Scene::set().await;
    let proxy = Proxy::start(Some(acceptor(&scene.cluster))).await;
    let mut server = scene.server();
    server["proxy-url"] = json!(format!("https://me:se%20cret@{}", proxy.address));
    let identity = scene.certificate(std::time::Duration::from_secs(86_400));
    let chain = scene.file("client.crt", &identity.certificate_pem);
    let key = scene.file("client.key", &identity.key_pem);
    scene.works(&server, &json!({"client-certificate": chain, "client-key": key})).await;
    assert!(proxy.tunnels() >= 2);
}
