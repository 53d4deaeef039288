//! Strangers at the serving port: chains that are costly to judge, and connections that never end.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tests::metrics::Metrics;
use tests::temp_dir::TempDir;
use tests::{Process, poll, usage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// Requests of an attack, each on a connection of its own.
const REQUESTS: u32 = 20;
/// CPU of the process that one request of a stranger may take beyond that of a plain client: 10 ms
/// of a release, five times as much without optimisation.
const CPU: Duration = Duration::from_millis(50);
/// A probe of `/livez` on a busy machine; the kubelet waits as long. The attack took 20 s.
const LATENCY: Duration = Duration::from_secs(5);
/// Connections of a flood.
const FLOOD: usize = 300;
/// Maximum of connections from one source.
const OF_ONE_SOURCE: f64 = 32.0;
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The product without any API server, which trusts clients of one CA.
struct Target {
    process: Process,
    ca: Signer,
    _folder: TempDir,
}

pub(crate) type Signer = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn ca(name: &str) -> Signer {
    CertifiedIssuer::self_signed(ca_params(name), KeyPair::generate().unwrap()).unwrap()
}

pub(crate) fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A certificate of a client, and its key.
fn client(by: &Signer) -> (CertificateDer<'static>, KeyPair) {
    let mut params = CertificateParams::default();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap().der().clone(), key)
}

impl Target {
    async fn start() -> Self {
        let folder = TempDir::new("attack").unwrap();
        let (kubeconfig, ca_file) = (folder.join("kubeconfig"), folder.join("ca.crt"));
        let mut text = String::from("apiVersion: v1\nkind: Config\ncurrent-context: x\n");
        text += "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n";
        text += "users: [{name: x, user: {token: x}}]\n";
        text += "contexts: [{name: x, context: {cluster: x, user: x}}]\n";
        std::fs::write(&kubeconfig, text).unwrap();
        let ca = ca("ca");
        std::fs::write(&ca_file, ca.pem()).unwrap();
        let process = Process::with_kubeconfig(&kubeconfig)
            .args(["--leader-elect=false", "--authentication-skip-lookup"])
            .args([format!("--client-ca-file={}", ca_file.display())])
            .start();
        let target = Self { process, ca, _folder: folder };
        poll("/livez answers", async || {
            (get(&target, LOCALHOST, None, "/livez").await.ok()?.0 == 200).then_some(())
        })
        .await;
        target
    }

    fn cpu(&self) -> Duration {
        usage::of(self.process.pid()).unwrap().cpu
    }

