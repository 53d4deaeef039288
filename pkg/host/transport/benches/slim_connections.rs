//! Memory of many slim connections: opens them to a TLS server in another process, one wire per
//! connection as a prober has, sends one request on each, and prints what each costs
//!.
//!
//! usage: cargo bench -p transport --bench slim_connections [-- connections]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement ends by panicking and tells its result"
)]

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use transport::{Endpoint, Protocol, TlsConfigs, Trust, Wire};

const CONNECTIONS: usize = 10_000;
const LIMIT_KIB: f64 = 48.0;
/// Handshakes under way at a time.
const AT_ONCE: usize = 64;

fn main() {
    allow_many_files();
    let has = |word: &str| env::args().any(|argument| argument == word);
    let wanted = env::args().find_map(|argument| argument.parse().ok()).unwrap_or(CONNECTIONS);
    match (has("serve"), has("measure")) {
        (true, _) => runtime().block_on(serve()),
        (false, true) => report(wanted, has("own-bundles")),
        // Each in a process of its own: memory that was used once is not given back.
        (false, false) => {
            for bundles in ["one-bundle", "own-bundles"] {
                let mut command = Command::new(env::current_exe().unwrap());
                command.args(["measure", bundles, &wanted.to_string()]);
                assert!(command.status().unwrap().success());
            }
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

fn report(wanted: usize, own_bundles: bool) {
    let mut server = Server::start();
    let kib = runtime().block_on(measure(&server, wanted, own_bundles));
    println!(
        "slim_connections own_bundles={own_bundles} connections={wanted} kib_per_connection={kib:.1}"
    );
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(kib <= LIMIT_KIB, "a slim connection takes {kib:.1} KiB, limit {LIMIT_KIB}");
}

/// Opens all connections; what each of them added to this process, in KiB.
async fn measure(server: &Server, connections: usize, own_bundle: bool) -> f64 {
    let configs = Arc::new(TlsConfigs::default());
    // What is there once, such as code and the runtime, is paid before the first measurement.
    let first = connect(server, &configs, &server.trust(own_bundle.then_some(usize::MAX))).await;
    let (before, began) = (resident_kib(), Instant::now());
    let mut open: Vec<Wire> = Vec::with_capacity(connections);
    let mut opening = JoinSet::new();
    for number in 0..connections {
        let trust = server.trust(own_bundle.then_some(number));
        let (server, configs) = (server.url.clone(), Arc::clone(&configs));
        opening.spawn(async move { connect_to(&server, &configs, &trust).await });
        if opening.len() == AT_ONCE {
            open.extend(opening.join_next().await.map(Result::unwrap));
        }
    }
    open.extend(opening.join_all().await);
    let kib = resident_kib().saturating_sub(before) as f64 / connections as f64;
    println!("opened {} in {:.1} s", open.len(), began.elapsed().as_secs_f64());
    drop(first);
    kib
}

async fn connect(server: &Server, configs: &TlsConfigs, trust: &Trust) -> Wire {
    connect_to(&server.url, configs, trust).await
}

/// A wire with one connection that has carried one request.
async fn connect_to(url: &str, configs: &TlsConfigs, trust: &Trust) -> Wire {
    let endpoint = Endpoint::new(configs, trust, None, Protocol::Slim).unwrap();
    let wire = transport::open(&endpoint);
    let request = Request::get(format!("{url}/livez")).body(Empty::<Bytes>::new()).unwrap();
    let answer = wire.send(request).await.unwrap();
    assert!(answer.status().is_success());
    answer.into_body().collect().await.unwrap();
    wire
}

struct Server {
    child: Child,
    url: String,
    pem: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg("serve").stdout(Stdio::piped()).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next().unwrap().unwrap();
        let pem = lines.map(Result::unwrap).take_while(|line| line != "end");
        let pem = pem.collect::<Vec<_>>().join("\n") + "\n";
        Self { child, url, pem }
    }

    /// The server's CA; with a number, in a bundle that no other connection has.
    fn trust(&self, number: Option<usize>) -> Trust {
        let own = number.map(|_| authority().pem()).unwrap_or_default();
        Trust::from_pem(format!("{}{own}", self.pem).as_bytes()).unwrap()
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Answers every request, until its standard input ends.
async fn serve() {
    let ca = authority();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap().der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.serialize_der().try_into().unwrap())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("https://{}\n{}\nend", listener.local_addr().unwrap(), ca.pem().trim_end());
    std::io::stdout().flush().unwrap();
    std::thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|_| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("ok"))))
            });
            let http = hyper::server::conn::http1::Builder::new();
            drop(http.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn allow_many_files() {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).unwrap();
}
