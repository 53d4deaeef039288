//! [`Exposition`]: which metrics are shown, and with which values of their labels.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{Bucket, Metric, MetricFamily, MetricType};

/// What a label reads whose value is not expected; the word of Kubernetes' components.
const UNEXPECTED: &str = "unexpected";

/// What operators leave out of `/metrics` that costs them more than it tells. By default all of it
/// is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposition {
    /// Full names of metrics that are not shown.
    pub disabled: BTreeSet<String>,
    /// By name of a metric and of its label the values that this may have. Series with other values
    /// are added up in one with the value `unexpected`.
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
