//! When connections are opened, shared and replaced; over pipes.

use super::*;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::Response;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::rt::ReadBufCursor;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::rt::TokioExecutor;
use tokio::io::{DuplexStream, duplex};
use tokio::time::{sleep, timeout};

use crate::wire::exchange::Wire;

/// Our end of a connection.
struct Pipe {
    io: TokioIo<DuplexStream>,
    h2: bool,
}

impl Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        if self.h2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

/// Makes connections, and counts them.
#[derive(Clone)]
struct Route {
    opened: Arc<AtomicUsize>,
    serve: fn(DuplexStream) -> BoxFuture<'static, ()>,
    delay: Duration,
    h2: bool,
    /// The number of first attempts that fail.
    failures: usize,
}

impl Service<Uri> for Route {
    type Response = Pipe;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Pipe>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let count = self.opened.fetch_add(1, Ordering::Relaxed);
        let Self { serve, delay, h2, failures, .. } = *self;
        Box::pin(async move {
            sleep(delay).await;
            if count < failures {
                return Err(io::Error::other("unreachable"));
            }
            let (ours, theirs) = duplex(1 << 16);
            tokio::spawn(serve(theirs));
            Ok(Pipe { io: TokioIo::new(ours), h2 })
        })
    }
}

fn route(serve: fn(DuplexStream) -> BoxFuture<'static, ()>) -> Route {
    Route { opened: Arc::default(), serve, delay: Duration::ZERO, h2: true, failures: 0 }
}

fn wire(route: &Route) -> Wire {
    let single = legacy::Client::builder(TokioExecutor::new()).build(route.clone());
    Wire::over(Multiplexed::new(route.clone(), single))
}

fn get() -> Request<Empty<Bytes>> {
    Request::get("https://api:6443/a").body(Empty::new()).unwrap()
}

/// Answers everything.
fn all(io: DuplexStream) -> BoxFuture<'static, ()> {
    some(io, usize::MAX).boxed()
}

/// Answers one request and closes the connection.
fn one(io: DuplexStream) -> BoxFuture<'static, ()> {
    some(io, 1).boxed()
}

async fn some(io: DuplexStream, requests: usize) {
    let mut server = h2::server::handshake(io).await.unwrap();
    for _ in 0..requests {
        let Some(Ok((_, mut respond))) = server.accept().await else { return };
        respond.send_response(Response::new(()), true).unwrap();
    }
    server.graceful_shutdown();
    // A connection that broke says so at every call.
    while let Some(Ok(_)) = server.accept().await {}
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_together_share_one_connection() {
    let route = Route { delay: Duration::from_secs(1), ..route(all) };
    let wire = wire(&route);
    for answer in join_all((0..20).map(|_| wire.send(get()))).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert_eq!(route.opened.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_ended_is_replaced_by_the_next_request() {
    let route = route(one);
    let wire = wire(&route);
    for _ in 0..5 {
        assert_eq!(wire.send(get()).await.unwrap().status(), 200);
        // The paused clock goes on only when every task is idle: no task spins.
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(route.opened.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_is_made_although_its_first_callers_gave_up() {
    let route = Route { delay: Duration::from_secs(8), ..route(all) };
    let wire = wire(&route);
    assert!(timeout(Duration::from_secs(5), wire.send(get())).await.is_err());
    let second = timeout(Duration::from_secs(5), wire.send(get())).await;
    assert_eq!(second.unwrap().unwrap().status(), 200);
    assert_eq!(route.opened.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_a_waiting_request_does_not_fail_the_next_request() {
    let route = Route { delay: Duration::from_secs(8), failures: 1, ..route(all) };
    let wire = wire(&route);
    assert!(timeout(Duration::from_secs(5), wire.send(get())).await.is_err());
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(wire.send(get()).await.unwrap().status(), 200);
    assert_eq!(route.opened.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_over_a_goaway_and_new_requests_use_a_new_connection() {
    /// Says goodbye during its first answer, whose body comes later.
    fn leaving(io: DuplexStream) -> BoxFuture<'static, ()> {
        let serving = async move {
            let mut server = h2::server::handshake(io).await.unwrap();
            let (_, mut respond) = server.accept().await.unwrap().unwrap();
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            server.graceful_shutdown();
            tokio::spawn(async move {
                sleep(Duration::from_secs(100)).await;
                stream.send_data(Bytes::from_static(b"late"), true).unwrap();
            });
            while let Some(Ok(_)) = server.accept().await {}
        };
        serving.boxed()
    }
    let route = route(leaving);
    let wire = wire(&route);
    let watch = wire.send(get()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(wire.send(get()).await.unwrap().status(), 200);
    assert_eq!(route.opened.load(Ordering::Relaxed), 2);
    assert_eq!(&watch.into_body().collect().await.unwrap().to_bytes()[..], b"late");
}

#[tokio::test]
async fn requests_that_wait_for_a_failed_connection_fail_and_the_next_request_tries_again() {
    let route = Route { failures: 1, ..route(all) };
    let wire = wire(&route);
    for answer in join_all((0..3).map(|_| wire.send(get()))).await {
        let error = answer.unwrap_err();
        assert!(error.is_unprocessed());
        assert_eq!(error.to_string(), "unreachable");
    }
    assert_eq!(wire.send(get()).await.unwrap().status(), 200);
    assert_eq!(route.opened.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn another_address_gets_a_connection_of_its_own() {
    let route = route(all);
    let wire = wire(&route);
    wire.send(get()).await.unwrap();
    let elsewhere = Request::get("https://other:6443/a").body(Empty::new()).unwrap();
    wire.send(elsewhere).await.unwrap();
    assert_eq!(route.opened.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_without_http_2_is_served_over_http_1() {
    fn http1(io: DuplexStream) -> BoxFuture<'static, ()> {
        let service = service_fn(|_| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"old"))))
        });
        let server = hyper::server::conn::http1::Builder::new();
        let serving = server.serve_connection(TokioIo::new(io), service);
        async move { serving.await.unwrap_or_default() }.boxed()
    }
    let route = Route { h2: false, ..route(http1) };
    let wire = wire(&route);
    for _ in 0..2 {
        let body = wire.send(get()).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(&body.to_bytes()[..], b"old");
    }
}