    /// CPU of the process for requests of a client that shows `chain`, and their statuses; 0 for a
    /// handshake that was refused.
    async fn attack(
        &self,
        chain: &[CertificateDer<'static>],
        key: &KeyPair,
    ) -> (Duration, Vec<u16>) {
        let before = self.cpu();
        let mut statuses = Vec::new();
        for _ in 0..REQUESTS {
            let shown = Some((chain.to_vec(), key));
            statuses.push(get(self, LOCALHOST, shown, "/livez").await.map_or(0, |answer| answer.0));
        }
        (self.cpu().saturating_sub(before), statuses)
    }
}

/// GET on a connection of its own from `source`.
async fn get(
    target: &Target,
    source: IpAddr,
    shown: Option<(Vec<CertificateDer<'static>>, &KeyPair)>,
    path: &str,
) -> std::io::Result<(u16, String)> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
    let config = match shown {
        None => config.with_no_client_auth(),
        Some((chain, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = connect(target, source).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(std::io::ErrorKind::InvalidData)?, answer))
}

async fn connect(target: &Target, source: IpAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(SocketAddr::new(LOCALHOST, target.process.port())).await
}

/// The worst latency of `/livez` from this host while `attack` runs.
async fn worst_livez<T>(target: &Target, attack: impl Future<Output = T>) -> (Duration, T) {
    let over = AtomicBool::new(false);
    let probes = async {
        let mut worst = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let (status, _) = get(target, LOCALHOST, None, "/livez").await.unwrap();
            assert_eq!(status, 200);
            worst = worst.max(begun.elapsed());
        }
        worst
    };
    let attack = async {
        let outcome = attack.await;
        over.store(true, Ordering::Relaxed);
        outcome
    };
    tokio::join!(probes, attack)
}

/// The control: what a library takes for one judgement that tries every path.
fn judged_by_the_library(target: &Target, chain: &[CertificateDer<'static>]) -> Duration {
    let mut roots = RootCertStore::empty();
    roots.add(target.ca.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let begun = Instant::now();
    let verdict = verifier.unwrap().verify_client_cert(&chain[0], &chain[1..], UnixTime::now());
    assert!(verdict.is_err());
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_with_chains_of_many_paths_cost_no_more_than_other_clients() {
    let target = Target::start().await;
    let same: Vec<_> = (0..9).map(|_| ca("same")).collect();
    let (leaf, key) = client(&same[0]);
    let mut chain = vec![leaf];
    chain.extend(same.iter().map(|one| one.der().clone()));
    let mut long = chain.clone();
    long.resize(258, CertificateDer::from(vec![0; 150]));
    let (plain, plain_key) = client(&target.ca);

    let (_, plainly) = worst_livez(&target, target.attack(&[plain], &plain_key)).await;
    assert_eq!(plainly.1, vec![200; 20], "a good certificate is taken");
    let mut figures = format!("plain client {:?}", plainly.0);
    for (name, chain, expected) in
        [("258 certificates", &long, 0), ("10 certificates", &chain, 401)]
    {
        let (worst, (cpu, statuses)) = worst_livez(&target, target.attack(chain, &key)).await;
        write!(figures, "; {name}: {cpu:?}, worst /livez {worst:?}").unwrap();
        assert_eq!(statuses, vec![expected; 20], "{name}");
        assert!(worst < LATENCY, "{figures}");
        assert!(cpu < plainly.0 + CPU * REQUESTS, "{figures}");
    }
    let memory = usage::of(target.process.pid()).unwrap().peak_rss_bytes >> 20;
    let by_the_library = judged_by_the_library(&target, &chain);
    println!("CPU of {REQUESTS} requests: {figures}; peak memory {memory} MiB");
    println!("control: the library takes {by_the_library:?} for one judgement");
    assert!(by_the_library > CPU, "control: the chain is no attack: {by_the_library:?}");
}

/// The address of this machine in its network; none without one. UDP sends nothing to connect.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|own| own.ip()).filter(|own| !own.is_loopback())
}

async fn open_connections(target: &Target) -> f64 {
    let (_, page) = get(target, LOCALHOST, None, "/metrics").await.unwrap();
    let labels = [("listener", "secure")];
    let page = page.split("\r\n\r\n").nth(1).unwrap_or_default();
    Metrics::parse(page).value("icm_serving_connections", &labels).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_of_one_host_block_no_other_client() {
    let target = Target::start().await;
    // To an address of loopback from another one of this machine counts as from another host.
    let Some(remote) = own_address() else {
        panic!("the test needs an address that is no loopback")
    };
    let before = usage::of(target.process.pid()).unwrap();
    let mut flood = Vec::new();
    let (worst, ()) = worst_livez(&target, async {
        for _ in 0..FLOOD {
            flood.push(connect(&target, remote).await.unwrap());
        }
    })
    .await;
    let (worst_after, from_there) = worst_livez(&target, async {
        get(&target, remote, None, "/livez").await.map(|answer| answer.0)
    })
    .await;
    let after = usage::of(target.process.pid()).unwrap();
    let open = open_connections(&target).await;
    let memory = after.peak_rss_bytes.saturating_sub(before.peak_rss_bytes) >> 10;
    println!(
        "{FLOOD} half-open connections: {open} open, worst /livez {:?}, CPU {:?}, memory {memory} KiB",
        worst.max(worst_after),
        after.cpu.saturating_sub(before.cpu),
    );
    assert_eq!(from_there.unwrap(), 200, "the newest gets in");
    assert!(open <= OF_ONE_SOURCE + 2.0, "{open} are open");
    assert!(worst.max(worst_after) < LATENCY, "{worst:?}, {worst_after:?}");

    // Control: on this host all of them stay open, so that the figure can tell.
    let neighbour = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 7));
    let mut control = Vec::new();
    for _ in 0..FLOOD {
        control.push(connect(&target, neighbour).await.unwrap());
    }
    poll("the control is open", async || (open_connections(&target).await > 300.0).then_some(()))
        .await;
    println!("control: {} open from this host", open_connections(&target).await);
}

/// Takes every server.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
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
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
