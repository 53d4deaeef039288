//! How all crates register metrics. Families that are written when something happens come from
//! [`counter`], [`gauge`] and [`histogram`]; state is read at each scrape, by [`at_scrape`]; series of
//! objects that come and go end with a [`Held`].

mod scraped;
mod series_by_label;

use prometheus::core::Collector;
use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

pub use scraped::{Family, at_scrape};
pub use series_by_label::{Held, SeriesByLabel};

/// Registers a counter for each combination of label values.
///
/// # Errors
/// The name is registered already, or it or a label is not valid.
pub fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, Error> {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

/// Registers a gauge for each combination of label values.
///
/// # Errors
/// The name is registered already, or it or a label is not valid.
pub fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, Error> {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

/// Registers a histogram for each combination of label values.
///
/// # Errors
/// The name is registered already, or it, a label or the buckets are not valid.
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
///
/// # Errors
/// The name is registered already.
pub fn register<C: Collector + Clone + 'static>(
    registry: &Registry,
    family: C,
) -> Result<C, Error> {
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}
