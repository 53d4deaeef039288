//! One run as one JSON line.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use crate::cases::{Case, Load, Pools};
use crate::cluster_cidrs::{self, ClusterCidrs};
use crate::contender::Contender;
use crate::ledger::Ledger;
use crate::turn::Spent;

/// The version of the raw loop: this program's.
pub(crate) const VERSION: &str = concat!("bench-node-ipam ", env!("CARGO_PKG_VERSION"));

/// The result of one run, in the order and under the names of the JSON line. Seconds count from the
/// start of the contender's process, of the raw loop's list, or of the join schedule.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    #[serde(serialize_with = "as_text")]
    pub(crate) case: Case,
    #[serde(serialize_with = "as_text")]
    pub(crate) contender: Contender,
    /// Number of the run, from 1.
    pub(crate) run: usize,
    /// How many Nodes got their CIDR.
    pub(crate) nodes: usize,
    /// Seconds until the clock saw the first assignment.
    pub(crate) seconds_to_first: f64,
    /// Seconds until the clock saw the last assignment.
    pub(crate) seconds_to_all: f64,
    /// Between the two: the time that compares with the raw loop's, which has no start-up.
    pub(crate) seconds_first_to_last: f64,
    /// Median wait of a Node: since it was seen to join, or since the start when it existed before.
    pub(crate) latency_p50_ms: f64,
    /// The wait that 99 % of the Nodes did not exceed.
    pub(crate) latency_p99_ms: f64,
    /// Median of the product's own part of the wait, from the event it received to the PATCH it
    /// sent, as exact as the buckets of its metrics; `None` for other contenders, which have no
    /// such metric.
    pub(crate) own_share_p50_ms: Option<f64>,
    /// 99th percentile of the product's own part of the wait.
    pub(crate) own_share_p99_ms: Option<f64>,
    /// User and system time of the contender, from its start until it was quiet again; none for
    /// the raw loop, which is part of this program.
    pub(crate) cpu_seconds: Option<f64>,
    /// The most memory the contender had resident.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// How often a Node got the CIDR of a live Node.
    pub(crate) duplicates: usize,
    /// How many Nodes have a CIDR of another ClusterCIDR than a naive model gives them; none where
    /// there are no ClusterCIDRs.
    pub(crate) misplaced: Option<usize>,
    /// Output of `--version` of the contender.
    pub(crate) version: String,
    /// The commit of this repository.
    pub(crate) commit: String,
}

/// What identifies a run.
pub(crate) struct Run<'a> {
    /// Case that was measured.
    pub(crate) case: Case,
    /// The contender that was measured.
    pub(crate) contender: Contender,
    /// Number of the run, from 1.
    pub(crate) number: usize,
    /// Version of the contender.
    pub(crate) version: &'a str,
    /// Commit of this repository.
    pub(crate) commit: &'a str,
}

/// Makes the line of a finished run. Nodes seen to join before `start` in a join case (the one that
/// warms the contender up) do not count.
pub(crate) fn line(
    run: &Run<'_>,
    ledger: &Ledger,
    start: Instant,
    spent: Option<Spent>,
) -> anyhow::Result<Line> {
    let times = ledger.nodes().map(|(_, seen)| {
        Ok((seen.added, seen.assigned.with_context(|| format!("{} got no CIDR", seen.name))?))
    });
    let times: Vec<_> = times.collect::<anyhow::Result<_>>()?;
    let line = of_times(run, &times, start, spent);
    Ok(Line { duplicates: ledger.duplicates(), misplaced: misplaced(&run.case, ledger), ..line })
}

