//! Peers that send garbage, read slowly or begin a handshake and say no more: health answers at once all
//! along, nothing panics, and the memory comes back. `scripts/accept-host garbage` sends as much as is asked for;
//! by default it is little.

use std::time::{Duration, Instant};

use http::Method;
use kube::Client;
use kube::client::Body;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tests::{Process, eventually, stalls};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::scene::Scene;

const PATHS: [&str; 9] = [
    "/livez",
    "/readyz/ping",
    "/metrics",
    "/metrics/slis",
    "/configz",
    "/flagz",
    "/debug/flags/v",
    "/debug/controllers/node-ipam-controller/",
    "/",
];
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"];
/// Time limit of an answer, like the timeout of a kubelet's probe.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Memory that the first wave may leave taken, in addition to a tenth: grown tables, and the stacks and partly used pages
/// of threads that were at rest before.
const GROWN_BYTES: u64 = 8 << 20;
/// Memory that a second, longer wave may leave taken in addition to a tenth: what each request leaves would be more.
const LEFT_BYTES: u64 = 1 << 20;

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn client(port: u16) -> Client {
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.root_cert = Some(Vec::new()); // those of the system take long to decode
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Valid enough to be sent, and nothing beyond that.
fn nonsense(random: &mut StdRng, method: &str, path: &str) -> http::Request<Body> {
    const PARTS: [&str; 8] = ["%00", "%ff%fe", "..", "//", "?", "&verbose=", "%c3%28", ";x=1"];
    let mut target = path.to_owned();
    for _ in 0..random.random_range(0..6) {
        target.push_str(PARTS.choose(random).unwrap());
    }
    if random.random_ratio(1, 20) {
        target.push('?');
        target.push_str(&"x".repeat(6000));
    }
    let mut body = vec![0; random.random_range(0..2048)];
    random.fill(&mut body[..]);
    let header: Vec<u8> = (0..64).map(|_| random.random_range(b' '..=b'~')).collect();
    http::Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(target)
        .header("accept", header.as_slice())
        .header("x-remote-user", header.as_slice())
        .body(Body::from(body))
        .unwrap()
}

/// Whether it is answered, if not at once: a server may close a connection whose body it does not want.
async fn send(client: &Client, random: &mut StdRng, method: &str, path: &str) -> bool {
    for _ in 0..3 {
        let Ok(answer) = client.send(nonsense(random, method, path)).await else { continue };
        assert_ne!(answer.status(), 500, "{method} {path}");
        if answer.into_body().collect_bytes().await.is_ok() {
            return true;
        }
    }
    false
}

/// Asks for `/livez` again and again, on a new connection each time; the longest that it took.
async fn watch_health(port: u16, stop: CancellationToken) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.is_cancelled() {
        let asked = Instant::now();
        let answer = tests::process::get(port, "/livez").await.unwrap();
        assert_eq!(answer, (200, "ok".to_owned()));
        longest = longest.max(stalls::without(asked, Instant::now()));
        sleep(Duration::from_millis(50)).await;
    }
    longest
}

/// Bytes that only the process itself can give back, now: what is read from its file can go at any time.
fn taken(manager: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", manager.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Peers that begin a handshake and say no more, and a quarter as many that read nothing of an answer.
async fn hang_on(port: u16, half_open: usize) -> (Vec<TcpStream>, Vec<http::Response<Body>>) {
    let (mut silent, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..half_open {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
        silent.push(stream);
    }
    for _ in 0..half_open / 4 {
        let request = http::Request::get("/metrics").body(Body::empty()).unwrap();
        slow.push(client(port).send(request).await.unwrap());
    }
    (silent, slow)
}

/// The memory once it is back to where it was, but for a tenth and `more` bytes.
async fn settled(manager: &Process, before: u64, more: u64) -> u64 {
    manager.until_metric("icm_serving_connections", &[], |open| open < 10.0).await;
    let limit = before + before / 10 + more;
    eventually(&format!("less than {limit} bytes are taken"), || taken(manager) < limit).await;
    taken(manager)
}

/// Sends garbage to each path with each method while `half_open` peers hang on; the memory that is taken at the end.
async fn wave(manager: &Process, seeds: &mut StdRng, requests: usize, half_open: usize) -> u64 {
    let port = manager.port();
    let hanging = hang_on(port, half_open).await;
    let mut senders = JoinSet::new();
    for method in METHODS {
        let (client, mut random) = (client(port), StdRng::from_rng(seeds));
        senders.spawn(async move {
            for path in PATHS {
                for _ in 0..requests {
                    assert!(send(&client, &mut random, method, path).await, "{method} {path}");
                }
            }
        });
    }
    senders.join_all().await;
    let during = taken(manager);
    drop(hanging);
    during
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_slow_readers_and_half_open_handshakes_cost_neither_health_nor_memory() {
    let (requests, half_open) = (number("GARBAGE_REQUESTS", 20), number("HALF_OPEN", 400));
    let scene = Scene::set().await;
    let manager = scene.start("").await;
    let port = manager.port();
    manager.get("/metrics").await.unwrap();
    let before = taken(&manager);
    let stop = CancellationToken::new();
    let health = tokio::spawn(watch_health(port, stop.clone()));

    let mut seeds = tests::seed::random("GARBAGE_SEED");
    wave(&manager, &mut seeds, requests.div_ceil(10), half_open).await;
    let first = settled(&manager, before, GROWN_BYTES).await;
    let during = wave(&manager, &mut seeds, requests, half_open).await;
    let after = settled(&manager, first, LEFT_BYTES).await;
    stop.cancel();
    let longest = health.await.unwrap();
    assert!(longest < AT_ONCE, "/livez took {longest:?}");
    assert!(manager.is_running() && !manager.has_said("panicked"));
    eprintln!(
        "{requests} requests for each path and method; /livez {longest:?} at most; {before} bytes before, {first} after \
         the first wave, {during} during the second one, {after} after it"
    );
}
