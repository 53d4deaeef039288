//! Waiting for a state that no event announces: a check is repeated until it passes or a limit is over.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::PATIENCE;

/// Between two questions, at least and at most: twice as long as one takes, and in a long wait up to ten times as long,
/// since one that starts a program keeps others from the processors.
const PAUSE: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Asks until there is an answer, and returns it. `what` names it in the failure.
pub async fn poll<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    let wait = async {
        loop {
            let asked = Instant::now();
            if let Some(answer) = ask().await {
                return answer;
            }
            let took = asked.elapsed();
            let pause = (began.elapsed() / 10).clamp(took * 2, took * 10);
            sleep(pause.clamp(PAUSE[0], PAUSE[1])).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Asks until it holds. `what` names it in the failure.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    poll(what, async || holds().then_some(())).await;
}
