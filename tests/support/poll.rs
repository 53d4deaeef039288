//! Waiting for what nothing announces: it is asked for again and again, and never for ever.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::PATIENCE;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer, and returns it. `what` names it in the failure.
pub async fn poll<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Asks until it holds. `what` names it in the failure.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    poll(what, async || holds().then_some(())).await;
}
