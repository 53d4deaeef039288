//! Requests on a connection that is about to end: each of them ends, too, wherever it waits.

use super::*;
use tokio::task::{JoinHandle, yield_now};

use crate::wire::channel::tests::script::{HEADERS, LAST, Script};

/// The highest number of a stream: the server says that it is leaving, and takes what is on its
/// way.
const ANY: u32 = (1 << 31) - 1;
/// Nothing that is awaited here takes any time.
const SPENT: Duration = Duration::from_secs(60);

type Sent = JoinHandle<Result<Bytes, WireError>>;

/// A connection of one stream: the first request waits for its answer, the second one for its
/// stream, the third one for its turn.
async fn three_waits() -> (Script, [Sent; 3]) {
    let (channel, mut server) = Script::open(1).await;
    let first = tokio::spawn(send(channel.clone(), get()));
    assert_eq!(server.hear(HEADERS).await.stream, 1);
    let second = tokio::spawn(send(channel.clone(), patch("{}")));
    settle().await;
    let third = tokio::spawn(send(channel, patch("{}")));
    settle().await;
    (server, [first, second, third])
}

/// Lets all tasks run until they wait: they run on this thread and in memory.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

async fn ended(sent: Sent) -> Result<Bytes, WireError> {
    timeout(SPENT, sent).await.expect("it hangs").unwrap()
}

#[tokio::test]
async fn all_requests_of_a_connection_that_breaks_end_with_it() {
    let (server, [first, second, third]) = three_waits().await;
    drop(server);
    assert!(!ended(first).await.unwrap_err().is_unprocessed());
    ended(second).await.unwrap_err();
    assert!(ended(third).await.unwrap_err().is_unprocessed());
}

#[tokio::test]
async fn a_goaway_ends_who_waits_for_a_stream_or_a_turn_and_the_first_is_answered() {
    let (mut server, [first, second, third]) = three_waits().await;
    server.go_away(1, Reason::NO_ERROR).await;
    assert!(ended(second).await.unwrap_err().is_unprocessed());
    assert!(ended(third).await.unwrap_err().is_unprocessed());
    server.answer(1, LAST).await;
    ended(first).await.unwrap();
}

/// How Go's servers end a connection: first any stream is taken, a second later those that came.
#[tokio::test]
async fn a_graceful_end_serves_every_open_request() {
    let (mut server, [first, second, third]) = three_waits().await;
    server.go_away(ANY, Reason::NO_ERROR).await;
    settle().await;
    server.go_away(1, Reason::NO_ERROR).await;
    assert!(ended(second).await.unwrap_err().is_unprocessed());
    assert!(ended(third).await.unwrap_err().is_unprocessed());
    server.answer(1, LAST).await;
    ended(first).await.unwrap();
}

/// `rule:dead-connections-are-noticed`
#[tokio::test(start_paused = true)]
async fn a_server_that_says_goodbye_and_falls_silent_is_given_up() {
    for last in [1, ANY] {
        let begun = Instant::now();
        let (mut server, sent) = three_waits().await;
        server.go_away(last, Reason::NO_ERROR).await;
        for sent in sent {
            ended(sent).await.unwrap_err();
        }
        assert_eq!(begun.elapsed().as_secs(), 45, "{last}");
    }
}
