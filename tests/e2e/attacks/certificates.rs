//! Members whose certificates are costly to judge.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, PKCS_ECDSA_P384_SHA384};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tests::kubectl::hub;
use tests::poll::poll;
use tests::usage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::members::{cluster, ready, secret, start};
use crate::serving::{Signer, ca, ca_params};

const PERIOD: Duration = Duration::from_secs(2);
/// Between two probes of the healthy member there is no more than the period and this.
const LATE: Duration = Duration::from_secs(1);
/// Probes of each member.
const PROBES: usize = 12;

/// Shows a chain to every client, and answers `ok` on a connection for each request.
struct Member {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// Times of the probes.
    probed: Arc<Mutex<Vec<Instant>>>,
}

impl Member {
    async fn start(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let member = Self { port, connections: Arc::default(), probed: Arc::default() };
        let (connections, probed) = (Arc::clone(&member.connections), Arc::clone(&member.probed));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (acceptor, probed) = (acceptor.clone(), Arc::clone(&probed));
                // A client that refuses the certificate closes the connection.
                tokio::spawn(async move { drop(answer(acceptor, stream, &probed).await) });
            }
        });
        member
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The longest time between two probes.
    fn longest_gap(&self) -> Duration {
        let probed = self.probed.lock();
        probed.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
    }
}

async fn answer(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    probed: &Mutex<Vec<Instant>>,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let is_list = head.starts_with(b"GET /api");
    if !is_list {
        probed.lock().push(Instant::now());
    }
    let body = if is_list { r#"{"items":[]}"# } else { "ok" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// A certificate for this host, and its key.
fn leaf(by: &Signer) -> (CertificateDer<'static>, KeyPair) {
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap().der().clone(), key)
}

fn slow_ca(name: &str) -> Signer {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    CertifiedIssuer::self_signed(ca_params(name), key).unwrap()
}

/// A member of KubeFed whose author trusts `authorities`.
fn trusting(name: &str, member: &Member, authorities: &[Signer]) -> Value {
    let mut object = cluster(name, &format!("https://127.0.0.1:{}", member.port));
    let bundle: String = authorities.iter().map(CertifiedIssuer::pem).collect();
    object["spec"]["caBundle"] = json!(STANDARD.encode(bundle));
    object
}

/// The control: what a library takes for one judgement that tries every path.
fn judged_by_the_library(trusted: &Signer, chain: &[CertificateDer<'static>]) -> Duration {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let begun = Instant::now();
    let now = UnixTime::now();
    let verdict = verifier.unwrap().verify_server_cert(&chain[0], &chain[1..], &name, &[], now);
    assert!(verdict.is_err());
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_costly_certificates_hold_up_no_probe_of_others() {
    let hub = hub().await;
    // Each of nine CAs could have signed each other one.
    let same: Vec<_> = (0..9).map(|_| ca("same")).collect();
    let (shown, key) = leaf(&same[0]);
    let mut chain = vec![shown];
    chain.extend(same.iter().map(|one| one.der().clone()));
    let mut long = chain.clone();
    long.resize(258, CertificateDer::from(vec![0; 150]));
    let trusted = vec![ca("good")];
    let mut hostile = Vec::new();
    let mut objects = vec![secret()];
    for number in 0..3 {
        let member = Member::start(long.clone(), &key).await;
        objects.push(trusting(&format!("long-{number}"), &member, &trusted));
        hostile.push(member);
    }
    // The worst inside the bounds: the key of each authority is tried.
    let authorities: Vec<_> = (0..12).map(|_| slow_ca("slow")).collect();
    let (worst, worst_key) = leaf(&slow_ca("slow"));
    let member = Member::start(vec![worst], &worst_key).await;
    objects.push(trusting("worst", &member, &authorities));
    hostile.push(member);
    let (good, good_key) = leaf(&trusted[0]);
    let healthy = Member::start(vec![good], &good_key).await;
    objects.push(trusting("healthy", &healthy, &trusted));
    hub.create_all(&objects);

    let process = start(&hub, &["--cluster-health-period=2s", "--cluster-health-timeout=1s"]);
    let before = usage::of(process.pid()).unwrap().cpu;
    poll("all members are probed a dozen times", async || {
        let is_probed = healthy.probed.lock().len() > PROBES;
        (is_probed && hostile.iter().all(|member| member.connections() >= PROBES)).then_some(())
    })
    .await;
    let cpu = usage::of(process.pid()).unwrap().cpu.saturating_sub(before);
    let attacks: usize = hostile.iter().map(Member::connections).sum();
    let gap = healthy.longest_gap();
    let by_the_library = judged_by_the_library(&trusted[0], &long);
    println!(
        "longest time between two probes {gap:?}; CPU {cpu:?} for {attacks} costly handshakes"
    );
    println!("control: the library takes {by_the_library:?} for one judgement");
    assert_eq!(ready(&hub, "healthy").0, "True");
    for (name, reported) in [("long-0", "more than 10 certificates"), ("worst", "8 signatures")] {
        let (status, message) = ready(&hub, name);
        assert!(status != "True" && message.contains(reported), "{name}: {status} {message}");
    }
    assert!(gap <= PERIOD + LATE, "{gap:?}");
    assert!(by_the_library > LATE, "control: the chain is no attack: {by_the_library:?}");
}
