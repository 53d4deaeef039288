//! The end of the thread, by itself and by order.

use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// A thread that ends on its own when `ends`, else when the lease is given back.
fn thread_that(ends: bool) -> (LeaseThread, mpsc::Receiver<bool>) {
    let (stop, (release, released)) = (CancellationToken::new(), oneshot::channel());
    let ((running, ended), (said, told)) = (oneshot::channel(), mpsc::channel());
    thread::spawn(move || {
        let _running: oneshot::Sender<()> = running;
        if !ends {
            said.send(released.blocking_recv().is_ok()).ok();
        }
    });
    (LeaseThread { stop: stop.drop_guard(), release, ended }, told)
}

#[tokio::test]
async fn a_thread_that_ended_by_itself_is_a_failure_and_can_still_be_released() {
    let (mut lease, _) = thread_that(true);
    let failure = lease.lost().await;
    assert!(failure.to_string().contains("the thread of the lease of this replica ended"));
    lease.release().await;
}

#[tokio::test]
async fn a_release_waits_for_the_end_of_the_thread() {
    let (lease, told) = thread_that(false);
    lease.release().await;
    assert_eq!(told.recv_timeout(Duration::ZERO), Ok(true));
}
