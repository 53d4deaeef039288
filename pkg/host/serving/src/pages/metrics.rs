//! `/metrics` and `/metrics/slis`. [`Exposition`] says which metrics are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::panic::resume_unwind;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use prometheus::core::Collector as _;
use prometheus::proto::{Bucket, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use tokio::task::spawn_blocking;

use crate::pages::encoding::Format;
use crate::process_metrics::{self, START_TIME};
use crate::{Access, Health, Page, Reply, reply};

pub(super) fn pages(health: &Health, registry: &Registry, exposition: &Exposition) -> [Page; 2] {
    let (health, scraped) = (health.clone(), registry.clone());
    let exposition = Arc::new(exposition.clone());
    [
        Page::new("/metrics", Access::Authorized, move |request| {
            let format = Format::wanted(&request.headers);
            metrics(scraped.clone(), exposition.clone(), format)
        }),
        Page::new("/metrics/slis", Access::Authorized, move |request| {
            ready(slis(&health, &request.method))
        }),
    ]
}

/// Rendered on a blocking thread: the series of thousands of objects would hold up the only worker.
async fn metrics(registry: Registry, exposition: Arc<Exposition>, format: Format) -> Reply {
    match spawn_blocking(move || {
        resilience::panics::contain_call(|| render(&registry, &exposition, format))
    })
    .await
    {
        Ok(Ok(page)) => page,
        // As if it had happened here, where it is answered and told.
        Ok(Err(panic)) => resume_unwind(Box::new(panic.to_string())),
        Err(_) => reply::text(StatusCode::SERVICE_UNAVAILABLE, "the process is stopping\n"),
    }
}

fn render(registry: &Registry, exposition: &Exposition, format: Format) -> Reply {
    let mut families = registry.gather();
    let start = process_metrics::start();
    let counts = metric_counts(&families, exposition);
    exposition.limit(&mut families);
    families.extend(counts);
    started(format, format.page(families), start)
}

/// `/metrics/slis`: counts of the answers of health checks; DELETE resets them.
fn slis(health: &Health, method: &Method) -> Reply {
    if method == Method::DELETE {
        health.reset_slis();
        return reply::text(StatusCode::OK, "metrics reset\n");
    }
    let start = process_metrics::start();
    let process = start.map_or_else(String::new, |start| {
        format!(
            "# HELP {START_TIME} Start of the process in seconds since 1970.\n\
             # TYPE {START_TIME} gauge\n{START_TIME} {start}\n"
        )
    });
    started(Format::Text, health.slis() + &process, start)
}

/// With the process start in Unix seconds: scrapers use it to tell a restart from a counter that was
/// reset.
fn started(format: Format, page: String, start: Option<u64>) -> Reply {
    let mut reply = reply::with_type(StatusCode::OK, format.content_type(), page);
    if let Some(start) = start {
        let name = HeaderName::from_static("process-start-time-unix");
        reply.headers_mut().insert(name, HeaderValue::from(start));
    }
    reply
}

/// By which component-base labels its own; nothing of ours is deprecated.
const LABELS: [&str; 2] = ["stability_level", "deprecated_version"];

/// `registered_metrics_total` and `hidden_metrics_total`, without these two.
pub(super) fn metric_counts(
    families: &[MetricFamily],
    exposition: &Exposition,
) -> Vec<MetricFamily> {
    let mut levels: BTreeMap<&str, u64> = BTreeMap::new();
    for family in families {
        *levels.entry(stability(family.help())).or_default() += 1;
    }
    let help =
        "[BETA] Metrics that are registered, by the stability that their help text begins with";
    let registered = IntCounterVec::new(Opts::new("registered_metrics_total", help), &LABELS);
    let help = "[BETA] Metrics that --disabled-metrics names";
    let disabled = IntCounter::new("disabled_metrics_total", help);
    let (Ok(registered), Ok(disabled)) = (registered, disabled) else { return Vec::new() };
    for (level, count) in levels {
        registered.with_label_values(&[level, ""]).inc_by(count);
    }
    disabled.inc_by(u64::try_from(exposition.disabled.len()).unwrap_or(u64::MAX));
    [registered.collect(), disabled.collect()].concat()
}

/// `[ALPHA] Text` is of level `ALPHA`; ours have no level.
fn stability(help: &str) -> &str {
    let level = help.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    level.map_or("", |(level, _)| level)
}

/// The value of a label that is not expected, as in Kubernetes' components.
const UNEXPECTED: &str = "unexpected";

/// The metrics that `/metrics` shows. Operators may leave out expensive ones. By default all of it
/// is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposition {
    /// Full names of metrics that are not shown.
    pub disabled: BTreeSet<String>,
    /// The values that a label may have, by the names of metric and label. Series with other values are added up in one
    /// with the value `unexpected`.
    pub label_values: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Exposition {
    pub(super) fn limit(&self, families: &mut Vec<MetricFamily>) {
        families.retain(|family| !self.disabled.contains(family.name()));
        for family in families {
            let rules = self.label_values.iter();
            let rules = rules.filter(|((metric, _), _)| metric == family.name());
            let rules: BTreeMap<&str, _> =
                rules.map(|((_, label), values)| (label.as_str(), values)).collect();
            if !rules.is_empty() {
                expect(family, &rules);
            }
        }
    }
}

fn expect(family: &mut MetricFamily, rules: &BTreeMap<&str, &BTreeSet<String>>) {
    let kind = family.get_field_type();
    let mut shown: BTreeMap<Vec<String>, Metric> = BTreeMap::new();
    for mut series in family.take_metric() {
        for label in series.mut_label() {
            let values = rules.get(label.name());
            if values.is_some_and(|values| !values.contains(label.value())) {
                label.set_value(UNEXPECTED.to_owned());
            }
        }
        // Within a family labels come in one order.
        let key = series.get_label().iter().map(|label| label.value().to_owned()).collect();
        match shown.get_mut(&key) {
            Some(sum) => add(kind, sum, &series),
            None => {
                shown.insert(key, series);
            }
        }
    }
    family.set_metric(shown.into_values().collect());
}

fn add(kind: MetricType, sum: &mut Metric, more: &Metric) {
    match kind {
        MetricType::COUNTER => {
            let mut counter = sum.get_counter().clone();
            counter.set_value(counter.get_value() + more.get_counter().get_value());
            sum.set_counter(counter);
        }
        MetricType::GAUGE => {
            let mut gauge = sum.get_gauge().clone();
            gauge.set_value(gauge.get_value() + more.get_gauge().get_value());
            sum.set_gauge(gauge);
        }
        MetricType::HISTOGRAM => {
            let (mut histogram, more) = (sum.get_histogram().clone(), more.get_histogram());
            histogram.set_sample_count(histogram.get_sample_count() + more.get_sample_count());
            histogram.set_sample_sum(histogram.get_sample_sum() + more.get_sample_sum());
            // All series of a family have the same buckets.
            let buckets = histogram.get_bucket().iter().zip(more.get_bucket());
            histogram.set_bucket(buckets.map(|(one, other)| both(one, other)).collect());
            sum.set_histogram(histogram);
        }
        // The library makes neither of the others.
        MetricType::SUMMARY | MetricType::UNTYPED => {}
    }
}

fn both(one: &Bucket, other: &Bucket) -> Bucket {
    let mut bucket = one.clone();
    bucket.set_cumulative_count(one.cumulative_count() + other.cumulative_count());
    bucket
}