/// Makes the line of a run in which each Node joined and was assigned at these times.
pub(crate) fn of_times(
    run: &Run<'_>,
    times: &[(Instant, Instant)],
    start: Instant,
    spent: Option<Spent>,
) -> Line {
    let joining = matches!(run.case.load, Load::Join { .. });
    let (mut moments, mut waits) = (Vec::new(), Vec::new());
    for (added, assigned) in times.iter().filter(|(added, _)| !joining || *added >= start) {
        moments.push(assigned.saturating_duration_since(start));
        waits.push(assigned.saturating_duration_since(if joining { *added } else { start }));
    }
    moments.sort_unstable();
    waits.sort_unstable();
    let (first, last) = (percentile(&moments, 0), percentile(&moments, 100));
    let own_share = spent.as_ref().and_then(|spent| spent.own_share);
    Line {
        case: run.case,
        contender: run.contender,
        run: run.number,
        nodes: moments.len(),
        seconds_to_first: seconds(first),
        seconds_to_all: seconds(last),
        seconds_first_to_last: seconds(last.saturating_sub(first)),
        latency_p50_ms: milliseconds(percentile(&waits, 50)),
        latency_p99_ms: milliseconds(percentile(&waits, 99)),
        own_share_p50_ms: own_share.map(|share| share.p50_ms),
        own_share_p99_ms: own_share.map(|share| share.p99_ms),
        cpu_seconds: spent.as_ref().map(|spent| seconds(spent.usage.cpu)),
        peak_rss_bytes: spent.as_ref().map(|spent| spent.usage.peak_rss_bytes),
        duplicates: 0,
        misplaced: None,
        version: run.version.to_owned(),
        commit: run.commit.to_owned(),
    }
}

fn misplaced(case: &Case, ledger: &Ledger) -> Option<usize> {
    let Pools::ClusterCidrs(objects) = case.pools else { return None };
    let number = |name: &str| name.rsplit_once('-')?.1.parse().ok();
    let placed = ledger.nodes().filter_map(|(_, seen)| {
        Some((cluster_cidrs::labels(number(&seen.name)?, objects), seen.block?))
    });
    Some(ClusterCidrs::new(objects).misplaced(&placed.collect::<Vec<_>>()))
}

/// A line for the eyes.
pub(crate) fn brief(line: &Line) -> String {
    format!(
        "{} {} run {}: first {:.3} s, all {:.3} s, p99 {:.1} ms",
        line.case,
        line.contender,
        line.run,
        line.seconds_to_first,
        line.seconds_to_all,
        line.latency_p99_ms
    )
}

/// The nearest-rank percentile of sorted durations; zero for an empty list.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// Seconds to the microsecond: more digits would only be noise in the line.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn as_text<S: serde::Serializer>(
    value: &impl std::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, uid: usize, cidr: &str) -> String {
        format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"name":"n{uid}","uid":"u{uid}"}},
               "spec":{{"podCIDR":"{cidr}"}}}}}}"#
        )
    }

    fn made(case: &str, start: Instant, events: &[(String, Duration)]) -> anyhow::Result<Line> {
        let mut ledger = Ledger::default();
        for (text, after) in events {
            ledger.observe(&serde_json::from_str(text).unwrap(), start + *after).unwrap();
        }
        let case = case.parse().unwrap();
        let contender = Contender::Product;
        let run = Run { case, contender, number: 1, version: "v", commit: "c" };
        line(&run, &ledger, start + Duration::from_secs(1), None)
    }

    #[test]
    fn existing_nodes_wait_since_the_start_and_joining_nodes_since_they_joined() {
        let start = Instant::now();
        let events = [
            (event("ADDED", 1, ""), Duration::from_millis(1500)),
            (event("MODIFIED", 1, "10.0.0.0/26"), Duration::from_millis(1750)),
        ];
        let waits = |case| made(case, start, &events).unwrap().latency_p99_ms;
        assert!((waits("existing-1") - 750.0).abs() < 1e-6);
        assert!((waits("join-1x1") - 250.0).abs() < 1e-6);
    }

    #[test]
    fn the_node_that_warms_a_join_up_does_not_count() {
        let events = [
            (event("ADDED", 1, "10.0.0.0/26"), Duration::ZERO),
            (event("ADDED", 2, "10.0.1.0/26"), Duration::from_secs(2)),
        ];
        let line = made("join-1x1", Instant::now(), &events).unwrap();
        assert_eq!(line.nodes, 1);
        assert!((line.seconds_to_first - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_run_that_left_a_node_without_a_cidr_has_no_line() {
        let events = [(event("ADDED", 1, ""), Duration::from_secs(2))];
        assert!(made("existing-1", Instant::now(), &events).is_err());
    }

    #[test]
    fn a_percentile_is_one_of_the_values_measured() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let read = |percent| percentile(&sorted, percent).as_millis();
        assert_eq!([read(0), read(50), read(99), read(100)], [1, 100, 198, 200]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
