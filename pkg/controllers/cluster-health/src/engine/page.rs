//! The debug page: every cluster with its last probe, its counters and its next probe. A table for
//! people; JSON for programs that ask for it by `Accept` or `?format=json`.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use serde::Serialize;
use serving::{PageRequest, Reply, reply};

use super::prober::now;
use super::shared::Shared;
use super::watched::Watched;

/// One cluster. Nothing in it comes from a credential (`rule:secrets-are-never-shown`).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    flavour: &'static str,
    cluster: String,
    uid: String,
    published: &'static str,
    last_result: Option<&'static str>,
    code: Option<String>,
    last_probe: Option<String>,
    took_seconds: Option<f64>,
    failures: u32,
    successes: u32,
    next_probe_in_seconds: Option<f64>,
    doing: &'static str,
    flapping: bool,
    write_waits_seconds: Option<f64>,
    available_1h: Option<f64>,
    available_24h: Option<f64>,
    available_30d: Option<f64>,
}

/// Answers with the clusters as they are now.
pub(crate) fn answer(shared: &Shared, request: &PageRequest) -> Reply {
    let mut rows: Vec<Row> = shared.all().iter().map(|watched| row(watched, shared)).collect();
    rows.sort_by(|one, other| (one.flavour, &one.cluster).cmp(&(other.flavour, &other.cluster)));
    if wants_json(request) {
        return match serde_json::to_vec_pretty(&rows) {
            Ok(body) => reply::json(StatusCode::OK, body),
            Err(error) => reply::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
    }
    reply::text(StatusCode::OK, table(&rows))
}

fn wants_json(request: &PageRequest) -> bool {
    let accepts = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let query = request.uri.query().unwrap_or_default();
    accepts.is_some_and(|accepts| accepts.contains("application/json"))
        || query.split('&').any(|pair| pair == "format=json")
}

fn row(watched: &Arc<Watched>, shared: &Shared) -> Row {
    let now = now();
    let write_waits = shared.writer.age(&watched.cluster.uid, now.monotonic);
    watched.glance(|it| {
        let (member, last) = (it.member, it.member.last());
        let ratios = member.availability(now.monotonic);
        let until = |at: std::time::Instant| at.saturating_duration_since(now.monotonic);
        Row {
            flavour: watched.flavour.name(),
            cluster: watched.cluster.key.to_string(),
            uid: watched.cluster.uid.to_string(),
            published: member.published().map_or("nothing", |it| it.standing.label()),
            last_result: last.map(|last| last.finding.verdict().as_str()),
            code: last.and_then(|last| last.finding.code()).map(|code| code.to_string()),
            last_probe: last.map(|last| last.started.wall.strftime("%FT%TZ").to_string()),
            took_seconds: last.map(|last| seconds(last.took)),
            failures: member.failures(),
            successes: member.successes(),
            next_probe_in_seconds: member.due().filter(|_| !it.paused).map(until).map(seconds),
            doing: doing(member.is_probing(), it.queued, it.paused),
            flapping: member.is_damped(),
            write_waits_seconds: write_waits.map(seconds),
            available_1h: ratios.hour,
            available_24h: ratios.day,
            available_30d: ratios.month,
        }
    })
}

fn doing(probing: bool, queued: bool, paused: bool) -> &'static str {
    match (probing, queued, paused) {
        (true, ..) => "probing",
        (_, true, _) => "queued",
        (.., true) => "paused",
        _ => "waiting",
    }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

fn table(rows: &[Row]) -> String {
    let head = [
        "FLAVOUR",
        "CLUSTER",
        "PUBLISHED",
        "LAST",
        "CODE",
        "PROBED",
        "TOOK",
        "FAILED",
        "NEXT",
        "DOING",
        "WRITE",
        "24H",
    ];
    let cells = rows.iter().map(cells);
    let lines: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(cells).collect();
    let mut widths = [0; 12];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    });
    padded.collect()
}

fn cells(row: &Row) -> [String; 12] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let time = |seconds: Option<f64>| or_dash(seconds.map(|seconds| format!("{seconds:.1}s")));
    [
        row.flavour.to_owned(),
        row.cluster.clone(),
        row.published.to_owned(),
        or_dash(row.last_result.map(str::to_owned)),
        or_dash(row.code.clone()),
        or_dash(row.last_probe.clone()),
        or_dash(row.took_seconds.map(|took| format!("{took:.3}s"))),
        row.failures.to_string(),
        time(row.next_probe_in_seconds),
        row.doing.to_owned(),
        time(row.write_waits_seconds),
        or_dash(row.available_24h.map(|ratio| format!("{:.2}%", ratio * 100.0))),
    ]
}
