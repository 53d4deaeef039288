//! Metrics about the process, under the names that dashboards ask any process for.

use std::sync::OnceLock;

use prometheus::core::Collector as _;
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Opts, PullingGauge, Registry};
use tokio::runtime::Handle;

use crate::BuildInfo;

/// Registers what the dashboards read about any process: `process_*`, `go_goroutines` (our live
/// tasks under the name the Kubernetes panels query) and `icm_build_info`. Called once, inside the
/// runtime whose tasks are to be counted.
pub fn register_process_metrics(
    registry: &Registry,
    build: &BuildInfo,
) -> Result<(), prometheus::Error> {
    registry.register(Box::new(ProcessCollector::for_self()))?;
    registry.register(Box::new(live_tasks()?))?;
    let info = Gauge::with_opts(
        Opts::new("icm_build_info", "What this program was built from. Always 1.")
            .const_label("version", build.version)
            .const_label("commit", build.commit)
            .const_label("rustc", build.rustc)
            .const_label("k8s_compat", build.k8s_compat),
    )?;
    info.set(1.0);
    registry.register(Box::new(info))
}

fn live_tasks() -> Result<PullingGauge, prometheus::Error> {
    let runtime = Handle::try_current().ok();
    PullingGauge::new(
        "go_goroutines",
        "Number of live async tasks; the name is the one Kubernetes dashboards query.",
        Box::new(move || {
            let alive = runtime.as_ref().map_or(0, |handle| handle.metrics().num_alive_tasks());
            f64::from(u32::try_from(alive).unwrap_or(u32::MAX))
        }),
    )
}

/// The process start in Unix seconds, as the scraped page itself says it.
pub(crate) fn process_start(families: &[MetricFamily]) -> Option<i64> {
    let family = families.iter().find(|family| family.name() == START_TIME)?;
    let seconds = family.get_metric().first()?.get_gauge().get_value();
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
    Some(seconds as i64)
}

/// The same without any other metric, which may be many.
pub(crate) fn own_start() -> Option<i64> {
    static START: OnceLock<Option<i64>> = OnceLock::new();
    *START.get_or_init(|| process_start(&ProcessCollector::for_self().collect()))
}

/// Name of the process collector's series.
pub(crate) const START_TIME: &str = "process_start_time_seconds";
