//! What a process cost so far, read from `/proc` while it is still alive.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Clock ticks per second in `/proc/<pid>/stat`. Linux reports 100 on every architecture that runs
/// Kubernetes, whatever the kernel's own tick is.
const TICKS_PER_SECOND: u32 = 100;
/// A process is quiet when it used less than `QUIET_SHARE` of one core over `WINDOW`. An idle
/// kube-apiserver uses 2 to 4 %.
const QUIET_SHARE: f64 = 0.10;
const WINDOW: Duration = Duration::from_millis(400);

/// CPU time and memory of one process.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// User and system time since its start.
    pub cpu: Duration,
    /// The most memory it ever had resident.
    pub peak_rss_bytes: u64,
}

/// Reads the usage of a live process.
pub fn of(pid: u32) -> anyhow::Result<Usage> {
    let status = read(pid, "status")?;
    let kibibytes: u64 = status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok()
        })
        .with_context(|| format!("process {pid} reports no peak memory"))?;
    Ok(Usage { cpu: cpu_of(pid)?, peak_rss_bytes: kibibytes * 1024 })
}

/// CPU time of a live process. The sum over its threads counts nanoseconds but misses threads that
/// ended, the process-wide figure counts them in steps of 10 ms: the larger one is nearer.
fn cpu_of(pid: u32) -> anyhow::Result<Duration> {
    let ticks = ticks_in(&read(pid, "stat")?).with_context(|| format!("process {pid}"))?;
    let mut threads = Duration::ZERO;
    for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that ends meanwhile, or a kernel without schedstat: the ticks stand.
        let Ok(text) = std::fs::read_to_string(entry?.path().join("schedstat")) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
        threads += Duration::from_nanos(nanoseconds.unwrap_or(0));
    }
    Ok(threads.max(Duration::from_secs(1) / TICKS_PER_SECOND * ticks))
}

/// utime + stime of a `stat` line: fields 14 and 15, counted behind the command name, which may
/// itself hold blanks and parentheses.
fn ticks_in(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// Waits until all these processes together are quiet; false when `limit` passed before. A process
/// that ended is quiet.
pub async fn quiet(pids: &[u32], limit: Duration) -> bool {
    let used = || pids.iter().filter_map(|pid| cpu_of(*pid).ok()).sum::<Duration>();
    let deadline = Instant::now() + limit;
    let (mut since, mut before) = (Instant::now(), used());
    while Instant::now() < deadline {
        tokio::time::sleep(WINDOW).await;
        let now = used();
        let share = now.saturating_sub(before).as_secs_f64() / since.elapsed().as_secs_f64();
        if share < QUIET_SHARE {
            return true;
        }
        (since, before) = (Instant::now(), now);
    }
    false
}

fn read(pid: u32, file: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}"))
        .with_context(|| format!("cannot read {file} of process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_a_command_name_with_blanks_and_parentheses() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 124 0 0 0 31 11 0 0 20 0 1 0 132535";
        assert_eq!(ticks_in(stat), Some(42));
    }

    #[test]
    fn the_cpu_time_of_this_process_grows_by_what_it_works() {
        let pid = std::process::id();
        let (before, start) = (of(pid).unwrap().cpu, Instant::now());
        while of(pid).unwrap().cpu < before + Duration::from_millis(30) {
            assert!(start.elapsed() < Duration::from_secs(30));
        }
    }
}
