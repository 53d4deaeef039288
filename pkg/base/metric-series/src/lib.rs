//! Metric series of things that come and go: a member cluster, a kind learnt at run time. A family
//! keeps a series for ever once it has been written; here it ends with the last one who writes it.
//!
//! Whoever writes series of one thing holds a [`Held`] of its name; with the last of them every series
//! that has the name in the thing's label is removed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

/// The families that have one label of a thing. Clones are the same.
#[derive(Clone)]
pub struct SeriesByLabel(Arc<Inner>);

struct Inner {
    label: &'static str,
    families: Vec<Box<dyn Family>>,
    /// How many hold each value of the label.
    held: Mutex<HashMap<Arc<str>, usize>>,
}

/// A metric with labels: any of prometheus' vectors.
pub trait Family: Send + Sync {
    /// Removes the series whose label has this value.
    fn remove(&self, label: &str, value: &str);
}

impl<B: MetricVecBuilder> Family for MetricVec<B>
where
    Self: Collector,
{
    fn remove(&self, label: &str, value: &str) {
        for family in self.collect() {
            for series in family.get_metric() {
                let labels: HashMap<&str, &str> =
                    series.get_label().iter().map(|pair| (pair.name(), pair.value())).collect();
                if labels.get(label) == Some(&value) {
                    // Fails only when somebody else was quicker.
                    drop(MetricVec::remove(self, &labels));
                }
            }
        }
    }
}

/// A value of the label whose series are written. Dropped last, it takes them along.
#[must_use = "dropped, the series are removed"]
pub struct Held {
    series: SeriesByLabel,
    value: Arc<str>,
}

impl SeriesByLabel {
    /// The series of these families, which all have this label.
    pub fn new(label: &'static str, families: Vec<Box<dyn Family>>) -> Self {
        Self(Arc::new(Inner { label, families, held: Mutex::default() }))
    }

    /// Keeps the series of this value of the label.
    pub fn hold(&self, value: &str) -> Held {
        let value: Arc<str> = value.into();
        *self.0.held.lock().entry(Arc::clone(&value)).or_default() += 1;
        Held { series: self.clone(), value }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Inner { label, families, held } = &*self.series.0;
        // Held to the end: who comes meanwhile writes new series.
        let mut held = held.lock();
        let Some(holders) = held.get_mut(&self.value) else { return };
        *holders -= 1;
        if *holders == 0 {
            held.remove(&self.value);
            for family in families {
                family.remove(label, &self.value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
