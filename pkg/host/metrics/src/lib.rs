//! How all crates register metrics. Families that are written when something happens come from
//! [`counter`], [`gauge`] and [`histogram`]; state is read at each scrape, by [`at_scrape`]; series of
//! objects that come and go end with a [`Held`].
//!
//! Scrapes share no state, so concurrent ones do not disturb each other.

mod series_by_label;

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

pub use series_by_label::{Held, SeriesByLabel};

/// Registers a counter for each combination of label values.
pub fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, Error> {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

/// Registers a gauge for each combination of label values.
pub fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, Error> {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

/// Registers a histogram for each combination of label values.
pub fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> Result<HistogramVec, Error> {
    let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register(registry, HistogramVec::new(opts, labels)?)
}

/// Registers a family of any other type, such as one without labels.
pub fn register<C: Collector + Clone + 'static>(
    registry: &Registry,
    family: C,
) -> Result<C, Error> {
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}

struct Scraped<F> {
    descs: Vec<Desc>,
    read: F,
}

impl<F: Fn() -> Vec<MetricFamily> + Send + Sync> Collector for Scraped<F> {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        (self.read)()
    }
}

/// Registers `families`. At each scrape `read` returns the series of each, in the same order; a
/// family without series is not shown.
pub fn at_scrape<F, S>(
    registry: &Registry,
    families: F,
    read: impl Fn(&F) -> S + Send + Sync + 'static,
) -> Result<(), Error>
where
    F: AsRef<[Family]> + Send + Sync + 'static,
    S: IntoIterator<Item = Vec<Metric>>,
{
    let descs = families.as_ref().iter().map(|family| family.desc.clone()).collect();
    let read = move || {
        let series = families.as_ref().iter().zip(read(&families));
        series.map(|(family, series)| family.of(series)).collect()
    };
    registry.register(Box::new(Scraped { descs, read }))
}

/// Name, help, labels and type of a family that is read at each scrape.
#[derive(Clone)]
pub struct Family {
    desc: Desc,
    kind: MetricType,
}

impl Family {
    /// A family of gauges.
    pub fn gauge(name: &str, help: &str, labels: &[&str]) -> Result<Self, Error> {
        Self::new(name, help, labels, MetricType::GAUGE)
    }

    /// A family of counters, which must never decrease.
    pub fn counter(name: &str, help: &str, labels: &[&str]) -> Result<Self, Error> {
        Self::new(name, help, labels, MetricType::COUNTER)
    }

    fn new(name: &str, help: &str, labels: &[&str], kind: MetricType) -> Result<Self, Error> {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())?;
        Ok(Self { desc, kind })
    }

    /// One series; `values` in the order of the labels.
    pub fn series(&self, values: &[&str], value: f64) -> Metric {
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

    fn of(&self, series: Vec<Metric>) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(self.kind);
        family.set_metric(series);
        family
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn each_scrape_shows_what_is_read_then_and_families_without_series_are_left_out() {
        let (registry, scrapes) = (Registry::new(), AtomicU32::new(0));
        let families = [
            Family::counter("scrapes_total", "Scrapes.", &[]).unwrap(),
            Family::gauge("absent", "Absent.", &[]).unwrap(),
            Family::gauge("sizes", "Sizes.", &["shape", "colour"]).unwrap(),
        ];
        at_scrape(&registry, families.clone(), move |[counter, _, sizes]| {
            let count = f64::from(scrapes.fetch_add(1, Ordering::Relaxed) + 1);
            [vec![counter.series(&[], count)], vec![], vec![sizes.series(&["round", "red"], 0.5)]]
        })
        .unwrap();
        for count in 1..3 {
            let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            let expected = format!(
                "# HELP scrapes_total Scrapes.\n# TYPE scrapes_total counter\nscrapes_total {count}\n\
                 # HELP sizes Sizes.\n# TYPE sizes gauge\nsizes{{colour=\"red\",shape=\"round\"}} 0.5\n"
            );
            assert_eq!(page, expected);
        }
        let again = at_scrape(&registry, families, |_| [const { Vec::new() }; 3]);
        assert!(again.is_err(), "the names are registered");
    }
}
