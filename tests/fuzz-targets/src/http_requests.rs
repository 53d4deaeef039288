//! Any bytes on an agreed connection, as the listeners of the process serve it: HTTP/1.1 and HTTP/2.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};

use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use infra_controller_manager::build;
use prometheus::{IntCounter, Registry};
use serving::{
    Access, BuildInfo, Everyone, Exposition, Health, Page, Pages, Peer, PeerCertificate, reply,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::runtime::Runtime;
use tokio::task::yield_now;

/// As `serving` limits the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// So often the server gets its turn before the peer closes.
const TURNS: u32 = 32;

thread_local! {
    static STATE: RefCell<(Runtime, Pages)> = RefCell::new((crate::runtime(), pages()));
}

fn pages() -> Pages {
    let info = BuildInfo {
        version: "0.0.0",
        commit: build::INFO.commit,
        rustc: "rustc",
        k8s_compat: "1.31-1.37",
    };
    let registry = Registry::new();
    let counter = IntCounter::new("fuzz_total", "A series").expect("a good name");
    registry.register(Box::new(counter)).expect("it is alone");
    let pages = Pages::standard(&Health::new(), &registry, &info, &Exposition::default());
    let echo = Page::new("/echo", Access::Authorized, |request| async move {
        reply::text(StatusCode::OK, request.body)
    });
    pages.add(echo.with_body_limit(1024));
    pages
}

/// The first byte selects the protocol.
pub(crate) fn are_answered(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    STATE.with_borrow(|(runtime, pages)| {
        let answer = runtime.block_on(exchange(pages, select % 2 == 1, data));
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.starts_with("HTTP/1.1 500"), "a page failed: {text}");
    });
}

/// What a peer reads that sends `data` and then nothing more.
async fn exchange(pages: &Pages, is_http2: bool, data: &[u8]) -> Vec<u8> {
    let (ours, theirs) = duplex(data.len() + HEAD_BYTES);
    let (mut reading, mut writing) = split(ours);
    writing.write_all(data).await.expect("it has room");
    let pages = pages.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let pages = pages.clone();
        async move {
            let peer = Peer::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PeerCertificate::Absent);
            Ok::<_, Infallible>(serving::answer(&pages, &Everyone, peer, request).await)
        }
    });
    let io = TokioIo::new(theirs);
    let serve = async {
        if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new()).max_header_list_size(64 * 1024);
            let _closed = builder.serve_connection(io, service).await;
        } else {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).max_buf_size(HEAD_BYTES);
            let _closed = builder.serve_connection(io, service).await;
        }
    };
    // A request whose peer has closed is not answered.
    let close = async {
        for _ in 0..TURNS {
            yield_now().await;
        }
        let _closed = writing.shutdown().await;
    };
    let mut answer = Vec::new();
    let ((), (), read) = tokio::join!(serve, close, reading.read_to_end(&mut answer));
    read.expect("a connection in memory");
    answer
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let get = |path: &str| format!("\0GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").into_bytes();
    let mut seeds = [
        "/livez?verbose&exclude=ping",
        "/readyz/ping",
        "/metrics",
        "/version",
        "/%00/..",
        "*",
        "http://a/livez",
    ]
    .map(get)
    .to_vec();
    seeds.push(b"\0POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc".to_vec());
    seeds.push(
        b"\0POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            .to_vec(),
    );
    seeds.push(
        b"\0HEAD /metrics HTTP/1.0\r\naccept: application/openmetrics-text;q=0.5\r\n\r\n".to_vec(),
    );
    // The preface, SETTINGS, and HEADERS of `GET /livez`.
    let headers = b"\x82\x87\x04\x06/livez\x41\x01a";
    let mut http2 = b"\x01PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    http2.extend([0, 0, u8::try_from(headers.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    http2.extend(headers);
    seeds.push(http2);
    seeds
}
