//! [`CertificateMetrics`]: when the client certificates of the process itself end. Registered with
//! [`RequestMetrics`](crate::RequestMetrics), told by `credentials.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use metrics::Family;
use parking_lot::Mutex;
use prometheus::Registry;

const NAME: &str = "icm_client_certificate_expiration_seconds";
const HELP: &str = "When the client certificate of the process ends, in seconds since 1970; of several the one that ends first";

/// The end of one certificate, which counts as long as its credentials are used. Zero: there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct End(Arc<AtomicU64>);

impl End {
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
    pub(crate) fn follow(&self) -> End {
        let end = End::default();
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
        assert_eq!(shown(), None, "nobody has a certificate");
        late.set(Some(2_000_000_000));
        early.set(Some(1_900_000_000));
        assert_eq!(shown(), Some(format!("{NAME} 1900000000")));
        drop(early);
        assert_eq!(shown(), Some(format!("{NAME} 2000000000")));
        late.set(None);
        assert_eq!(shown(), None, "a token took its place");
    }
}
