//! [`Reading`]: a handler of keys that writes nothing. Both flavours wrap theirs in it.

use tokio_util::sync::CancellationToken;
use workqueue::{Next, Reconcile, Retry};

/// Cuts its handler off at a stop (`rule:a-stop-waits-for-no-read`).
pub(crate) struct Reading<R> {
    handler: R,
    stop: CancellationToken,
}

impl<R> Reading<R> {
    pub(crate) fn new(handler: R, stop: &CancellationToken) -> Self {
        Self { handler, stop: stop.clone() }
    }
}

impl<R: Reconcile> Reconcile for Reading<R> {
    type Key = R::Key;

    async fn reconcile(&self, key: &Self::Key) -> Result<Next, Retry> {
        let handled = self.stop.run_until_cancelled(self.handler.reconcile(key)).await;
        handled.unwrap_or(Ok(Next::Done))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Waits for an answer that does not come.
    struct Waiting;

    impl Reconcile for Waiting {
        type Key = String;

        async fn reconcile(&self, _: &String) -> Result<Next, Retry> {
            std::future::pending().await
        }
    }

    /// rule:a-stop-waits-for-no-read
    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_not_answered_ends_with_the_run() {
        let stop = CancellationToken::new();
        let reading = Reading::new(Waiting, &stop);
        let (key, minute) = ("key".to_owned(), Duration::from_secs(60));
        assert!(timeout(minute, reading.reconcile(&key)).await.is_err());
        stop.cancel();
        assert!(matches!(timeout(minute, reading.reconcile(&key)).await, Ok(Ok(Next::Done))));
    }
}
