//! Whether a request without an answer was processed.

use super::*;
use crate::wire::channel::tests::script::{DATA, HEADERS, LAST, RESET, Script};

/// Two writes that have left, on streams 1 and 3.
async fn two_writes(
    channel: &Arc<Channel>,
    server: &mut Script,
) -> [tokio::task::JoinHandle<Result<Bytes, WireError>>; 2] {
    let first = tokio::spawn(send(channel.clone(), patch("{}")));
    assert_eq!(server.hear(DATA).await.stream, 1);
    let second = tokio::spawn(send(channel.clone(), patch("{}")));
    assert_eq!(server.hear(DATA).await.stream, 3);
    [first, second]
}

/// `rule:refused-requests-were-not-processed`
#[tokio::test]
async fn a_goaway_spares_the_streams_it_includes_and_the_others_were_not_processed() {
    for reason in [Reason::NO_ERROR, Reason::ENHANCE_YOUR_CALM] {
        let (channel, mut server) = Script::open(100).await;
        let [first, second] = two_writes(&channel, &mut server).await;
        server.go_away(1, reason).await;
        assert!(second.await.unwrap().unwrap_err().is_unprocessed(), "{reason}");
        server.answer(1, LAST).await;
        first.await.unwrap().unwrap();
    }
}

/// `rule:refused-requests-were-not-processed`
#[tokio::test]
async fn a_stream_that_the_goaway_includes_may_have_been_processed_when_its_connection_breaks() {
    for reason in [Reason::NO_ERROR, Reason::ENHANCE_YOUR_CALM] {
        let (channel, mut server) = Script::open(100).await;
        let [first, second] = two_writes(&channel, &mut server).await;
        server.go_away(1, reason).await;
        drop(server);
        assert!(!first.await.unwrap().unwrap_err().is_unprocessed(), "{reason}");
        assert!(second.await.unwrap().unwrap_err().is_unprocessed(), "{reason}");
    }
}

/// `rule:refused-requests-were-not-processed`
#[tokio::test]
async fn of_the_resets_only_refused_stream_says_that_nothing_was_processed() {
    // (reason, nothing was processed)
    let rows = [
        (Reason::REFUSED_STREAM, true),
        (Reason::NO_ERROR, false),
        (Reason::CANCEL, false),
        (Reason::INTERNAL_ERROR, false),
    ];
    for (reason, expected) in rows {
        let (channel, mut server) = Script::open(100).await;
        let [first, second] = two_writes(&channel, &mut server).await;
        server.reset(3, reason).await;
        assert_eq!(second.await.unwrap().unwrap_err().is_unprocessed(), expected, "{reason}");
        server.answer(1, LAST).await;
        first.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_error_that_we_find_ourselves_says_nothing_of_what_the_server_did() {
    let (channel, mut server) = Script::open(100).await;
    let writes = two_writes(&channel, &mut server).await;
    // There is no stream 0 with data.
    server.say(DATA, 0, 0, b"x").await;
    for write in writes {
        assert!(!write.await.unwrap().unwrap_err().is_unprocessed());
    }
}

#[tokio::test]
async fn a_goaway_of_no_error_is_no_end_of_an_answer_but_a_reset_is() {
    let (channel, mut server) = Script::open(100).await;
    let [first, second] = two_writes(&channel, &mut server).await;
    for stream in [1, 3] {
        server.answer(stream, 0).await;
        server.say(DATA, 0, stream, b"half").await;
    }
    server.reset(1, Reason::NO_ERROR).await;
    assert_eq!(&first.await.unwrap().unwrap()[..], b"half");
    server.go_away(1, Reason::NO_ERROR).await;
    assert!(!second.await.unwrap().unwrap_err().is_unprocessed());
}

#[tokio::test(start_paused = true)]
async fn requests_before_the_first_settings_keep_within_the_limit_that_comes() {
    let (ours, theirs) = duplex(1 << 20);
    let channel = Arc::new(Channel::open(ours, Load::default()).await.unwrap());
    let callers: Vec<_> =
        (0..40).map(|_| tokio::spawn(send(channel.clone(), patch("{}")))).collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let server = server::Builder::new().max_concurrent_streams(8).handshake(theirs).await;
    tokio::spawn(echo(server.unwrap()));
    for sent in join_all(callers).await {
        assert_eq!(&sent.unwrap().unwrap()[..], b"{}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_while_its_stream_waits_is_cancelled() {
    let (channel, mut server) = Script::open(1).await;
    let first = tokio::spawn(send(channel.clone(), get()));
    server.hear(HEADERS).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let second = tokio::spawn(send(channel.clone(), counting(&asked)));
    tokio::time::sleep(Duration::from_millis(10)).await;
    second.abort();
    tokio::time::sleep(Duration::from_millis(10)).await;
    server.answer(1, LAST).await;
    first.await.unwrap().unwrap();

    let reset = timeout(Duration::from_secs(1), server.hear(RESET)).await;
    assert_eq!(reset.unwrap().stream, 3);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    tokio::spawn(send(channel.clone(), get()));
    assert_eq!(server.hear(HEADERS).await.stream, 5);
}
