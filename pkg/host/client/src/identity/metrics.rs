//! Metrics of credentials: [`CertificateMetrics`], the end of the process's own client certificates, and
//! [`PluginMetrics`], the life of the credentials of exec plugins under client-go's names. Registered
//! with [`RequestMetrics`](crate::RequestMetrics), fed by `credentials.rs` and `plugin.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::Family;
use parking_lot::Mutex;
use prometheus::{Histogram, HistogramOpts, Registry};
use tokio::time::Instant;

const NAME: &str = "icm_client_certificate_expiration_seconds";
const HELP: &str = "Time when the client certificate of the process expires, in seconds since \
    1970; the earliest if there are several";

/// The end of one certificate, shown while its credentials are used. Zero without a certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateEnd(Arc<AtomicU64>);

impl CertificateEnd {
    /// In seconds since 1970.
    pub(crate) fn set(&self, end: Option<u64>) {
        self.0.store(end.unwrap_or_default(), Ordering::Relaxed);
    }
}

/// The ends of all certificates of the process; clones share them.
#[derive(Clone, Default)]
pub(crate) struct CertificateMetrics(Arc<Mutex<Vec<Weak<AtomicU64>>>>);

impl CertificateMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let ends = Self::default();
        let shown = ends.clone();
        // Without a certificate, as with a token, it is not shown.
        metrics::at_scrape(registry, [Family::gauge(NAME, HELP, &[])?], move |[family]| {
            [shown.first().map(|end| family.series(&[], end)).into_iter().collect()]
        })?;
        Ok(ends)
    }

    /// One more certificate.
    pub(crate) fn follow(&self) -> CertificateEnd {
        let end = CertificateEnd::default();
        let mut ends = self.0.lock();
        ends.retain(|old| old.strong_count() > 0);
        ends.push(Arc::downgrade(&end.0));
        end
    }

    #[expect(clippy::cast_precision_loss, reason = "the year 285,000,000 is far away")]
    fn first(&self) -> Option<f64> {
        let ends: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let ends = ends.iter().map(|end| end.load(Ordering::Relaxed)).filter(|end| *end > 0);
        ends.min().map(|end| end as f64)
    }
}

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
pub(crate) type PluginEnd = Arc<MaybeEnd>;
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
        let help = "[ALPHA] Shortest remaining lifetime of certificates of exec plugins, below 0 \
            when expired; +Inf without such a certificate";
        let shortest = Family::gauge("rest_client_exec_plugin_ttl_seconds", help, &[])?;
        let shown = metrics.clone();
        metrics::at_scrape(registry, [shortest], move |[family]| {
            [vec![family.series(&[], shown.shortest())]]
        })?;
        Ok(metrics)
    }

    /// One more plugin.
    pub(crate) fn follow(&self) -> PluginEnd {
        let end = PluginEnd::default();
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

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn the_certificate_that_ends_first_is_shown_as_long_as_it_is_used() {
        let registry = Registry::new();
        let metrics = CertificateMetrics::new(&registry).unwrap();
        let shown = || {
            let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            text.lines().find(|line| line.starts_with(NAME)).map(str::to_owned)
        };
        let (late, early) = (metrics.follow(), metrics.follow());
        assert_eq!(shown(), None, "no client has a certificate");
        late.set(Some(2_000_000_000));
        early.set(Some(1_900_000_000));
        assert_eq!(shown(), Some(format!("{NAME} 1900000000")));
        drop(early);
        assert_eq!(shown(), Some(format!("{NAME} 2000000000")));
        late.set(None);
        assert_eq!(shown(), None, "a token took its place");
    }
}
