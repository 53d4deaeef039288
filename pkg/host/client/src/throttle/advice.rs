//! How much of its time a client loses to its own limit, and the advice to raise it
//! (`rule:a-costly-limit-is-told`). Asked by the bucket after every wait.

use std::time::Duration;

use parking_lot::Mutex;
use resilience::LogGate;
use tokio::time::Instant;
use tracing::warn;

/// What is judged at once.
const SPAN: Duration = Duration::from_secs(60);
/// A larger share of it is too much.
const TOO_MUCH: f64 = 0.3;
/// Between two lines about one client.
const REMIND: Duration = Duration::from_secs(600);

/// The waits of one bucket in the current span.
pub(crate) struct Cost {
    span: Mutex<Span>,
    told: LogGate,
}

#[derive(Default)]
struct Span {
    since: Option<Instant>,
    /// The last wait that was counted ended then: what others waited at the same time costs nothing more.
    counted_to: Option<Instant>,
    lost: Duration,
}

impl Cost {
    pub(crate) fn new() -> Self {
        Self { span: Mutex::default(), told: LogGate::new(REMIND) }
    }

    /// Somebody waited from `from` to `to` for a token of the client's own limit; zero where there was
    /// one.
    pub(crate) fn waited(&self, client: &str, qps: f64, from: Instant, to: Instant) {
        let Some(share) = self.span.lock().add(from, to) else { return };
        if share > TOO_MUCH && self.told.pass(to).is_some() {
            let percent = (share * 100.0).round();
            warn!(
                client,
                qps,
                percent,
                "Requests waited for the client's own limit for much of the last minute; raise \
                 --kube-api-qps and --kube-api-burst, or give this controller more with \
                 --controller-qps"
            );
        }
    }
}

impl Span {
    /// The share of a span that is over, which ends it.
    fn add(&mut self, from: Instant, to: Instant) -> Option<f64> {
        let since = *self.since.get_or_insert(from);
        let from = self.counted_to.map_or(from, |counted| counted.max(from));
        self.lost += to.saturating_duration_since(from);
        self.counted_to = Some(to);
        let length = to.saturating_duration_since(since);
        if length < SPAN {
            return None;
        }
        let share = self.lost.as_secs_f64() / length.as_secs_f64();
        *self = Self { since: Some(to), counted_to: Some(to), lost: Duration::ZERO };
        Some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Lines after waits from one second to another.
    fn lines(waits: impl IntoIterator<Item = (u64, u64)>) -> usize {
        let (cost, log, start) = (Cost::new(), log_capture::Capture::begin(), Instant::now());
        for (from, to) in waits {
            cost.waited("node-controller", 5.0, start + secs(from), start + secs(to));
        }
        let told = log.with("Requests waited");
        assert!(told.iter().all(|line| line.contains("--controller-qps")), "{told:?}");
        told.len()
    }

    #[test]
    fn more_than_three_tenths_of_a_minute_are_told_once_in_ten_minutes() {
        assert_eq!(lines((0..7).map(|n| (n * 10, n * 10 + 4))), 1);
        assert_eq!(lines((0..7).map(|n| (n * 10, n * 10 + 2))), 0);
        assert_eq!(lines((0..600).map(|second| (second, second + 1))), 1);
        assert_eq!(lines((0..700).map(|second| (second, second + 1))), 2);
    }

    #[test]
    fn those_who_wait_at_once_lose_their_time_together() {
        let crowd = (0..7).flat_map(|n| (0..100).map(move |_| (n * 10, n * 10 + 2)));
        assert_eq!(lines(crowd), 0);
    }

    #[test]
    fn a_long_pause_between_two_waits_is_no_loss() {
        assert_eq!(lines([(0, 10), (300, 310)]), 0);
    }
}
