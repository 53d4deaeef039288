//! One connection to a server that is scripted stream by stream, over a pipe.

mod closing;
mod departures;
mod liveness;
mod pipe;
mod refusals;
mod script;

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use h2::server;
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{Empty, Full, StreamBody};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::wire::channel::tests::pipe::Pipe;

type Server = server::Connection<DuplexStream, Bytes>;

async fn connect(server: &server::Builder) -> (Arc<Channel>, Server) {
    let (ours, theirs) = duplex(1 << 20);
    let (channel, server) =
        tokio::join!(Channel::open(ours, Load::default()), server.handshake(theirs));
    (Arc::new(channel.unwrap()), server.unwrap())
}

fn get() -> Request<Empty<Bytes>> {
    Request::get("https://api/a").body(Empty::new()).unwrap()
}

fn patch(body: &'static str) -> Request<Full<Bytes>> {
    Request::patch("https://api/a").body(Full::from(body)).unwrap()
}

async fn send<B>(channel: Arc<Channel>, request: Request<B>) -> Result<Bytes, WireError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let turn = channel.turn().await.map_err(WireError::unprocessed)?;
    let answer = channel.send(turn, request).await?;
    Ok(answer.into_body().collect().await.map_err(WireError::broken)?.to_bytes())
}

/// Answers every request with its own body.
async fn echo(server: Server) {
    echo_on_signal(server, Arc::new(Semaphore::new(Semaphore::MAX_PERMITS))).await;
}

/// Answers as many requests as `go` has permits.
async fn echo_on_signal(mut server: Server, go: Arc<Semaphore>) {
    while let Some(Ok((request, mut respond))) = server.accept().await {
        let go = Arc::clone(&go);
        tokio::spawn(async move {
            let (mut body, mut whole) = (request.into_body(), Vec::new());
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).unwrap();
                whole.extend_from_slice(&data);
            }
            go.acquire().await.unwrap().forget();
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            stream.send_data(whole.into(), true).unwrap();
        });
    }
}

#[tokio::test]
async fn requests_side_by_side_get_their_own_answers() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(echo(server));
    let (one, two, none) = tokio::join!(
        send(channel.clone(), patch("one")),
        send(channel.clone(), patch("two")),
        send(channel.clone(), get()),
    );
    assert_eq!((&one.unwrap()[..], &two.unwrap()[..]), (&b"one"[..], &b"two"[..]));
    assert!(none.unwrap().is_empty());
}

