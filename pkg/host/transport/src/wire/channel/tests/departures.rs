//! Writes that are held up between their body and the wire.

use super::*;
use std::sync::atomic::AtomicBool;

use futures::stream;

use crate::wire::pending_sends::SendPermit;

type Write = Request<BoxBody<Bytes, std::io::Error>>;

/// A write of so many bytes that may leave while `allowed` says so, and sets `taken` to `then` when
/// its body is taken.
fn write(bytes: usize, allowed: &Arc<AtomicBool>, taken: &Arc<AtomicBool>, then: bool) -> Write {
    let (allowed, taken) = (Arc::clone(allowed), Arc::clone(taken));
    let body = stream::once(async move {
        taken.store(then, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
    });
    let body = BoxBody::new(StreamBody::new(body));
    let mut request = Request::patch("https://api/a").body(body).unwrap();
    request.extensions_mut().insert(SendPermit::new(move || allowed.load(Ordering::Relaxed)));
    request
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_that_may_not_leave_any_more_after_its_body_was_taken_does_not() {
    let (channel, server) = connect(&server::Builder::new()).await;
    let echo = tokio::spawn(echo(server));
    let allowed = Arc::new(AtomicBool::new(true));
    send(channel.clone(), write(7, &allowed, &allowed, false)).await.unwrap_err();
    assert!(channel.turn().await.is_err(), "the connection has ended");
    echo.await.unwrap();
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_that_has_left_is_not_asked_about_again() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(echo(server));
    let allowed = Arc::new(AtomicBool::new(true));
    let write = write(7, &allowed, &allowed, true);
    assert_eq!(send(channel.clone(), write).await.unwrap(), "xxxxxxx");
    allowed.store(false, Ordering::Relaxed);
    send(channel.clone(), get()).await.unwrap();
}

/// A connection writes its bytes in several steps and flushes after each.
///
/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_behind_others_that_have_left_is_asked_about_until_it_has_left_too() {
    let [always, allowed, taken] = [true, true, false].map(|is| Arc::new(AtomicBool::new(is)));
    let (ours, theirs) = duplex(1 << 20);
    let (of_second, both_taken) = (Arc::clone(&allowed), Arc::clone(&taken));
    let ours = Pipe::new(ours).on_flush(move || {
        // Stopped in between, the process wakes up when the second may not leave any more.
        if both_taken.load(Ordering::Relaxed) {
            of_second.store(false, Ordering::Relaxed);
        }
    });
    let opened = tokio::join!(Channel::open(ours, Load::default()), server::handshake(theirs));
    let (channel, server) = (Arc::new(opened.0.unwrap()), opened.1.unwrap());
    tokio::spawn(echo(server));
    // The server tells how many streams it takes.
    send(channel.clone(), get()).await.unwrap();
    // Too large for one go.
    let first = write(4096, &always, &Arc::default(), false);
    let second = write(4096, &allowed, &taken, true);
    let (first, second) = tokio::join!(send(channel.clone(), first), send(channel.clone(), second));
    drop(first);
    second.unwrap_err();
    assert!(!allowed.load(Ordering::Relaxed), "there was a flush");
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn the_rest_of_a_write_for_which_the_server_had_no_room_is_asked_about_too() {
    let (channel, mut server) = connect(server::Builder::new().initial_window_size(16)).await;
    let (allowed, arrived) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (withdrawn, counted) = (Arc::clone(&allowed), Arc::clone(&arrived));
    let reading = tokio::spawn(async move {
        while let Some(Ok((request, mut respond))) = server.accept().await {
            let (withdrawn, counted) = (Arc::clone(&withdrawn), Arc::clone(&counted));
            tokio::spawn(async move {
                let mut body = request.into_body();
                while let Some(Ok(data)) = body.data().await {
                    counted.fetch_add(data.len(), Ordering::Relaxed);
                    withdrawn.store(false, Ordering::Relaxed);
                    body.flow_control().release_capacity(data.len()).unwrap();
                }
                drop(respond.send_response(Response::new(()), true));
            });
        }
    });
    send(channel.clone(), get()).await.unwrap();
    send(channel.clone(), write(64, &allowed, &Arc::default(), false)).await.unwrap_err();
    assert_eq!(arrived.load(Ordering::Relaxed), 16);
    reading.await.unwrap();
}
