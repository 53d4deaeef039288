//! The end: what is still written, and what is counted as lost.

use super::*;

#[tokio::test(start_paused = true)]
async fn flushing_writes_what_waits_and_takes_no_more() {
    let server = ApiServer::new(Reply::stored);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    for n in 0..100 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    broadcaster.flush(2 * SECOND).await;
    assert_eq!(server.asked().len(), 100);
    tell(&recorder, "n", "too late");
    assert_eq!(metrics.dropped(DropReason::Shutdown), 1);
    sleep(10 * SECOND).await;
    assert_eq!(server.asked().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn flushing_ends_at_its_limit_and_counts_what_was_not_written() {
    let server = ApiServer::new(|_| Reply::Silence);
    let (recorder, broadcaster, metrics) = pipeline(&server);
    for n in 0..10 {
        tell(&recorder, &format!("n{n}"), "no block");
    }
    let start = Instant::now();
    broadcaster.flush(2 * SECOND).await;
    assert_eq!(start.elapsed(), 2 * SECOND);
    assert_eq!(metrics.dropped(DropReason::Shutdown), 10);
}
