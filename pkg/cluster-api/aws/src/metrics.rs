//! Metrics of calls, under upstream's names (cluster-api-provider-aws), and of the wait for their
//! turn.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, exponential_buckets};

use crate::call::{AwsError, Call};

const CALL: [&str; 4] = ["controller", "service", "region", "operation"];

/// Metrics of calls to AWS. Clones are the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    retries: HistogramVec,
    waits: HistogramVec,
    unexpected: IntCounterVec,
}

impl Metrics {
    /// Registers them.
    ///
    /// # Errors
    /// One of the names is taken.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let histogram = |name: &str, help: &str, labels: &[&str], buckets: Vec<f64>| {
            HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels)
        };
        let answered = [&CALL[..], &["status_code", "error_code"]].concat();
        let seconds = exponential_buckets(0.01, 2.0, 12)?;
        let metrics = Self {
            requests: IntCounterVec::new(
                Opts::new("aws_api_requests_total", "Requests sent to AWS, each attempt counted"),
                &answered,
            )?,
            durations: histogram(
                "aws_api_request_duration_seconds",
                "Time from sending a request to AWS until its answer",
                &CALL,
                seconds.clone(),
            )?,
            retries: histogram(
                "aws_api_call_retries",
                "Retries of a call to AWS",
                &CALL,
                vec![0.0, 1.0, 2.0, 3.0],
            )?,
            waits: histogram(
                "aws_limiter_wait_seconds",
                "Time that a request to AWS waited for --aws-read-qps or --aws-write-qps",
                &["service", "class"],
                seconds,
            )?,
            unexpected: IntCounterVec::new(
                Opts::new(
                    "icm_aws_unexpected_total",
                    "Answers of AWS that report an invalid request of this program",
                ),
                &["code"],
            )?,
        };
        for family in [&metrics.durations, &metrics.retries, &metrics.waits] {
            registry.register(Box::new(family.clone()))?;
        }
        for family in [&metrics.requests, &metrics.unexpected] {
            registry.register(Box::new(family.clone()))?;
        }
        Ok(metrics)
    }

    /// A request was answered, or not.
    pub(crate) fn request(
        &self,
        labels: [&str; 4],
        took: Duration,
        outcome: Result<(), &AwsError>,
    ) {
        let (status, code) = match outcome {
            Ok(()) => ("200".to_owned(), ""),
            Err(error) => (error.status().to_string(), error.code()),
        };
        if let Some(code) = outcome.err().and_then(AwsError::unexpected) {
            self.unexpected.with_label_values(&[code]).inc();
        }
        let [controller, service, region, operation] = labels;
        let all = [controller, service, region, operation, &status, code];
        self.requests.with_label_values(&all).inc();
        self.durations.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// A call has ended after so many attempts beyond the first.
    pub(crate) fn call_ended(&self, labels: [&str; 4], retries: u32) {
        self.retries.with_label_values(&labels).observe(f64::from(retries));
    }

    /// An attempt has waited for its turn.
    pub(crate) fn waited(&self, call: Call, time: Duration) {
        let labels = [call.service.as_str(), call.class.as_str()];
        self.waits.with_label_values(&labels).observe(time.as_secs_f64());
    }
}
