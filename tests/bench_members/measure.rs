//! One run: start, settle, measure, with an outage half-way.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;
use tests::{Process, programs, usage};
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::management::Management;
use crate::options::Options;
use crate::report::Report;

const OUTAGE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);
const SETTLES_WITHIN: Duration = Duration::from_secs(300);

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Report> {
    programs::product();
    let fleet = Fleet::start(options).await?;
    let management = Management::start().await?;
    let idle = launch(&management);
    sleep(Duration::from_secs(5)).await;
    let rss_idle_bytes = usage::of(idle.pid())?.peak_rss_bytes;
    drop(idle);
    eprintln!("making {} members", options.members);
    management.populate(&fleet, options.members).await?;
    management.watch();
    let manager = launch(&management);
    let first_round = settle(&fleet, options).await?;
    eprintln!("measuring for {:?}", options.length);
    fleet.ledger.begin();
    let counted = Counted::of(&manager).await;
    let (before, handshakes) =
        (usage::of(manager.pid())?, fleet.handshakes.load(Ordering::Relaxed));
    let begin = Instant::now();
    sleep(options.length / 2).await;
    // Those with an outage wait for nothing that is measured of the healthy.
    let outage_max = outage(&fleet, &management, options, true).await;
    sleep(OUTAGE).await;
    let recovery_max = outage(&fleet, &management, options, false).await;
    sleep((begin + options.length).saturating_duration_since(Instant::now())).await;
    let (length, after) = (begin.elapsed(), usage::of(manager.pid())?);
    let begun_scrape = Instant::now();
    let last = Counted::of(&manager).await;
    let scrape = begun_scrape.elapsed();
    let counted = last - counted;
    let healthy = fleet.ledger.waits(options.outage()..options.members - options.silent());
    let silent = fleet.ledger.waits(options.members - options.silent()..options.members);
    let p99 = healthy.len().saturating_sub(1) * 99 / 100;
    Ok(Report {
        members: options.members,
        silent: options.silent(),
        healthy_wait_max: healthy.last().copied().unwrap_or_default(),
        healthy_wait_p99: healthy.get(p99).copied().unwrap_or_default(),
        silent_wait_max: silent.last().copied().unwrap_or_default(),
        first_round,
        late_probes: counted.late,
        transitions: counted.transitions,
        outage_max,
        recovery_max,
        cores: after.cpu.saturating_sub(before.cpu).as_secs_f64() / length.as_secs_f64(),
        rss_bytes: after.peak_rss_bytes,
        rss_idle_bytes,
        writes: counted.writes,
        scrape,
        handshakes: fleet.handshakes.load(Ordering::Relaxed) - handshakes,
        length,
    })
}

fn launch(management: &Management) -> Process {
    Process::with_kubeconfig(&management.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health", "--leader-elect=false"])
        .start()
}

/// How long it took until every member was probed.
async fn settle(fleet: &Fleet, options: &Options) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    while fleet.ledger.reached(options.members) < options.members as usize {
        if begin.elapsed() > SETTLES_WITHIN {
            let reached = fleet.ledger.reached(options.members);
            bail!("only {reached} of {} members were ever probed", options.members);
        }
        sleep(TICK).await;
    }
    let first_round = begin.elapsed();
    eprintln!("all members were probed within {first_round:?} of the start");
    // First writes, at 50 in a second, and first connections.
    sleep(Duration::from_secs(30) + Duration::from_millis(20) * options.members).await;
    Ok(first_round)
}

/// Begins or ends the outage; how long it takes until the last object tells of it. `None` when one
/// does not within a minute.
async fn outage(
    fleet: &Fleet,
    management: &Management,
    options: &Options,
    down: bool,
) -> Option<Duration> {
    let (begin, wanted) = (Instant::now(), if down { "False" } else { "True" });
    fleet.outage.store(down, Ordering::Relaxed);
    let mut last = Duration::ZERO;
    for member in 0..options.outage() {
        loop {
            match management.published(member) {
                Some(published) if published.ready == wanted => {
                    last = last.max(published.since.saturating_duration_since(begin));
                    break;
                }
                _ if begin.elapsed() > OUTAGE => return None,
                _ => sleep(TICK).await,
            }
        }
    }
    Some(last)
}

/// Counts from the metrics of the product.
struct Counted {
    writes: f64,
    transitions: f64,
    /// Probes that began more than a second after their time.
    late: f64,
}

impl Counted {
    async fn of(manager: &Process) -> Self {
        let metrics = manager.metrics().await;
        let sum = |name: &str, labels: &[_]| metrics.value(name, labels).unwrap_or_default();
        let lag = "clusterhealth_schedule_lag_seconds";
        let in_time = sum(&format!("{lag}_bucket"), &[("le", "1")]);
        Self {
            writes: sum("clusterhealth_status_writes_total", &[]),
            transitions: sum("clusterhealth_cluster_transitions_total", &[]),
            late: sum(&format!("{lag}_count"), &[]) - in_time,
        }
    }
}

impl std::ops::Sub for Counted {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            writes: self.writes - before.writes,
            transitions: self.transitions - before.transitions,
            late: self.late - before.late,
        }
    }
}
