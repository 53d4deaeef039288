//! The rows of the debug page as a table for people.

use super::row::Row;

const HEADINGS: [&str; 12] = [
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

/// One line for each row, below the headings; in an audit with what differs, and with several
/// shards with who has it.
pub(super) fn of(rows: &[Row], audit: bool) -> String {
    let mut lines: Vec<Vec<String>> = vec![HEADINGS.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| cells(row).to_vec()));
    if audit {
        let stored = rows.iter().map(|row| or_dash(row.stored.map(str::to_owned)));
        let column = std::iter::once("STORED".to_owned()).chain(stored);
        lines.iter_mut().zip(column).for_each(|(line, cell)| line.push(cell));
    }
    if rows.iter().any(|row| row.owner.is_some()) {
        let owners = rows.iter().map(|row| or_dash(row.owner.clone()));
        let column = std::iter::once("OWNER".to_owned()).chain(owners);
        lines.iter_mut().zip(column).for_each(|(line, cell)| line.push(cell));
    }
    let mut widths = vec![0; HEADINGS.len() + 2];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    });
    padded.collect()
}

fn cells(row: &Row) -> [String; 12] {
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

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}
