//! Metrics of the token buckets, by client: which one waits, how long, and how near its limit it
//! runs. `cmd` makes one and passes it to every bucket.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::{Family, Held, SeriesByLabel};
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};

/// Stock's latency buckets, in seconds, so that dashboards made for stock draw ours.
pub(crate) const LATENCY_BUCKETS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// A bucket whose level can be read at any time.
pub(crate) trait Level: Send + Sync {
    /// Value of the label `client`.
    fn name(&self) -> &str;
    /// Share of the bucket that is spent right now: 0 full, 1 empty.
    fn utilization(&self) -> f64;
}

/// The registered families; clones share them.
#[derive(Clone)]
pub struct ThrottleMetrics {
    wait: HistogramVec,
    throttled: IntCounterVec,
    /// Series go with the last bucket of their client (`rule:series-end-with-their-thing`).
    clients: SeriesByLabel,
    buckets: Arc<Mutex<Vec<Weak<dyn Level>>>>,
}

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
        let buckets = Arc::<Mutex<Vec<Weak<dyn Level>>>>::default();
        let shown = Arc::clone(&buckets);
        // Read at the scrape: a bucket refills while nothing uses it.
        metrics::at_scrape(registry, [utilization], move |[family]| {
            let mut buckets = shown.lock();
            buckets.retain(|bucket| bucket.strong_count() > 0);
            // Of several buckets of one client the last is shown.
            let buckets = buckets.iter().filter_map(Weak::upgrade);
            let levels: BTreeMap<_, _> =
                buckets.map(|bucket| (bucket.name().to_owned(), bucket.utilization())).collect();
            [levels.iter().map(|(client, level)| family.series(&[client], *level)).collect()]
        })?;
        Ok(Self { wait, throttled, clients: SeriesByLabel::default(), buckets })
    }

    pub(crate) fn bucket(&self, client: &str) -> BucketMetrics {
        let held = self.clients.hold(client);
        BucketMetrics {
            wait: held.series(&self.wait, &[client]),
            throttled: held.series(&self.throttled, &[client]),
            _held: held,
        }
    }

    /// Shows the level of `bucket` for as long as it lives.
    pub(crate) fn follow(&self, bucket: &Weak<dyn Level>) {
        self.buckets.lock().push(Weak::clone(bucket));
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
    use prometheus::TextEncoder;

    use super::*;
    use crate::throttle::Throttle;

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
