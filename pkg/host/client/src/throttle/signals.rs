//! What the bucket of a client tells: [`Refusals`], whether the server refuses most requests by 429 or
//! only one now and then (`rule:many-429s-stop-the-bucket`); [`Cost`], which warns when much time goes
//! into waits; and the metrics of all buckets.
//!
//! Requests without an answer count as granted. A server refuses at once and takes its time to write:
//! among the first answers to a burst are only refusals, which say nothing about the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::{Family, Held, SeriesByLabel};
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};
use resilience::{LogGate, TokenBucket};
use tokio::time::Instant;
use tracing::warn;

/// Requests that are looked back on, from the one that was refused.
const WINDOW: u32 = u64::BITS;

/// The last requests of one client, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    sent: u64,
    /// A bit per request, the newest lowest; set after a 429. Twice the window: as many as that may be under way after
    /// a request whose refusal comes.
    last: u128,
}

impl Refusals {
    /// Notes that a request is sent; returns its number.
    pub(super) fn sent(&mut self) -> u64 {
        self.sent += 1;
        self.last <<= 1;
        self.sent
    }

    /// Notes that the request of this number was refused; true when more than half of those sent up to it
    /// were: newer ones have no answer yet.
    pub(super) fn refused(&mut self, number: u64) -> bool {
        let age = u32::try_from(self.sent.saturating_sub(number)).unwrap_or(u128::BITS);
        self.last |= 1_u128.checked_shl(age).unwrap_or_default();
        let up_to_it = self.last.checked_shr(age).unwrap_or_default() & u128::from(u64::MAX);
        up_to_it.count_ones() * 2 > WINDOW
    }
}

/// The length of one judged span.
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
                "Requests waited for the client-side throttle for much of the last minute; \
                 increase --kube-api-qps and --kube-api-burst, or --controller-qps of this \
                 controller"
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

/// Stock's latency buckets, in seconds, so that dashboards made for stock draw ours.
pub(crate) const LATENCY_BUCKETS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The registered families; clones share them.
#[derive(Clone)]
pub struct ThrottleMetrics {
    wait: HistogramVec,
    throttled: IntCounterVec,
    /// Series go with the last bucket of their client (`rule:series-end-with-their-thing`).
    clients: SeriesByLabel,
    buckets: Arc<Mutex<Vec<FollowedBucket>>>,
}

/// The name of a client, and its bucket while that is used.
type FollowedBucket = (String, Weak<Mutex<TokenBucket>>);

impl ThrottleMetrics {
    /// Registers the families.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let wait = metrics::histogram(
            registry,
            "icm_client_throttle_wait_seconds",
            "Time a request waited for a token of its client's bucket",
            &["client"],
            &LATENCY_BUCKETS,
        )?;
        let throttled = metrics::counter(
            registry,
            "icm_client_throttled_total",
            "Requests that had to wait for a token of their client's bucket",
            &["client"],
        )?;
        let utilization = Family::gauge(
            "icm_client_bucket_utilization",
            "Used fraction of a client's token bucket: 0 when all tokens are left, 1 when none is left",
            &["client"],
        )?;
        let buckets = Arc::<Mutex<Vec<FollowedBucket>>>::default();
        let shown = Arc::clone(&buckets);
        // Read at the scrape: a bucket refills while nothing uses it.
        metrics::at_scrape(registry, [utilization], move |[family]| {
            let mut buckets = shown.lock();
            buckets.retain(|(_, bucket)| bucket.strong_count() > 0);
            let level = |(client, bucket): &FollowedBucket| {
                Some((client.clone(), bucket.upgrade()?.lock().utilization(Instant::now())))
            };
            // Of several buckets of one client the last is shown.
            let levels: BTreeMap<_, _> = buckets.iter().filter_map(level).collect();
            [levels.iter().map(|(client, level)| family.series(&[client], *level)).collect()]
        })?;
        Ok(Self { wait, throttled, clients: SeriesByLabel::default(), buckets })
    }

    /// The metrics of a client, and from now on the level of its bucket, for as long as that lives.
    pub(crate) fn follow(&self, client: &str, bucket: &Arc<Mutex<TokenBucket>>) -> BucketMetrics {
        self.buckets.lock().push((client.to_owned(), Arc::downgrade(bucket)));
        let held = self.clients.hold(client);
        BucketMetrics {
            wait: held.series(&self.wait, &[client]),
            throttled: held.series(&self.throttled, &[client]),
            _held: held,
        }
    }
}

