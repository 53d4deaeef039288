//! Metrics about the process, under the names that dashboards ask any process for: its build, and
//! what it uses, as the kernel counts it, as the Prometheus libraries of other languages publish it.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::Family;
use prometheus::proto::Metric;
use prometheus::{Error, Gauge, Opts, Registry};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::runtime::Handle;

/// Registers what the dashboards read about any process: `process_*`, `go_goroutines` (our live
/// tasks under the name the Kubernetes panels query), `icm_tokio_busy_seconds_total` and
/// `icm_build_info`. Called once, inside the
/// runtime whose tasks it counts.
pub fn register_process_metrics(
    registry: &Registry,
    build: &BuildInfo,
) -> Result<(), prometheus::Error> {
    register_usage(registry)?;
    register_runtime_metrics(registry)?;
    let info = Gauge::with_opts(
        Opts::new("icm_build_info", "Build information of this program. Always 1.")
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

/// The series that pages of metrics repeat outside of the registry.
pub(crate) const START_TIME: &str = "process_start_time_seconds";

/// Registers `process_*`.
fn register_usage(registry: &Registry) -> Result<(), Error> {
    let gauge = |name, help| Family::gauge(name, help, &[]);
    let families = [
        Family::counter(
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            &[],
        )?,
        gauge("process_open_fds", "Number of open file descriptors.")?,
        gauge("process_max_fds", "Maximum number of open file descriptors.")?,
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")?,
        gauge("process_resident_memory_bytes", "Resident memory size in bytes.")?,
        gauge(START_TIME, "Start time of the process since unix epoch in seconds.")?,
        gauge("process_threads", "Number of OS threads in the process.")?,
    ];
    metrics::at_scrape(registry, families, |families| {
        let stat = Stat::of_this_process();
        let values = [
            Some(cpu_seconds()),
            open_files(),
            getrlimit(Resource::Nofile).current.map(float),
            stat.map(|stat| float(stat.virtual_bytes)),
            stat.map(|stat| float(stat.resident_pages * page_size() as u64)),
            start().map(float),
            stat.map(|stat| float(stat.threads)),
        ];
        let series = |(family, value): (&Family, Option<f64>)| -> Vec<Metric> {
            value.into_iter().map(|value| family.series(&[], value)).collect()
        };
        families.iter().zip(values).map(series).collect::<Vec<_>>()
    })
}

/// The start of this process in Unix seconds.
pub(crate) fn start() -> Option<u64> {
    static START: OnceLock<Option<u64>> = OnceLock::new();
    *START.get_or_init(|| {
        let stat = Stat::of_this_process()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(boot.trim().parse::<u64>().ok()? + stat.start_ticks / clock_ticks_per_second())
    })
}

/// Time that all threads of the process were on a CPU. `/proc` has it in hundredths of a second,
/// and a quiet process needs less than that between two scrapes.
fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default().as_secs_f64()
}

fn open_files() -> Option<f64> {
    // Since Linux 6.2 the size of the folder is the number of open files; before, it is 0.
    let size = fs::metadata("/proc/self/fd").ok()?.len();
    // One of those listed is the folder itself, opened to list it.
    let listed = || Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64);
    let count = if size > 0 { Some(size) } else { listed() };
    count.map(float)
}

/// The fields of `/proc/self/stat` that are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    threads: u64,
    /// Since the boot.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn of_this_process() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// `proc_pid_stat(5)`: fields between blanks, of which the second is the name of the program in
    /// parentheses, which may hold both.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The manual counts from 1; the third field is the first after the name.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    fn page() -> impl Fn(&str) -> f64 {
        let registry = Registry::new();
        register_usage(&registry).unwrap();
        let families = registry.gather();
        move |name| {
            let family = families.iter().find(|family| family.name() == name).unwrap();
            let metric = &family.get_metric()[0];
            metric.get_counter().get_value() + metric.get_gauge().get_value()
        }
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_field() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 0 4711 8192 3 99";
        let stat = Stat::parse(&format!("42 (a) 1 (b c) {rest}\n")).unwrap();
        let expected =
            Stat { threads: 17, start_ticks: 4711, virtual_bytes: 8192, resident_pages: 3 };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse("42 (a) S 1 2"), None);
    }

    #[test]
    fn cpu_time_has_fractions_of_a_second() {
        let before = cpu_seconds();
        let shown = page()("process_cpu_seconds_total");
        assert!(before > 0.0 && (before..=cpu_seconds()).contains(&shown), "{before} {shown}");
    }

    #[test]
    fn what_is_shown_changes_with_files_threads_and_memory() {
        let before = page();
        let files: Vec<_> = (0..50).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        let (wait, waiting) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || waiting.recv());
        let memory = vec![1_u8; 64 << 20];
        let after = page();
        drop(wait);
        assert!(thread.join().unwrap().is_err() && files.len() == 50 && memory[1 << 20] == 1);

        let grown = |name| after(name) - before(name);
        assert!(grown("process_open_fds") > 25.0, "{}", grown("process_open_fds"));
        assert!(after("process_open_fds") < after("process_max_fds"));
        assert!(after("process_threads") >= 2.0);
        let bytes = grown("process_resident_memory_bytes");
        assert!(bytes > f64::from(32 << 20), "{bytes}");
        assert!(after("process_virtual_memory_bytes") > after("process_resident_memory_bytes"));
    }

    #[test]
    fn the_start_is_a_moment_ago() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let age = now.saturating_sub(start().unwrap());
        assert!(age < 24 * 3600, "{age} s");
    }
}
