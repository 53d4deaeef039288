//! One run: start, settle, measure, with an outage half-way.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;
use tests::{Process, programs, usage};
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::management::{CHECKS, Management};
use crate::options::Options;
use crate::report::Report;

const OUTAGE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);
const SETTLES_WITHIN: Duration = Duration::from_secs(300);
/// Periods of all members that a process without connections is watched for.
const UNCONNECTED: Duration = Duration::from_secs(25);

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Report> {
    programs::product();
    let fleet = Fleet::start(options).await?;
    let management = Management::start().await?;
    let idle = launch(&management, &[]);
    sleep(Duration::from_secs(5)).await;
    let rss_idle_bytes = usage::of(idle.pid())?.peak_rss_bytes;
    drop(idle);
    eprintln!("making {} members", options.members);
    management.populate(&fleet, options.members).await?;
    management.watch();
    let rss_unconnected_bytes = unconnected(&fleet, &management, options).await?;
    let config = format!("--cluster-health-checks-config={CHECKS}");
    let manager = if options.checks > 0 {
        management.make_checks(options.checks).await?;
        launch(&management, &[&config])
    } else {
        launch(&management, &[])
    };
    let (first_round, first_results) = settle(&fleet, &management, options).await?;
    eprintln!("measuring for {:?}", options.length);
    fleet.ledger.begin();
    let counted = Counted::of(&manager).await;
    let (before, handshakes) =
        (usage::of(manager.pid())?, fleet.handshakes.load(Ordering::Relaxed));
    let check_requests = fleet.check_requests.load(Ordering::Relaxed);
    let begin = Instant::now();
    sleep(options.length / 2).await;
    // Those with an outage wait for nothing that is measured of the healthy.
    let outage_max = outage(&fleet, &management, options, true).await;
    sleep(OUTAGE).await;
    // A probe that comes between the mark and the end of the outage would count as one that found the recovery.
    fleet.outage.store(false, Ordering::Relaxed);
    fleet.ledger.mark();
    let recovery_max = outage(&fleet, &management, options, false).await;
    let recovered = (0..options.outage()).filter_map(|member| {
        let probed = fleet.ledger.first_since_mark(member)?;
        Some(management.published(member)?.since.saturating_duration_since(probed))
    });
    let recovery_after_probe_max = recovered.max();
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
        affected: options.outage(),
        healthy_wait_max: healthy.last().copied().unwrap_or_default(),
        healthy_wait_p99: healthy.get(p99).copied().unwrap_or_default(),
        silent_wait_max: silent.last().copied().unwrap_or_default(),
        first_round,
        first_results,
        late_probes: counted.late,
        transitions: counted.transitions,
        outage_max,
        recovery_max,
        recovery_after_probe_max,
        cores: after.cpu.saturating_sub(before.cpu).as_secs_f64() / length.as_secs_f64(),
        rss_bytes: after.peak_rss_bytes,
        rss_idle_bytes,
        rss_unconnected_bytes,
        writes: counted.writes,
        scrape,
        handshakes: fleet.handshakes.load(Ordering::Relaxed) - handshakes,
        checks: options.checks,
        check_runs: counted.check_runs,
        check_runs_unpassed: counted.check_runs_unpassed,
        check_runs_dropped: counted.check_runs_dropped,
        check_requests: fleet.check_requests.load(Ordering::Relaxed) - check_requests,
        length,
    })
}

fn launch(management: &Management, arguments: &[&str]) -> Process {
    // As kubeadm starts it. Tokens also cost the API server less than certificates: it verifies a certificate again for
    // each request.
    Process::with_kubeconfig(&management.plane.manager_kubeconfig())
        .args(["--controllers=cluster-health", "--leader-elect=false"])
        .args(["--use-service-account-credentials=true"])
        .args(arguments.iter().copied())
        .start()
}

/// Peak memory of a process that knows all members, reaches none of them and writes nothing.
async fn unconnected(
    fleet: &Fleet,
    management: &Management,
    options: &Options,
) -> anyhow::Result<u64> {
    fleet.muted.store(true, Ordering::Relaxed);
    let manager = launch(management, &["--cluster-health-audit=true"]);
    probed(fleet, options).await?;
    sleep(UNCONNECTED).await;
    let bytes = usage::of(manager.pid())?.peak_rss_bytes;
    drop(manager);
    fleet.muted.store(false, Ordering::Relaxed);
    fleet.ledger.forget();
    Ok(bytes)
}

/// How long it takes until every member is probed.
async fn probed(fleet: &Fleet, options: &Options) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    while fleet.ledger.reached(options.members) < options.members as usize {
        if begin.elapsed() > SETTLES_WITHIN {
            let reached = fleet.ledger.reached(options.members);
            bail!("only {reached} of {} members were ever probed", options.members);
        }
        sleep(TICK).await;
    }
    Ok(begin.elapsed())
}

/// How long it took until every member was probed, and until every object told of its member.
async fn settle(
    fleet: &Fleet,
    management: &Management,
    options: &Options,
) -> anyhow::Result<(Duration, Duration)> {
    let begin = Instant::now();
    let first_round = probed(fleet, options).await?;
    eprintln!("all members were probed within {first_round:?} of the start");
    let last = loop {
        if let Some(last) = management.last_of(options.members) {
            break last;
        }
        if begin.elapsed() > SETTLES_WITHIN {
            bail!("only {} objects tell of their members", management.told());
        }
        sleep(TICK).await;
    };
    let first_results = last.saturating_duration_since(begin);
    eprintln!("all first results were published within {first_results:?} of the start");
    sleep(Duration::from_secs(30)).await;
    Ok((first_round, first_results))
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
    check_runs: f64,
    check_runs_unpassed: f64,
    check_runs_dropped: f64,
}

impl Counted {
    async fn of(manager: &Process) -> Self {
        let metrics = manager.metrics().await;
        let sum = |name: &str, labels: &[_]| metrics.value(name, labels).unwrap_or_default();
        let lag = "clusterhealth_schedule_lag_seconds";
        let in_time = sum(&format!("{lag}_bucket"), &[("le", "1")]);
        let runs = sum("clusterhealth_checks_total", &[]);
        Self {
            writes: sum("clusterhealth_status_writes_total", &[]),
            transitions: sum("clusterhealth_cluster_transitions_total", &[]),
            late: sum(&format!("{lag}_count"), &[]) - in_time,
            check_runs: runs,
            check_runs_unpassed: runs - sum("clusterhealth_checks_total", &[("outcome", "passed")]),
            check_runs_dropped: sum("clusterhealth_checks_dropped_total", &[]),
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
            check_runs: self.check_runs - before.check_runs,
            check_runs_unpassed: self.check_runs_unpassed - before.check_runs_unpassed,
            check_runs_dropped: self.check_runs_dropped - before.check_runs_dropped,
        }
    }
}
