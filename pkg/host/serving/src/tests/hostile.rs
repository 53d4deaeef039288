//! Peers that send garbage, nothing, or too much are cut off, and other peers notice nothing.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

const HANDSHAKE_ERRORS: &str = "icm_serving_handshake_errors_total";
const CONNECTIONS: &str = "icm_serving_connections";

async fn assert_serving(server: &Running) {
    assert_eq!(server.get(&["h2"], "/livez").await.body, "ok");
    assert_eq!(server.get(&["http/1.1"], "/livez").await.body, "ok");
}

/// Random bytes. The seed is that of `$HOSTILE_SEED` or one of its own, and is shown when the test fails.
struct Garbage(StdRng);

impl Garbage {
    fn new() -> Self {
        let set = std::env::var("HOSTILE_SEED").ok();
        let seed = set.map_or_else(rand::random, |text| text.parse().expect("a seed is a number"));
        eprintln!("HOSTILE_SEED={seed}");
        Self(StdRng::seed_from_u64(seed))
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

/// Sends `bytes`, ends the sending side, and reads what comes until the server closes.
async fn send_and_drain(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, bytes: &[u8]) {
    // The server may close before it has read all: that is its right.
    stream.write_all(bytes).await.ok();
    stream.shutdown().await.ok();
    let mut answer = Vec::new();
    let drained = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(60), drained).await.expect("closes").ok();
}

#[tokio::test]
async fn random_bytes_instead_of_tls_do_no_harm() {
    let (server, mut garbage) = (start(&loopback()).await, Garbage::new());
    for length in [1, 3, 5, 16, 100, 1000, 20_000] {
        for _ in 0..8 {
            let stream = TcpStream::connect(server.address).await.unwrap();
            send_and_drain(stream, &garbage.bytes(length)).await;
            // A record head makes the TLS library read on.
            let stream = TcpStream::connect(server.address).await.unwrap();
            send_and_drain(stream, &[&[22, 3, 1, 2, 0, 1], &garbage.bytes(length)[..]].concat())
                .await;
        }
    }
    assert_serving(&server).await;
    server.until_metric(HANDSHAKE_ERRORS, 112.0).await;
}

#[tokio::test]
async fn random_bytes_inside_tls_do_no_harm() {
    let (server, mut garbage) = (start(&loopback()).await, Garbage::new());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for alpn in ["h2", "http/1.1"] {
        for start in [&b""[..], preface, b"GET /livez HTTP/1.1\r\n", b"GET \xff\xfe HTTP/1.1\r\n"] {
            for length in [1, 9, 200, 100_000] {
                let stream = server.connect(&[alpn]).await;
                send_and_drain(stream, &[start, &garbage.bytes(length)].concat()).await;
            }
        }
    }
    assert_serving(&server).await;
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let server = start(&loopback()).await;
    let mut stream = server.connect(&["http/1.1"]).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nx: ").await.unwrap();
    let chunk = vec![b'a'; 16 * 1024];
    let mut sent = 0;
    // Far more than the limit, since the sockets on the way hold some too.
    while sent < 16 << 20 && stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
    }
    assert!(sent < 16 << 20, "the server did not stop us");
    assert_serving(&server).await;
}

#[tokio::test]
async fn http_without_tls_gets_an_error_that_says_so() {
    let server = start(&loopback()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 24];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 400 Bad Request");
    assert_serving(&server).await;
}

/// Reads until the server closes, on the paused clock, and returns how long that took.
async fn silence_until_closed(mut stream: impl AsyncReadExt + Unpin) -> Duration {
    tokio::time::pause();
    let start = Instant::now();
    stream.read_to_end(&mut Vec::new()).await.ok();
    start.elapsed()
}

#[tokio::test]
async fn a_peer_that_never_starts_tls_is_closed_after_ten_seconds() {
    let server = start(&loopback()).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    server.until_metric(CONNECTIONS, 1.0).await;
    let took = silence_until_closed(stream).await;
    assert!((9..=11).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn a_peer_that_never_sends_a_head_is_closed_after_thirty_two_seconds() {
    let server = start(&loopback()).await;
    let mut stream = server.connect(&["http/1.1"]).await;
    stream.write_all(b"GET /livez HT").await.unwrap();
    let took = silence_until_closed(stream).await;
    assert!((31..=33).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn a_silent_http2_peer_is_closed_after_ninety_seconds() {
    for opening in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
        let server = start(&loopback()).await;
        let mut stream = server.connect(&["h2"]).await;
        stream.write_all(opening).await.unwrap();
        let took = silence_until_closed(stream).await;
        assert!((89..=93).contains(&took.as_secs()), "{took:?}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_local_probe_is_served_during_hundreds_of_silent_connections() {
    let server = start(&loopback()).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    server.until_metric(CONNECTIONS, 300.0).await;
    assert_serving(&server).await;
}
