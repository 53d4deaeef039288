//! Silent servers, and answers that are not read.

use super::*;
use crate::wire::channel::tests::script::{DATA, HEADERS, LAST, PING, Script};

/// `rule:dead-connections-are-noticed`
#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_for_45_s_is_given_up() {
    let (channel, _frozen) = connect(&server::Builder::new()).await;
    let begun = Instant::now();
    let error = send(channel, get()).await.unwrap_err();
    assert!(!error.is_unprocessed());
    assert_eq!(begun.elapsed().as_secs(), 45);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_pings_may_take_its_time() {
    let (channel, mut server) = connect(&server::Builder::new()).await;
    tokio::spawn(async move { while let Some(Ok(_)) = server.accept().await {} });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(channel.turn().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_late_pong_on_a_connection_with_data_does_not_end_it() {
    let (channel, mut server) = Script::open(100).await;
    let begun = Instant::now();
    let watch = tokio::spawn(send(channel.clone(), get()));
    server.hear(HEADERS).await;
    server.answer(1, 0).await;

    let ping = server.hear(PING).await;
    assert_eq!(begun.elapsed().as_secs(), 30);
    tokio::time::sleep(Duration::from_secs(10)).await;
    server.say(DATA, 0, 1, b"a").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    server.pong(&ping).await;

    // Quiet again.
    let ping = server.hear(PING).await;
    assert_eq!(begun.elapsed().as_secs(), 80);
    server.pong(&ping).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    server.say(DATA, LAST, 1, b"b").await;
    assert_eq!(&watch.await.unwrap().unwrap()[..], b"ab");
    assert!(channel.turn().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_is_never_answered_ends_a_connection_once_it_is_quiet() {
    let (channel, mut server) = Script::open(100).await;
    let begun = Instant::now();
    let watch = tokio::spawn(send(channel.clone(), get()));
    server.hear(HEADERS).await;
    server.answer(1, 0).await;
    server.hear(PING).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    server.say(DATA, 0, 1, b"a").await;
    assert!(watch.await.unwrap().is_err());
    assert_eq!(begun.elapsed().as_secs(), 40 + 45);
}

const LARGE: usize = 3 * 1024 * 1024;

/// Answers requests in turn, the last one briefly and all before it with a large body.
async fn serve_large(mut server: Server, large: usize) {
    let mut count = 0;
    while let Some(Ok((_, mut respond))) = server.accept().await {
        let body = if count < large { vec![b'x'; LARGE] } else { b"short".to_vec() };
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_data(body.into(), true).unwrap();
        count += 1;
    }
}

async fn head(channel: &Channel) -> AnswerBody {
    let turn = channel.turn().await.unwrap();
    channel.send(turn, get()).await.unwrap().into_body()
}

#[tokio::test(start_paused = true)]
async fn unread_answers_do_not_stop_the_others() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(serve_large(server, 16));
    let mut unread = Vec::new();
    for _ in 0..16 {
        unread.push(head(&channel).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let short = timeout(Duration::from_secs(10), send(channel, get())).await;
    assert_eq!(&short.unwrap().unwrap()[..], b"short");
}

#[tokio::test(start_paused = true)]
async fn answers_dropped_unread_give_back_what_they_took_of_the_window() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(serve_large(server, 50));
    for _ in 0..50 {
        let unread = head(&channel).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(unread);
    }
    let short = timeout(Duration::from_secs(10), send(channel, get())).await;
    assert_eq!(&short.unwrap().unwrap()[..], b"short");
}
