//! [`Row`]: one cluster on the debug page, and the rows as a table for people.

use std::collections::BTreeMap;
use std::iter::once;
use std::time::{Duration, Instant};

use health::{CheckReport, CheckStatus, Endpoints, Lifetime, Moment, explain};
use manager::command;
use serde::Serialize;

use crate::engine::cluster_registry::{ClusterRegistry, HeldBack, Known};
use crate::engine::member_cluster::{MemberCluster, MemberState};

/// One cluster. Nothing in it comes from a credential but its end (`rule:secrets-are-never-shown`).
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) flavour: &'static str,
    pub(super) cluster: String,
    uid: String,
    pub(super) published: &'static str,
    /// The message of its condition.
    message: String,
    pub(super) last_result: Option<&'static str>,
    pub(super) code: Option<String>,
    pub(super) last_probe: Option<String>,
    pub(super) took_seconds: Option<f64>,
    pub(super) failures: u32,
    successes: u32,
    pub(super) next_probe_in_seconds: Option<f64>,
    pub(super) doing: &'static str,
    flapping: bool,
    pub(super) write_waits_seconds: Option<f64>,
    available_1h: Option<f64>,
    pub(super) available_24h: Option<f64>,
    available_28d: Option<f64>,
    /// Equal to `available_28d`, for one release.
    available_30d: Option<f64>,
    /// From when on the hour and the day count: when the cluster came to this process.
    available_since: String,
    endpoints: u8,
    endpoints_down: u8,
    credential_ends: Option<String>,
    serving_certificate_ends: Option<String>,
    tls_checks_waived: Vec<&'static str>,
    /// The checks that have a status, by name.
    pub(super) checks: BTreeMap<Box<str>, &'static str>,
    /// In an audit, and there while it differs from what would be published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stored: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differs_for_seconds: Option<f64>,
    /// The replica that has it, with several shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
}

impl Row {
    /// The row of a cluster that this replica does not probe; its state is unknown here.
    pub(super) fn unprobed(flavour: &'static str, known: &Known, owner: Option<String>) -> Self {
        let cluster = known.cluster();
        let row = Self {
            flavour,
            cluster: cluster.key.to_string(),
            uid: cluster.uid.to_string(),
            published: NOTHING,
            doing: "elsewhere",
            ..Self::default()
        };
        match known {
            Known::HeldBack(HeldBack { code, why, .. }) => Self {
                message: why.to_string(),
                code: Some(code.to_string()),
                doing: "held back",
                ..row
            },
            _ => Self { owner, ..row },
        }
    }

    pub(super) fn of(member: &MemberCluster, clusters: &ClusterRegistry, now: &Moment) -> Self {
        let write_waits = clusters.writer.age(&member.cluster.uid, now.monotonic);
        member.view(|it| {
            let (health, last) = (&it.member, it.member.last());
            let ratios = health.availability(*now);
            let until = |at: Instant| at.saturating_duration_since(now.monotonic);
            let since = |at: Instant| seconds(now.monotonic.saturating_duration_since(at));
            let contact = it.contact();
            let Endpoints { down, total } = contact.endpoints;
            Self {
                flavour: member.flavour.name(),
                cluster: member.cluster.key.to_string(),
                uid: member.cluster.uid.to_string(),
                owner: clusters.ownership.owner(&member.cluster.uid),
                published: health.published().map_or(NOTHING, |it| it.health.label()),
                message: explain(health, now.monotonic),
                last_result: last.map(|last| last.finding.verdict().as_str()),
                code: last.and_then(|last| last.finding.code()).map(|code| code.to_string()),
                last_probe: last.map(|last| last.started.wall.strftime("%FT%TZ").to_string()),
                took_seconds: last.map(|last| seconds(last.took)),
                failures: health.failures(),
                successes: health.successes(),
                next_probe_in_seconds: health.due().filter(|_| !it.paused).map(until).map(seconds),
                doing: doing(it),
                flapping: health.is_damped(),
                write_waits_seconds: write_waits.map(seconds),
                available_1h: ratios.hour,
                available_24h: ratios.day,
                available_28d: ratios.month,
                available_30d: ratios.month,
                available_since: wall(health.observed_since(), now),
                endpoints: total,
                endpoints_down: down,
                credential_ends: contact.credential.map(end),
                serving_certificate_ends: contact.certificate.map(end),
                tls_checks_waived: contact.waived.names().collect(),
                checks: health.check_reports().into_iter().filter_map(check).collect(),
                stored: it.difference.map(|difference| difference.stored_label()),
                differs_for_seconds: it.difference.map(|difference| since(difference.since)),
            }
        })
    }
}

