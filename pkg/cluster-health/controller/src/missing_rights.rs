//! What the caches and handlers of all flavours need: [`report`] tells which rights are missing while
//! caches cannot be filled (`rule:missing-rights-are-named`), [`Reading`] ends a handler at a stop.

use std::convert::Infallible;
use std::time::Duration;

use informer::Informer;
use kube_api::Cached;
use manager::Context;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::error;
use workqueue::{Next, Reconcile, Retry};

/// Between lines.
const EVERY: Duration = Duration::from_secs(60);
/// How soon after the start the first line may come.
const LOOK: Duration = Duration::from_secs(1);

/// Asks one cache what the server said when it refused it.
pub(crate) type Denied = Box<dyn Fn() -> Option<String> + Send>;

/// Asks this cache.
pub(crate) fn denied<T: Cached>(cache: &Informer<T>) -> Denied {
    let cache = cache.clone();
    Box::new(move || cache.denied())
}

/// Looks at the caches of a flavour until the run stops. `manifest` grants what they need.
pub(crate) fn report(context: &Context, caches: Vec<Denied>, manifest: &'static str) {
    let stop = context.stop.clone();
    context.spawn(async move {
        let _stopped = stop.run_until_cancelled(look(caches, manifest)).await;
    });
}

async fn look(caches: Vec<Denied>, manifest: &'static str) -> Infallible {
    loop {
        sleep(LOOK).await;
        if let Some(missing) = missing(&caches) {
            error!(
                missing,
                "Missing permission: nothing is known of these objects until it is granted; \
                 apply {manifest}"
            );
            sleep(EVERY.saturating_sub(LOOK)).await;
        }
    }
}

/// All that was refused, on one line.
fn missing(caches: &[Denied]) -> Option<String> {
    let mut missing: Vec<_> = caches.iter().filter_map(|denied| denied()).collect();
    missing.dedup();
    (!missing.is_empty()).then(|| missing.join("; ").replace(['\n', '\r'], " "))
}

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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use log_capture::Capture;
    use tokio::time::timeout;

    use super::*;

    /// rule:missing-rights-are-named
    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_told_on_one_line_a_minute_until_it_is_granted() {
        let refused = Arc::new(AtomicBool::new(true));
        let cache = |text: &'static str| {
            let refused = Arc::clone(&refused);
            let denied = move || refused.load(Ordering::Relaxed).then(|| text.to_owned());
            Box::new(denied) as Denied
        };
        let captured = Capture::begin();
        let caches = || vec![cache("no clusters"), cache("no machines")];
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        drop(timeout(minutes(3), look(caches(), "config/rbac/x.yaml")).await);
        let lines = captured.with("Missing permission");
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for part in ["no clusters; no machines", "apply config/rbac/x.yaml"] {
            assert!(lines[0].contains(part), "{}", lines[0]);
        }
        refused.store(false, Ordering::Relaxed);
        drop(timeout(minutes(3), look(caches(), "config/rbac/x.yaml")).await);
        assert_eq!(captured.with("Missing permission").len(), 3);
    }
}

#[cfg(test)]
mod reading_tests {
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
