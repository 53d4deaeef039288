//! Tells which rights are missing while caches cannot be filled for want of them
//! (`rule:missing-rights-are-named`).

use std::convert::Infallible;
use std::time::Duration;

use informer::Informer;
use kube_api::Cached;
use manager::Context;
use tokio::time::sleep;
use tracing::error;

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
