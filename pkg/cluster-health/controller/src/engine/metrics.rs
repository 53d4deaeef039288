//! [`Metrics`]: all `clusterhealth_*` metrics. [`Counters`] are counted along the way; a [`Family`] is
//! made of a single reading, so that two scrapes at once share nothing
//! (`rule:scrapes-do-not-disturb-each-other`). Used by `gauges.rs`.

use std::collections::HashMap;
use std::time::Duration;

use health::{Code, Report};
use prometheus::core::Desc;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// From a member next door to one that takes the longest timeout that makes sense.
const PROBE_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Registered once per process and kept by a restarted controller.
#[derive(Clone)]
pub(crate) struct Counters {
    duration: HistogramVec,
    probes: IntCounterVec,
    lag: HistogramVec,
    writes: IntCounterVec,
    restarts: IntCounterVec,
    moves: IntCounterVec,
}

impl Counters {
    /// Registers everything.
    ///
    /// # Errors
    /// A name is registered already.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters = Self {
            duration: histogram(
                "clusterhealth_probe_duration_seconds",
                "Time of a probe, retries included.",
                &["flavour", "result"],
            )?,
            probes: counter(
                "clusterhealth_probes_total",
                "Completed probes by result and code; void are those that this process could not make.",
                &["flavour", "result", "code"],
            )?,
            lag: histogram(
                "clusterhealth_schedule_lag_seconds",
                "How long after its time a probe started.",
                &["flavour"],
            )?,
            writes: counter(
                "clusterhealth_status_writes_total",
                "Writes of status by outcome.",
                &["flavour", "outcome"],
            )?,
            restarts: counter(
                "clusterhealth_task_restarts_total",
                "Tasks of clusters that were begun anew.",
                &["reason"],
            )?,
            moves: counter(
                "clusterhealth_shard_moves_total",
                "Clusters that this replica took over from another one, or gave to it.",
                &["direction"],
            )?,
        };
        registry.register(Box::new(counters.duration.clone()))?;
        registry.register(Box::new(counters.lag.clone()))?;
        for vector in [&counters.probes, &counters.writes, &counters.restarts, &counters.moves] {
            registry.register(Box::new(vector.clone()))?;
        }
        for reason in ["panic", "watchdog"] {
            counters.restarts.with_label_values(&[reason]);
        }
        for direction in ["taken", "given"] {
            counters.moves.with_label_values(&[direction]);
        }
        Ok(counters)
    }

    pub(crate) fn started(&self, flavour: &str, lag: Duration) {
        self.lag.with_label_values(&[flavour]).observe(lag.as_secs_f64());
    }

    pub(crate) fn completed(&self, flavour: &str, report: &Report) {
        let finding = report.finding;
        let result = if finding.is_void() { "void" } else { finding.verdict().as_str() };
        let code = finding.code().map_or("", Code::label);
        self.duration.with_label_values(&[flavour, result]).observe(report.took.as_secs_f64());
        self.probes.with_label_values(&[flavour, result, code]).inc();
    }

    pub(crate) fn wrote(&self, flavour: &str, outcome: &str) {
        self.writes.with_label_values(&[flavour, outcome]).inc();
    }

    /// `direction` is `taken` or `given`.
    pub(crate) fn moved(&self, direction: &str) {
        self.moves.with_label_values(&[direction]).inc();
    }

    pub(crate) fn restarted(&self, reason: &str) {
        self.restarts.with_label_values(&[reason]).inc();
    }
}

fn histogram(name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
    HistogramVec::new(HistogramOpts::new(name, help).buckets(PROBE_SECONDS.to_vec()), labels)
}

fn counter(name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

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