fn check(report: CheckReport) -> Option<(Box<str>, &'static str)> {
    Some((report.name, report.status?.label()))
}

fn doing(it: &MemberState) -> &'static str {
    match (it.member.is_probing(), it.queued, it.paused) {
        (true, ..) => "probing",
        (_, true, _) => "queued",
        (.., true) => "paused",
        _ => "waiting",
    }
}

fn end(lifetime: Lifetime) -> String {
    lifetime.to.strftime("%FT%TZ").to_string()
}

fn wall(at: Instant, now: &Moment) -> String {
    let ago = now.monotonic.saturating_duration_since(at);
    let wall = now.wall.checked_sub(ago).unwrap_or(now.wall);
    wall.strftime("%FT%TZ").to_string()
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// What a column shows about a cluster; a dash without it.
type Cell = fn(&Row) -> Option<String>;

const COLUMNS: [(&str, Cell); 12] = [
    ("FLAVOUR", |row| Some(row.flavour.to_owned())),
    ("CLUSTER", |row| Some(row.cluster.clone())),
    ("PUBLISHED", |row| Some(row.published.to_owned())),
    ("LAST", |row| row.last_result.map(str::to_owned)),
    ("CODE", |row| row.code.clone()),
    ("PROBED", |row| row.last_probe.clone()),
    ("TOOK", |row| row.took_seconds.map(|took| format!("{took:.3}s"))),
    ("FAILED", |row| Some(row.failures.to_string())),
    ("NEXT", |row| row.next_probe_in_seconds.map(tenths)),
    ("DOING", |row| Some(row.doing.to_owned())),
    ("WRITE", |row| row.write_waits_seconds.map(tenths)),
    ("24H", |row| row.available_24h.map(|ratio| format!("{:.2}%", ratio * 100.0))),
];

fn tenths(seconds: f64) -> String {
    format!("{seconds:.1}s")
}

/// One line for each row, below the headings; with the failed checks where there are checks, in an audit with what
/// differs, and with several shards with its owner.
pub(super) fn table(rows: &[Row], audit: bool) -> String {
    let further: [(bool, &str, Cell); 3] = [
        (rows.iter().any(|row| !row.checks.is_empty()), "CHECKS", failed_checks),
        (audit, "STORED", |row| row.stored.map(str::to_owned)),
        (rows.iter().any(|row| row.owner.is_some()), "OWNER", |row| row.owner.clone()),
    ];
    let further = further.into_iter().filter(|(is_shown, ..)| *is_shown);
    let further = further.map(|(_, heading, cell)| (heading, cell));
    let columns: Vec<_> = COLUMNS.into_iter().chain(further).collect();
    let head = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let line = |row: &Row| {
        let cells = columns.iter().map(|(_, cell)| cell(row).unwrap_or_else(|| "-".to_owned()));
        cells.collect()
    };
    let lines: Vec<Vec<String>> = once(head).chain(rows.iter().map(line)).collect();
    command::table(&lines)
}

/// Names of the checks that fail, as far as there are checks.
fn failed_checks(row: &Row) -> Option<String> {
    let is_failed = |(_, label): &(_, &&str)| **label == CheckStatus::Failed.label();
    let failed: Vec<_> = row.checks.iter().filter(is_failed).map(|(name, _)| &**name).collect();
    (!failed.is_empty()).then(|| failed.join(","))
}

/// The state of a cluster about which nothing was published yet.
pub(super) const NOTHING: &str = "nothing";
