//! Metrics of calls, under upstream's names (cluster-api-provider-aws), and of the wait for their
//! turn.

use std::time::Duration;

use metrics::{counter, histogram};
use prometheus::{HistogramVec, IntCounterVec, Registry, exponential_buckets};

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
    /// Registers the metrics of calls to AWS.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let answered = [&CALL[..], &["status_code", "error_code"]].concat();
        let seconds = exponential_buckets(0.01, 2.0, 12)?;
        let help = "Requests sent to AWS, repeated ones included";
        let requests = counter(registry, "aws_api_requests_total", help, &answered)?;
        let (name, help) = (
            "aws_api_request_duration_seconds",
            "Time from sending a request to AWS until its answer",
        );
        let durations = histogram(registry, name, help, &CALL, &seconds)?;
        let help = "Requests of a call to AWS after its first";
        let numbers = [0.0, 1.0, 2.0, 3.0];
        let retries = histogram(registry, "aws_api_call_retries", help, &CALL, &numbers)?;
        let help = "Time that a request to AWS waited for --aws-read-qps or --aws-write-qps";
        let labels = ["service", "class"];
        let waits = histogram(registry, "aws_limiter_wait_seconds", help, &labels, &seconds)?;
        let help = "Answers of AWS that report an invalid request of this program";
        let unexpected = counter(registry, "icm_aws_unexpected_total", help, &["code"])?;
        Ok(Self { requests, durations, retries, waits, unexpected })
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

    /// A call has ended after so many requests beyond the first.
    pub(crate) fn call_ended(&self, labels: [&str; 4], retries: u32) {
        self.retries.with_label_values(&labels).observe(f64::from(retries));
    }

    /// A request has waited for its turn.
    pub(crate) fn waited(&self, call: Call, time: Duration) {
        let labels = [call.service.as_str(), call.class.as_str()];
        self.waits.with_label_values(&labels).observe(time.as_secs_f64());
    }
}
