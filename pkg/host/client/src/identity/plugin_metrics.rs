//! [`PluginMetrics`]: the life of what exec plugins gave, under client-go's names. Registered with
//! [`RequestMetrics`](crate::RequestMetrics), told by `plugin_runs.rs`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::Family;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, Registry};
use tokio::time::Instant;

/// client-go's: ten minutes to four years.
const AGES: [f64; 11] = [
    600.0,
    1800.0,
    3600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// The end of what one plugin gave, if it has one; it counts as long as the plugin is there.
pub(crate) type End = Arc<MaybeEnd>;
type MaybeEnd = Mutex<Option<Instant>>;

/// The metrics of all plugins of the process; clones share them.
#[derive(Clone)]
pub(crate) struct PluginMetrics {
    ends: Arc<Mutex<Vec<Weak<MaybeEnd>>>>,
    rotation_age: Histogram,
}

impl PluginMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "[ALPHA] How long certificates of exec plugins were in use before the next one";
        let ages = HistogramOpts::new("rest_client_exec_plugin_certificate_rotation_age", help);
        let rotation_age = Histogram::with_opts(ages.buckets(AGES.to_vec()))?;
        let rotation_age = metrics::register(registry, rotation_age)?;
        let metrics = Self { ends: Arc::default(), rotation_age };
        let help = "[ALPHA] Shortest remaining life of what exec plugins gave, below 0 when it is over; +Inf without";
        let shortest = Family::gauge("rest_client_exec_plugin_ttl_seconds", help, &[])?;
        let shown = metrics.clone();
        metrics::at_scrape(registry, [shortest], move |[family]| {
            [vec![family.series(&[], shown.shortest())]]
        })?;
        Ok(metrics)
    }

    /// One more plugin.
    pub(crate) fn follow(&self) -> End {
        let end = End::default();
        let mut ends = self.ends.lock();
        ends.retain(|old| old.strong_count() > 0);
        ends.push(Arc::downgrade(&end));
        end
    }

    /// A certificate was replaced by another after this time.
    pub(crate) fn rotated(&self, after: Duration) {
        self.rotation_age.observe(after.as_secs_f64());
    }

    fn shortest(&self) -> f64 {
        let now = Instant::now();
        let ends: Vec<_> = self.ends.lock().iter().filter_map(Weak::upgrade).collect();
        let left = ends.iter().filter_map(|end| *end.lock()).map(|end| {
            let over = now.saturating_duration_since(end).as_secs_f64();
            end.saturating_duration_since(now).as_secs_f64() - over
        });
        left.fold(f64::INFINITY, f64::min)
    }
}
