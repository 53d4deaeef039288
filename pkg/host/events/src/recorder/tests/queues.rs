//! Queues of the workers, and events that are dropped before they are sent.

use super::*;

/// Two node names of different workers.
fn two_workers() -> (String, String) {
    let worker = |name: &str| worker_of(&ObjectRef::node(name, "u-1"));
    let mut names = (0..100).map(|n| format!("n{n}"));
    let other = names.find(|name| worker(name) != worker("n")).unwrap();
    ("n".to_owned(), other)
}

#[tokio::test(start_paused = true)]
async fn a_stuck_event_does_not_delay_those_of_other_workers() {
    let (stuck, other) = two_workers();
    let hang = stuck.clone();
    let script = move |asked: &Asked| {
        if asked.json()["involvedObject"]["name"] == *hang {
            Reply::Silence
        } else {
            Reply::stored(asked)
        }
    };
    let server = ApiServer::new(script);
    let (recorder, _broadcaster, _) = pipeline(&server);
    tell(&recorder, &stuck, "no block");
    tell(&recorder, &other, "no block");
    let start = Instant::now();
    server.until_asked(2).await;
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_and_never_blocks() {
    let server = ApiServer::new(|_| Reply::Silence);
    let (recorder, _broadcaster, metrics) = pipeline(&server);
    for n in 0..QUEUE + 50 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    assert_eq!(metrics.dropped(DropReason::QueueFull), 50);
}

#[tokio::test(start_paused = true)]
async fn spam_is_counted() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    for _ in 0..30 {
        tell(&recorder, "n", "no block");
    }
    broadcaster.flush(100 * SECOND).await;
    assert_eq!(server.asked().len(), 25);
    assert_eq!(metrics.dropped(DropReason::Spam), 5);
}
