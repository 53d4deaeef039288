//! One run: start, settle, measure, with an outage half-way.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use tests::{Process, programs, usage};
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::management::Management;
use crate::options::Options;

/// The period, a tenth of it for jitter, and a second.
const HEALTHY_WAIT: Duration = Duration::from_secs(12);
/// A period, two confirmations and a timeout, all with jitter, and two seconds for writes.
const OUTAGE_TOLD: Duration = Duration::from_secs(38);
const OUTAGE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);
const SETTLES_WITHIN: Duration = Duration::from_secs(300);

/// What was measured.
pub(crate) struct Report {
    members: u32,
    silent: u32,
    healthy_wait_max: Duration,
    healthy_wait_p99: Duration,
    silent_wait_max: Duration,
    down_told_max: Option<Duration>,
    up_told_max: Option<Duration>,
    cores: f64,
    rss_bytes: u64,
    rss_idle_bytes: u64,
    writes: f64,
    handshakes: u64,
    length: Duration,
}

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
    settle(&fleet, options).await?;
    eprintln!("measuring for {:?}", options.length);
    fleet.ledger.begin();
    let (before, handshakes) =
        (usage::of(manager.pid())?, fleet.handshakes.load(Ordering::Relaxed));
    let (begin, writes) = (Instant::now(), writes(&manager).await);
    sleep(options.length / 2).await;
    // Those with an outage wait for nothing that is measured of the healthy.
    let down_told_max = outage(&fleet, &management, options, true).await;
    sleep(OUTAGE).await;
    let up_told_max = outage(&fleet, &management, options, false).await;
    sleep((begin + options.length).saturating_duration_since(Instant::now())).await;
    let (length, after) = (begin.elapsed(), usage::of(manager.pid())?);
    let healthy = fleet.ledger.waits(options.outage()..options.members - options.silent());
    let silent = fleet.ledger.waits(options.members - options.silent()..options.members);
    let p99 = healthy.len().saturating_sub(1) * 99 / 100;
    Ok(Report {
        members: options.members,
        silent: options.silent(),
        healthy_wait_max: healthy.last().copied().unwrap_or_default(),
        healthy_wait_p99: healthy.get(p99).copied().unwrap_or_default(),
        silent_wait_max: silent.last().copied().unwrap_or_default(),
        down_told_max,
        up_told_max,
        cores: after.cpu.saturating_sub(before.cpu).as_secs_f64() / length.as_secs_f64(),
        rss_bytes: after.peak_rss_bytes,
        rss_idle_bytes,
        writes: self::writes(&manager).await - writes,
        handshakes: fleet.handshakes.load(Ordering::Relaxed) - handshakes,
        length,
    })
}

fn launch(management: &Management) -> Process {
    Process::with_kubeconfig(&management.plane.admin_kubeconfig())
        .args(["--controllers=cluster-health", "--leader-elect=false"])
        .start()
}

async fn settle(fleet: &Fleet, options: &Options) -> anyhow::Result<()> {
    let begin = Instant::now();
    while fleet.ledger.reached(options.members) < options.members as usize {
        if begin.elapsed() > SETTLES_WITHIN {
            let reached = fleet.ledger.reached(options.members);
            bail!("only {reached} of {} members were ever probed", options.members);
        }
        sleep(TICK).await;
    }
    eprintln!("all members were probed within {:?} of the start", begin.elapsed());
    // First writes, first connections.
    sleep(Duration::from_secs(30)).await;
    Ok(())
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
            match management.told(member) {
                Some(told) if told.ready == wanted => {
                    last = last.max(told.since.saturating_duration_since(begin));
                    break;
                }
                _ if begin.elapsed() > OUTAGE => return None,
                _ => sleep(TICK).await,
            }
        }
    }
    Some(last)
}

async fn writes(manager: &Process) -> f64 {
    manager.metric("clusterhealth_status_writes_total", &[]).await.unwrap_or_default()
}

impl Report {
    fn bytes_per_member(&self) -> u64 {
        self.rss_bytes.saturating_sub(self.rss_idle_bytes) / u64::from(self.members)
    }

    pub(crate) fn json(&self) -> String {
        let seconds = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
        json!({
            "members": self.members,
            "silent": self.silent,
            "length_seconds": seconds(self.length),
            "healthy_wait_max_seconds": seconds(self.healthy_wait_max),
            "healthy_wait_p99_seconds": seconds(self.healthy_wait_p99),
            "silent_wait_max_seconds": seconds(self.silent_wait_max),
            "outage_told_after_max_seconds": self.down_told_max.map(seconds),
            "recovery_told_after_max_seconds": self.up_told_max.map(seconds),
            "cpu_cores": (self.cores * 1000.0).round() / 1000.0,
            "peak_rss_mib": self.rss_bytes / (1024 * 1024),
            "rss_per_member_kib": self.bytes_per_member() / 1024,
            "status_writes": self.writes,
            "tls_handshakes": self.handshakes,
        })
        .to_string()
    }

    /// Which targets were missed.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.healthy_wait_max > HEALTHY_WAIT {
            faults.push(format!("a healthy member waited {:?}", self.healthy_wait_max));
        }
        if self.silent_wait_max > HEALTHY_WAIT {
            faults.push(format!("a silent member waited {:?}", self.silent_wait_max));
        }
        if self.down_told_max.is_none_or(|time| time > OUTAGE_TOLD) {
            faults.push(format!("an outage was told after {:?}", self.down_told_max));
        }
        if self.up_told_max.is_none_or(|time| time > HEALTHY_WAIT + Duration::from_secs(5)) {
            faults.push(format!("a recovery was told after {:?}", self.up_told_max));
        }
        faults
    }
}
