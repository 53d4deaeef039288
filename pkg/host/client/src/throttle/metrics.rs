//! Metrics of the token buckets, by client: which one waits, how long, and how near its limit it
//! runs. `cmd` makes one and passes it to every bucket.

use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::{Held, SeriesByLabel};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use crate::latency::LATENCY_BUCKETS;

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
        let wait = HistogramVec::new(
            HistogramOpts::new(
                "icm_client_throttle_wait_seconds",
                "Time a request waited for a token of its client's bucket",
            )
            .buckets(LATENCY_BUCKETS.to_vec()),
            &["client"],
        )?;
        let throttled = IntCounterVec::new(
            Opts::new(
                "icm_client_throttled_total",
                "Requests that had to wait for a token of their client's bucket",
            ),
            &["client"],
        )?;
        let utilization = GaugeVec::new(
            Opts::new(
                "icm_client_bucket_utilization",
                "Share of a client's token bucket that is spent: 0 is full, 1 is empty",
            ),
            &["client"],
        )?;
        let buckets = Arc::<Mutex<Vec<Weak<dyn Level>>>>::default();
        registry.register(Box::new(wait.clone()))?;
        registry.register(Box::new(throttled.clone()))?;
        registry.register(Box::new(Utilization {
            gauge: utilization,
            buckets: Arc::clone(&buckets),
        }))?;
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

/// Reads the levels when the page is asked for: a bucket refills while nobody uses it.
struct Utilization {
    gauge: GaugeVec,
    buckets: Arc<Mutex<Vec<Weak<dyn Level>>>>,
}

impl Collector for Utilization {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // Held to the end: of two scrapes at once, one must not wipe out what the other has set.
        let mut buckets = self.buckets.lock();
        self.gauge.reset();
        buckets.retain(|bucket| match bucket.upgrade() {
            Some(bucket) => {
                self.gauge.with_label_values(&[bucket.name()]).set(bucket.utilization());
                true
            }
            None => false,
        });
        self.gauge.collect()
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