/// A connection to an echo that answers as often as `go` permits, and how often we wrote to it.
async fn counted(go: Arc<Semaphore>) -> (Arc<Channel>, Arc<AtomicUsize>) {
    let (ours, theirs) = duplex(1 << 20);
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let ours = Pipe::new(ours).on_write(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let (channel, server) =
        tokio::join!(Channel::open(ours, Load::default()), server::handshake(theirs));
    tokio::spawn(echo_on_signal(server.unwrap(), go));
    (Arc::new(channel.unwrap()), writes)
}

#[tokio::test]
async fn requests_of_tasks_that_are_ready_together_leave_together() {
    let (channel, writes) = counted(Arc::new(Semaphore::new(41))).await;
    send(channel.clone(), get()).await.unwrap();

    writes.store(0, Ordering::Relaxed);
    let callers = (0..40).map(|_| tokio::spawn(send(channel.clone(), patch("{}"))));
    for sent in join_all(callers).await {
        sent.unwrap().unwrap();
    }
    let writes = writes.load(Ordering::Relaxed);
    assert!(writes <= 4, "{writes} writes for 40 requests");
}

/// Waits until so many requests wait for their answers.
async fn until_waiting(load: &Load, requests: usize) {
    let counted = async {
        while load.waiting() != requests {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), counted).await.unwrap();
}

#[tokio::test]
async fn eight_requests_without_answer_are_a_reason_to_rest() {
    let (go, load) = (Arc::new(Semaphore::new(1)), Load::default());
    let (ours, theirs) = duplex(1 << 20);
    let opened = tokio::join!(Channel::open(ours, load.clone()), server::handshake(theirs));
    let (channel, server) = (Arc::new(opened.0.unwrap()), opened.1.unwrap());
    tokio::spawn(echo_on_signal(server, Arc::clone(&go)));
    // The server tells its limit of streams.
    send(channel.clone(), get()).await.unwrap();

    let mut callers = JoinSet::new();
    for waiting in 1..=8 {
        assert_eq!(load.rest(), None, "before request {waiting}");
        callers.spawn(send(channel.clone(), patch("{}")));
        until_waiting(&load, waiting).await;
    }
    assert_eq!(load.rest(), Some(Duration::from_millis(5)));
    go.add_permits(1);
    callers.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(load.rest(), None, "one was answered");

    callers.spawn(send(channel.clone(), patch("{}")));
    until_waiting(&load, 8).await;
    callers.shutdown().await;
    assert_eq!(load.waiting(), 0, "all were given up");
}

/// A PATCH that counts when its body is asked for.
fn counting(asked: &Arc<AtomicUsize>) -> Request<BoxBody<Bytes, std::io::Error>> {
    let asked = Arc::clone(asked);
    let body = futures::stream::once(async move {
        asked.fetch_add(1, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from_static(b"{}")))
    });
    Request::patch("https://api/a").body(BoxBody::new(StreamBody::new(body))).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_body_stays_here_while_the_server_allows_no_further_stream() {
    let (channel, server) = connect(server::Builder::new().max_concurrent_streams(1)).await;
    let go = Arc::new(Semaphore::new(1));
    tokio::spawn(echo_on_signal(server, Arc::clone(&go)));
    // The first answer comes behind the server's settings.
    send(channel.clone(), get()).await.unwrap();

    let asked = Arc::new(AtomicUsize::new(0));
    let two = [1, 2].map(|_| tokio::spawn(send(channel.clone(), counting(&asked))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the second body has left");

    go.add_permits(2);
    for sent in join_all(two).await {
        sent.unwrap().unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_body_that_is_refused_gives_up_its_request_and_no_other() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(echo(server));
    let refused = futures::stream::once(async {
        Err::<Frame<Bytes>, _>(std::io::Error::other("the fence is closed"))
    });
    let request = Request::patch("https://api/a").body(BoxBody::new(StreamBody::new(refused)));
    let error = send(channel.clone(), request.unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the fence is closed");
    assert!(!error.is_unprocessed());
    assert_eq!(&send(channel, patch("x")).await.unwrap()[..], b"x");
}

#[tokio::test]
async fn a_connection_that_has_ended_takes_no_request() {
    let (channel, mut server) = connect(&server::Builder::new()).await;
    let under_way = tokio::spawn(send(channel.clone(), get()));
    let (_, mut respond) = server.accept().await.unwrap().unwrap();
    server.graceful_shutdown();
    respond.send_response(Response::new(()), true).unwrap();
    tokio::spawn(async move { while let Some(Ok(_)) = server.accept().await {} });
    under_way.await.unwrap().unwrap();
    timeout(Duration::from_secs(60), async {
        while channel.turn().await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_connection_ends_with_its_channel_and_not_before_the_last_answer() {
    let (channel, mut server) = connect(&server::Builder::new()).await;
    let turn = channel.turn().await.unwrap();
    let (answer, accepted) = tokio::join!(channel.send(turn, get()), async {
        let (_, mut respond) = server.accept().await.unwrap().unwrap();
        let stream = respond.send_response(Response::new(()), false).unwrap();
        // Lets the headers leave.
        drop(timeout(Duration::from_millis(50), server.accept()).await);
        stream
    });
    drop(channel);
    let (mut stream, body) = (accepted, answer.unwrap().into_body());
    assert!(timeout(Duration::from_millis(50), server.accept()).await.is_err(), "ended early");
    stream.send_data(Bytes::from_static(b"late"), true).unwrap();
    let ends = tokio::spawn(async move { while let Some(Ok(_)) = server.accept().await {} });
    assert_eq!(&body.collect().await.unwrap().to_bytes()[..], b"late");
    timeout(Duration::from_secs(60), ends).await.unwrap().unwrap();
}
