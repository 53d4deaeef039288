//! [`SeriesByLabel`]: metric series that end with the object they describe, such as a member cluster or
//! a kind learnt at run time. A family keeps each series until it is removed. Code that writes
//! series of an object takes them from a [`Held`]; when the last `Held` of that name is dropped, all
//! of its series are removed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

/// The things of one label. Clones are the same.
#[derive(Clone, Default)]
pub struct SeriesByLabel(Arc<Mutex<HashMap<Arc<str>, Thing>>>);

struct Thing {
    holders: usize,
    series: Arc<Mutex<Written>>,
}

/// The series of one thing. They are remembered, because a family finds those of one label value
/// only by reading out all that it has, which thousands of members that leave at once cannot pay.
type Written = HashMap<SeriesId, Box<dyn Family>>;

/// A family's descriptor and the values of all labels.
type SeriesId = (u64, Box<[String]>);

/// Any of prometheus' vectors.
trait Family: Send + Sync {
    fn remove(&self, values: &[String]);
}

impl<B: MetricVecBuilder> Family for MetricVec<B> {
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
