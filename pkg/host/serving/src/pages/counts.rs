//! How many metrics there are, under the names of Kubernetes' components: `registered_metrics_total` and
//! `disabled_metrics_total`. Counted at each scrape, for families come and go with what they are about.

use std::collections::BTreeMap;

use prometheus::core::Collector as _;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, Opts};

use super::Exposition;

/// By which component-base labels its own; nothing of ours is deprecated.
const LABELS: [&str; 2] = ["stability_level", "deprecated_version"];

/// Both families, these two not counted.
pub(super) fn of(families: &[MetricFamily], exposition: &Exposition) -> Vec<MetricFamily> {
    let mut levels: BTreeMap<&str, u64> = BTreeMap::new();
    for family in families {
        *levels.entry(stability(family.help())).or_default() += 1;
    }
    let help =
        "[BETA] Metrics that are registered, by the stability that their help text begins with";
    let registered = IntCounterVec::new(Opts::new("registered_metrics_total", help), &LABELS);
    let help = "[BETA] Metrics that --disabled-metrics names";
    let disabled = IntCounter::new("disabled_metrics_total", help);
    let (Ok(registered), Ok(disabled)) = (registered, disabled) else { return Vec::new() };
    for (level, count) in levels {
        registered.with_label_values(&[level, ""]).inc_by(count);
    }
    disabled.inc_by(u64::try_from(exposition.disabled.len()).unwrap_or(u64::MAX));
    [registered.collect(), disabled.collect()].concat()
}

/// `[ALPHA] Text` is of level `ALPHA`; ours have no level.
fn stability(help: &str) -> &str {
    let level = help.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    level.map_or("", |(level, _)| level)
}
