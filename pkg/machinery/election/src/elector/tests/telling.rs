//! What the log says of a lease that cannot be acquired, and how often.

use std::sync::Arc;

use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use super::*;

/// When and what was warned about, since the test began.
#[derive(Clone)]
struct Warnings {
    began: Instant,
    told: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            self.told.lock().unwrap().push((self.began.elapsed(), format!("{event:?}")));
        }
    }
}

impl Warnings {
    /// Catches what this thread warns about.
    fn catch() -> (Self, DefaultGuard) {
        let warnings = Self { began: Instant::now(), told: Arc::default() };
        let subscriber = Registry::default().with(warnings.clone());
        (warnings, tracing::subscriber::set_default(subscriber))
    }

    /// The seconds at which something with this text was warned about.
    fn with(&self, text: &str) -> Vec<f64> {
        let told = self.told.lock().unwrap();
        told.iter()
            .filter(|(_, said)| said.contains(text))
            .map(|(at, _)| at.as_secs_f64())
            .collect()
    }
}

const SECOND: Duration = Duration::from_secs(1);
const REFUSED: Fault =
    Fault { before: Duration::ZERO, after: Duration::ZERO, request_lost: true, answer_lost: false };
const HANGS: Fault = Fault {
    before: Duration::from_secs(3600),
    after: Duration::ZERO,
    request_lost: false,
    answer_lost: false,
};

#[tokio::test(start_paused = true)]
async fn a_failure_to_acquire_that_goes_on_is_told_again_each_minute() {
    let (warnings, _guard) = Warnings::catch();
    let server = Server::default();
    let _a = Running::start("a", server.store(|_| REFUSED));
    tokio::time::sleep(179 * SECOND).await;
    assert!(server.calls().len() > 300, "{} tries", server.calls().len());
    let told = warnings.with("Cannot acquire the lease yet, will keep trying");
    assert_eq!(told, [0.0, 60.0, 120.0]);
}

#[tokio::test(start_paused = true)]
async fn another_failure_and_one_that_comes_back_are_told_at_once() {
    let (warnings, _guard) = Warnings::catch();
    let server = Server::holding(ghost("ghost", "2000-01-01T00:00:00Z"));
    let began = Instant::now();
    let plan = move |_| match began.elapsed().as_secs() {
        0..10 | 12..20 => REFUSED,
        20.. => HANGS,
        _ => Fault::default(), // the ghost is seen
    };
    let _a = Running::start("a", server.store(plan));
    tokio::time::sleep(40 * SECOND).await;
    assert_eq!(warnings.with("connection reset"), [0.0, 12.0]);
    assert_eq!(warnings.with("no answer in time").len(), 1);
}
