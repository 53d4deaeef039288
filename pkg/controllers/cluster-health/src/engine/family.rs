//! [`Family`]: one metric family, made anew of a single reading, so that two scrapes at once share
//! nothing (`rule:scrapes-do-not-disturb-each-other`). Used by `gauges.rs`.

use std::collections::HashMap;

use prometheus::core::Desc;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// Name, help and labels of a family.
pub(crate) struct Family {
    desc: Desc,
    kind: MetricType,
}

impl Family {
    pub(crate) fn gauge(
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<Self, prometheus::Error> {
        Self::new(name, help, labels, MetricType::GAUGE)
    }

    pub(crate) fn counter(
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<Self, prometheus::Error> {
        Self::new(name, help, labels, MetricType::COUNTER)
    }

    fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        kind: MetricType,
    ) -> Result<Self, prometheus::Error> {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())?;
        Ok(Self { desc, kind })
    }

    pub(crate) fn desc(&self) -> &Desc {
        &self.desc
    }

    /// One series; `values` in the order of the labels.
    pub(crate) fn series(&self, values: &[&str], value: f64) -> Metric {
        let mut metric = Metric::default();
        let pair = |(name, value): (&String, &&str)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.clone());
            pair.set_value((*value).to_owned());
            pair
        };
        let mut labels: Vec<_> = self.desc.variable_labels.iter().zip(values).map(pair).collect();
        labels.sort_by(|one, other| one.name().cmp(other.name()));
        metric.set_label(labels);
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        metric
    }

    pub(crate) fn of(&self, series: Vec<Metric>) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(self.kind);
        family.set_metric(series);
        family
    }

    /// A family of one series without labels.
    pub(crate) fn single(&self, value: f64) -> MetricFamily {
        self.of(vec![self.series(&[], value)])
    }
}
