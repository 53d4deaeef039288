//! Metrics about the process, under the names that dashboards ask any process for.

use metrics::Family;
use prometheus::{Gauge, Opts, Registry};
use serde_json::json;
use tokio::runtime::Handle;

use crate::process_usage;

/// Registers what the dashboards read about any process: `process_*`, `go_goroutines` (our live
/// tasks under the name the Kubernetes panels query), `icm_tokio_busy_seconds_total` and
/// `icm_build_info`. Called once, inside the
/// runtime whose tasks it counts.
pub fn register_process_metrics(
    registry: &Registry,
    build: &BuildInfo,
) -> Result<(), prometheus::Error> {
    process_usage::register(registry)?;
    register_runtime_metrics(registry)?;
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

/// Live tasks, and how long the workers of the runtime were at work: when that grows as fast as the
/// clock for each worker, they are the bottleneck.
fn register_runtime_metrics(registry: &Registry) -> Result<(), prometheus::Error> {
    let families = [
        Family::gauge(
            "go_goroutines",
            "Number of live async tasks; the name is the one Kubernetes dashboards query.",
            &[],
        )?,
        Family::counter(
            "icm_tokio_busy_seconds_total",
            "Time that the workers of the async runtime spent on tasks, all workers added up.",
            &[],
        )?,
    ];
    let runtime = Handle::try_current().ok();
    metrics::at_scrape(registry, families, move |[tasks, busy]| {
        let (mut alive, mut busy_seconds) = (0, 0.0);
        if let Some(runtime) = &runtime {
            let metrics = runtime.metrics();
            alive = metrics.num_alive_tasks();
            let of_worker = |worker| metrics.worker_total_busy_duration(worker).as_secs_f64();
            busy_seconds = (0..metrics.num_workers()).map(of_worker).sum();
        }
        let alive = f64::from(u32::try_from(alive).unwrap_or(u32::MAX));
        [vec![tasks.series(&[], alive)], vec![busy.series(&[], busy_seconds)]]
    })
}

/// Facts about the build; `cmd` fills them from its build script.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo<'a> {
    /// Version to report, without a leading `v`, such as `0.1.0` or `0.1.0-custom`.
    pub version: &'a str,
    /// Commit the program was built from, or `unknown`.
    pub commit: &'static str,
    /// The version of the compiler, such as `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub rustc: &'static str,
    /// Range of Kubernetes versions it works with, such as `1.31-1.37`.
    pub k8s_compat: &'static str,
}

impl BuildInfo<'_> {
    /// The body of `/version`: the field names of Kubernetes' own version object where we have the
    /// fact, so that tools which read a component's version read ours.
    pub(crate) fn to_json(self) -> String {
        let mut numbers = self.version.split('.');
        json!({
            "major": numbers.next().unwrap_or_default(),
            "minor": numbers.next().unwrap_or_default(),
            "gitVersion": format!("v{}", self.version),
            "gitCommit": self.commit,
            "compiler": self.rustc,
            "platform": kube_api::go::platform(),
            "kubernetesCompatibility": self.k8s_compat,
        })
        .to_string()
    }
}