/// Children of one bucket.
pub(crate) struct BucketMetrics {
    wait: Histogram,
    throttled: IntCounter,
    _held: Held,
}

impl BucketMetrics {
    pub(crate) fn waited(&self, time: Duration, had_to: bool) {
        self.wait.observe(time.as_secs_f64());
        if had_to {
            self.throttled.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use prometheus::TextEncoder;
    use proptest::prelude::*;

    use super::*;
    use crate::throttle::Throttle;

    /// A request that is answered before the next one is sent.
    fn note(refusals: &mut Refusals, refused: bool) -> bool {
        let number = refusals.sent();
        refused && refusals.refused(number)
    }

    /// `rule:many-429s-stop-the-bucket`
    #[test]
    fn quick_refusals_do_not_outweigh_requests_that_are_still_under_way() {
        let mut refusals = Refusals::default();
        for _ in 0..100 {
            let [refused, _granted, _granted_too] = [(); 3].map(|()| refusals.sent());
            assert!(!refusals.refused(refused), "one in three");
        }
    }

    /// `rule:many-429s-stop-the-bucket`
    #[test]
    fn a_server_that_refuses_everything_stops_clients_with_many_requests_under_way() {
        for under_way in [1, 32, 33, 64] {
            let mut refusals = Refusals::default();
            let mut waiting: std::collections::VecDeque<u64> =
                (0..under_way).map(|_| refusals.sent()).collect();
            let stops = (0..400)
                .filter(|_| {
                    let oldest = waiting.pop_front().unwrap_or_default();
                    let stop = refusals.refused(oldest);
                    waiting.push_back(refusals.sent());
                    stop
                })
                .count();
            assert!(stops > 300, "{under_way} under way: {stops}");
        }
    }

    #[test]
    fn a_late_refusal_counts_for_the_time_of_its_request() {
        let mut refusals = Refusals::default();
        let early: Vec<u64> = (0..33).map(|_| refusals.sent()).collect();
        for _ in 0..128 {
            refusals.sent();
        }
        assert!(!early.into_iter().any(|number| refusals.refused(number)), "long ago");
    }

    #[test]
    fn a_server_that_refuses_from_the_start_refuses_most_after_half_a_window() {
        let mut refusals = Refusals::default();
        let most: Vec<bool> = (0..64).map(|_| note(&mut refusals, true)).collect();
        assert_eq!(most.iter().position(|most| *most), Some(32));
    }

    #[test]
    fn one_refusal_among_many_answers_is_not_most() {
        let mut refusals = Refusals::default();
        for _ in 0..1_000 {
            assert!(!note(&mut refusals, false));
        }
        assert!(!note(&mut refusals, true));
    }

    proptest! {
        #[test]
        fn most_means_more_than_half_of_the_last_sixty_four(answers in prop::collection::vec(any::<bool>(), 0..300)) {
            let (mut refusals, mut last) = (Refusals::default(), VecDeque::from([false; 64]));
            for refused in answers {
                last.push_back(refused);
                last.pop_front();
                let most = last.iter().filter(|refused| **refused).count() > 32;
                prop_assert_eq!(note(&mut refusals, refused), refused && most);
            }
        }
    }

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
    fn more_than_three_tenths_of_a_minute_are_reported_once_in_ten_minutes() {
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

    /// rule:series-end-with-their-thing
    #[test]
    fn the_series_of_a_bucket_end_with_the_last_one_of_its_client() {
        let registry = Registry::new();
        let metrics = ThrottleMetrics::new(&registry).unwrap();
        let throttle = || Throttle::new("member", 5.0, 5, &metrics).unwrap();
        let is_shown = || {
            let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            page.contains("client=\"member\"")
        };
        let [first, second] = [throttle(), throttle()];
        drop(first);
        assert!(is_shown());
        drop(second);
        assert!(!is_shown());
    }
}
