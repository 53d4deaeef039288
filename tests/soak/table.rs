//! The closing table of all scenes.

use std::fmt::Write as _;
use std::time::Duration;

use tests::soak::Report;

/// One line a scene.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut text = format!(
        "{:>4} {:<8} {:>6} {:>6} {:>6} {:>7} {:>6} {:>9} {:>5}  {}\n",
        "seed",
        "who",
        "nodes",
        "served",
        "share",
        "doubled",
        "leaked",
        "forgotten",
        "terms",
        "lease to first PATCH: half / most / none"
    );
    for report in reports {
        let Report { seed, contender, nodes, served, forgotten, .. } = report;
        let leaked = report.leaked.map_or("-".to_owned(), |blocks| blocks.to_string());
        let doubled = report.doubled.len() + report.risky.len();
        let _written = writeln!(
            text,
            "{seed:>4} {contender:<8} {nodes:>6} {served:>6} {:>6.3} {doubled:>7} {leaked:>6} \
             {forgotten:>9} {:>5}  {}",
            report.share(),
            report.terms.len(),
            first_patches(report),
        );
    }
    text
}

fn first_patches(report: &Report) -> String {
    let mut times: Vec<Duration> =
        report.terms.iter().filter_map(|term| term.to_first_patch).collect();
    times.sort_unstable();
    let silent = report.terms.len() - times.len();
    match (times.get(times.len() / 2), times.last()) {
        (Some(half), Some(most)) => format!("{half:.2?} / {most:.2?} / {silent}"),
        _ => format!("- / - / {silent}"),
    }
}
