//! How all crates register metrics. Families that are written when something happens come from
//! [`counter`], [`gauge`] and [`histogram`]; state is read at each scrape, by [`at_scrape`]; series of
//! objects that come and go end with a [`Held`].
//!
//! Scrapes share no state, so concurrent ones do not disturb each other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc, MetricVec, MetricVecBuilder};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

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

/// Metric series that end with the object that they describe, such as a member cluster or a kind learnt at run time. A
/// family keeps each series until it is removed. Code that writes series of an object takes them from a [`Held`]; when
/// the last `Held` of that name is dropped, all of its series are removed. Clones are the same.
#[derive(Clone, Default)]
pub struct SeriesByLabel(Arc<Mutex<HashMap<Arc<str>, Thing>>>);

struct Thing {
    holders: usize,
    series: Arc<Mutex<Written>>,
}

/// The series of one thing. They are remembered, because a family finds those of one label value
/// only by reading out all that it has, which thousands of members that leave at once cannot pay.
type Written = HashMap<SeriesId, Box<dyn Removable>>;

/// A family's descriptor and the values of all labels.
type SeriesId = (u64, Box<[String]>);

/// Any of prometheus' vectors.
trait Removable: Send + Sync {
    fn remove(&self, values: &[String]);
}

impl<B: MetricVecBuilder> Removable for MetricVec<B> {
    fn remove(&self, values: &[String]) {
        // Fails only when somebody else was quicker.
        drop(self.remove_label_values(values));
    }
}

/// A thing whose series are written. Dropped last, it takes them along.
#[must_use = "dropped, the series are removed"]
pub struct Held {
    things: SeriesByLabel,
    name: Arc<str>,
    series: Arc<Mutex<Written>>,
}

impl SeriesByLabel {
    /// Keeps the series of the thing of this name.
    pub fn hold(&self, name: &str) -> Held {
        let name: Arc<str> = name.into();
        let mut things = self.0.lock();
        let thing = things
            .entry(Arc::clone(&name))
            .or_insert_with(|| Thing { holders: 0, series: Arc::default() });
        thing.holders += 1;
        Held { things: self.clone(), name, series: Arc::clone(&thing.series) }
    }
}

impl Held {
    /// The series of these label values; the name of the object is among them. A write after the end
    /// of the `Held` has no effect.
    ///
    /// # Panics
    /// The family has another number of labels.
    pub fn series<B>(&self, family: &MetricVec<B>, values: &[&str]) -> B::M
    where
        B: MetricVecBuilder + 'static,
        MetricVec<B>: Collector,
    {
        let descriptor = family.desc().first().map_or(0, |desc| desc.id);
        let id = (descriptor, values.iter().map(|&value| value.to_owned()).collect());
        let mut written = self.series.lock();
        written.entry(id).or_insert_with(|| Box::new(family.clone()));
        family.with_label_values(values)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Held to the end: who comes meanwhile writes new series.
        let mut things = self.things.0.lock();
        let Some(thing) = things.get_mut(&self.name) else { return };
        thing.holders -= 1;
        if thing.holders == 0 {
            things.remove(&self.name);
            for ((_, values), family) in self.series.lock().drain() {
                family.remove(&values);
            }
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod series_tests;
