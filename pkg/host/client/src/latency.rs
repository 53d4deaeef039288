//! The buckets of every histogram of waiting times in this crate.

/// Stock's latency buckets, in seconds, so that dashboards made for stock draw ours.
pub(crate) const LATENCY_BUCKETS: [f64; 12] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
