//! Metrics of the token buckets, by client: which one waits, how long, and how near its limit it
//! runs (`host.md` 4.5, 12). The manager makes one and passes it to every bucket.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use crate::metrics::LATENCY_BUCKETS;
use crate::throttle::Bucket;

/// The registered families; clones share them.
#[derive(Clone)]
pub struct ThrottleMetrics {
    wait: HistogramVec,
    throttled: IntCounterVec,
    buckets: Arc<Mutex<Vec<Weak<Bucket>>>>,
}

impl ThrottleMetrics {
    /// Registers the families.
    pub fn new(r: &Registry) -> Result<Self, prometheus::Error> {
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
        let buckets = Arc::new(Mutex::new(Vec::new()));
        r.register(Box::new(wait.clone()))?;
        r.register(Box::new(throttled.clone()))?;
        r.register(Box::new(Utilization { gauge: utilization, buckets: Arc::clone(&buckets) }))?;
        Ok(Self { wait, throttled, buckets })
    }

    pub(crate) fn bucket(&self, client: &str) -> BucketMetrics {
        BucketMetrics {
            wait: self.wait.with_label_values(&[client]),
            throttled: self.throttled.with_label_values(&[client]),
        }
    }

    /// Shows the level of `bucket` for as long as it lives.
    pub(crate) fn follow(&self, bucket: &Arc<Bucket>) {
        self.buckets.lock().push(Arc::downgrade(bucket));
    }
}

/// Children of one bucket.
pub(crate) struct BucketMetrics {
    wait: Histogram,
    throttled: IntCounter,
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
    buckets: Arc<Mutex<Vec<Weak<Bucket>>>>,
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
