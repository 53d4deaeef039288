//! The closing table: medians, ratios, and the targets of this repository.

use std::fmt::Write as _;

use api_server_double::NodeSize;

use crate::cases::{Case, Load, Pools, Throttle};
use crate::contender::Contender;
use crate::report::Line;

/// What a row of the table compares.
struct Metric {
    label: &'static str,
    value: fn(&Line) -> Option<f64>,
    /// The product's limits, in the case where they hold.
    targets: fn(&Case) -> Vec<Target>,
}

/// A limit for the product's median.
enum Target {
    AtMost(f64),
    AtLeast(f64),
    OfStock(f64),
    OfRaw(f64),
    /// At most this much more than the raw loop.
    AfterRaw(f64),
}

const METRICS: [Metric; 10] = [
    Metric {
        label: "s to first",
        value: |line| Some(line.seconds_to_first),
        targets: |case| match (case.load, case.throttle) {
            (Load::Takeover(_), _) => vec![Target::AtMost(0.3)],
            _ if case.is_on_double() => vec![Target::AfterRaw(0.5)],
            _ if case.size == NodeSize::Grown => vec![Target::AfterRaw(0.5)],
            (Load::Existing(1000), Throttle::Lifted) => vec![Target::AtMost(0.150)],
            (Load::Existing(5000), Throttle::Lifted) => vec![Target::AtMost(0.300)],
            // The server needs 2.2 s for this list on two cores, for every client.
            (Load::Existing(100_000), Throttle::Lifted) => vec![Target::OfRaw(1.2)],
            _ => Vec::new(),
        },
    },
    Metric {
        label: "s to all",
        value: |line| Some(line.seconds_to_all),
        targets: |case| match (case.load, case.throttle) {
            _ if case.is_on_double() => Vec::new(),
            (Load::Existing(5000 | 20_000), Throttle::Lifted) => vec![Target::OfStock(1.0)],
            (Load::Existing(1000), Throttle::Default) => vec![Target::AtMost(3.0)],
            _ => Vec::new(),
        },
    },
    Metric {
        label: "s first to last",
        value: |line| Some(line.seconds_first_to_last),
        targets: |case| match (case.load, case.throttle) {
            (Load::Existing(5000), Throttle::Lifted) => vec![Target::OfRaw(1.15)],
            _ => Vec::new(),
        },
    },
    Metric {
        label: "Nodes per s",
        #[allow(clippy::cast_precision_loss, reason = "there are not so many Nodes")]
        value: |line| {
            let is_rate = line.seconds_first_to_last > 0.0;
            is_rate.then(|| line.nodes as f64 / line.seconds_first_to_last)
        },
        targets: |case| match case.pools {
            Pools::Ipv6 => vec![Target::AtLeast(5000.0)],
            _ => Vec::new(),
        },
    },
    Metric {
        label: "latency p50 ms",
        value: |line| Some(line.latency_p50_ms),
        targets: |_| Vec::new(),
    },
    Metric {
        label: "latency p99 ms",
        value: |line| Some(line.latency_p99_ms),
        targets: |case| match case.load {
            Load::Join { .. } if !case.is_on_double() => vec![Target::OfStock(0.5)],
            _ => Vec::new(),
        },
    },
    Metric {
        label: "own part p50 ms",
        value: |line| line.own_share_p50_ms,
        targets: |_| Vec::new(),
    },
    Metric {
        label: "own part p99 ms",
        value: |line| line.own_share_p99_ms,
        targets: |case| match case.load {
            Load::Join { .. } if case.is_on_double() => vec![Target::AtMost(1.0)],
            Load::Join { rate: 200, .. } => vec![Target::AtMost(1.0)],
            Load::Join { .. } | Load::Existing(_) | Load::Takeover(_) => Vec::new(),
        },
    },
    Metric {
        label: "cpu s",
        value: |line| line.cpu_seconds,
        targets: |case| match case.load {
            _ if case.is_on_double() => Vec::new(),
            _ if case.size == NodeSize::Grown => compared_with_stock(case, 0.2),
            Load::Existing(5000 | 20_000) => compared_with_stock(case, 0.2),
            _ => compared_with_stock(case, 0.4),
        },
    },
    Metric {
        label: "peak rss MiB",
        #[allow(clippy::cast_precision_loss, reason = "2^53 bytes are more than any machine has")]
        value: |line| line.peak_rss_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)),
        targets: |case| match case.load {
            Load::Existing(1_000_000) => vec![Target::AtMost(700.0)],
            _ if case.size == NodeSize::Grown => vec![Target::AtMost(150.0)],
            _ if case.is_on_double() => Vec::new(),
            Load::Existing(20_000) => vec![Target::AtMost(30.0)],
            Load::Existing(100_000) => vec![Target::AtMost(80.0)],
            _ => compared_with_stock(case, 0.2),
        },
    },
];

/// Cost is compared where both do the same in the same time.
fn compared_with_stock(case: &Case, share: f64) -> Vec<Target> {
    match case.throttle {
        Throttle::Lifted => vec![Target::OfStock(share)],
        Throttle::Default => Vec::new(),
    }
}

/// The whole table, one block per case.
pub(crate) fn render(lines: &[Line]) -> Result<String, std::fmt::Error> {
    let mut cases: Vec<Case> = lines.iter().map(|line| line.case).collect();
    cases.dedup();
    let mut table = String::new();
    for case in cases {
        let of_case: Vec<&Line> = lines.iter().filter(|line| line.case == case).collect();
        block(&mut table, &case, &of_case)?;
    }
    Ok(table)
}

fn block(table: &mut String, case: &Case, lines: &[&Line]) -> std::fmt::Result {
    let runs = lines.iter().map(|line| line.run).max().unwrap_or(0);
    let duplicates: usize = lines.iter().map(|line| line.duplicates).sum();
    let misplaced = lines.iter().filter_map(|line| line.misplaced).reduce(std::ops::Add::add);
    let misplaced = misplaced.map(|nodes| format!(", {nodes} misplaced")).unwrap_or_default();
    writeln!(table, "\n{case}: medians of {runs}, {duplicates} duplicates{misplaced}")?;
    writeln!(
        table,
        "{:<16}{:>10}{:>10}{:>10}{:>15}{:>13}  target",
        "", "product", "stock", "raw", "product/stock", "product/raw"
    )?;
    for metric in &METRICS {
        let medians = Medians::of(metric, lines);
        let row = [
            number(medians.product, 10),
            number(medians.stock, 10),
            number(medians.raw, 10),
            number(medians.to(medians.stock), 15),
            number(medians.to(medians.raw), 13),
        ];
        let targets = match case.pools {
            Pools::Flags | Pools::Ipv6 => (metric.targets)(case),
            Pools::ClusterCidrs(_) => Vec::new(),
        };
        let targets: Vec<String> = targets.iter().map(|target| verdict(target, &medians)).collect();
        let line = format!("{:<16}{}  {}", metric.label, row.concat(), targets.join(", "));
        writeln!(table, "{}", line.trim_end())?;
    }
    Ok(())
}

struct Medians {
    product: Option<f64>,
    stock: Option<f64>,
    raw: Option<f64>,
}

impl Medians {
    fn of(metric: &Metric, lines: &[&Line]) -> Self {
        let of = |contender| {
            let of_contender = lines.iter().filter(|line| line.contender == contender);
            median(of_contender.filter_map(|line| (metric.value)(line)).collect())
        };
        Self {
            product: of(Contender::Product),
            stock: of(Contender::Stock),
            raw: of(Contender::Raw),
        }
    }

    /// The product's share of another contender's median.
    fn to(&self, other: Option<f64>) -> Option<f64> {
        self.product.zip(other).filter(|(_, other)| *other > 0.0).map(|(ours, other)| ours / other)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (lower, upper) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[lower], values[upper]))
}

fn number(value: Option<f64>, width: usize) -> String {
    match value {
        Some(value) if value >= 100.0 => format!("{value:>width$.0}"),
        Some(value) => format!("{value:>width$.3}"),
        None => format!("{:>width$}", "-"),
    }
}

fn verdict(target: &Target, medians: &Medians) -> String {
    let after_raw = || Some(medians.product? - medians.raw?);
    let (text, limit, value) = match target {
        Target::AtMost(limit) | Target::AtLeast(limit) => ("", *limit, medians.product),
        Target::OfStock(share) => (" of stock", *share, medians.to(medians.stock)),
        Target::OfRaw(share) => (" of raw", *share, medians.to(medians.raw)),
        Target::AfterRaw(limit) => (" after raw", *limit, after_raw()),
    };
    let is_least = matches!(target, Target::AtLeast(_));
    let outcome = match value {
        Some(value) if (is_least && value >= limit) || (!is_least && value <= limit) => "met",
        Some(_) => "MISSED",
        None => "not measured",
    };
    format!("{} {limit}{text}: {outcome}", if is_least { ">=" } else { "<=" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(contender: Contender, run: usize, seconds_to_all: f64) -> Line {
        Line {
            case: "existing-5000".parse().unwrap(),
            contender,
            run,
            nodes: 5000,
            seconds_to_first: 0.1,
            seconds_to_all,
            seconds_first_to_last: seconds_to_all - 0.1,
            latency_p50_ms: 1.0,
            latency_p99_ms: 2.0,
            own_share_p50_ms: None,
            own_share_p99_ms: None,
            cpu_seconds: Some(1.0),
            peak_rss_bytes: Some(1 << 20),
            duplicates: 0,
            misplaced: None,
            version: String::new(),
            commit: String::new(),
        }
    }

    fn row(lines: &[Line], label: &str) -> String {
        let table = render(lines).unwrap();
        table.lines().find(|line| line.starts_with(label)).unwrap().to_owned()
    }

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let runs = [3.0, 90.0, 1.0].into_iter().zip(1..);
        let lines: Vec<Line> =
            runs.map(|(seconds, run)| line(Contender::Product, run, seconds)).collect();
        assert!(row(&lines, "s to all").contains("3.000"));
        assert_eq!(median(vec![1.0, 2.0]), Some(1.5));
    }

    #[test]
    fn a_target_is_met_at_its_limit_missed_above_it_and_silent_when_nothing_was_measured() {
        let stock = line(Contender::Stock, 1, 4.0);
        let compared =
            |seconds| row(&[line(Contender::Product, 1, seconds), stock.clone()], "s to all");
        assert!(compared(4.0).ends_with("<= 1 of stock: met"));
        assert!(compared(4.1).ends_with("<= 1 of stock: MISSED"));
        let alone = row(&[line(Contender::Product, 1, 4.0)], "s to all");
        assert!(alone.ends_with("<= 1 of stock: not measured"));
    }

    #[test]
    fn a_rate_is_at_least_its_target_and_a_delay_is_counted_from_the_bare_read() {
        let of = |seconds| Line {
            case: "double-ipv6-5000".parse().unwrap(),
            ..line(Contender::Product, 1, seconds)
        };
        assert!(row(&[of(1.1)], "Nodes per s").ends_with(">= 5000: met"));
        assert!(row(&[of(1.2)], "Nodes per s").ends_with(">= 5000: MISSED"));
        let raw =
            |seconds| Line { contender: Contender::Raw, seconds_to_first: seconds, ..of(1.0) };
        let late = |seconds| {
            let product = Line { seconds_to_first: seconds, ..of(1.0) };
            row(&[product, raw(2.0)], "s to first")
        };
        assert!(late(2.5).ends_with("<= 0.5 after raw: met"));
        assert!(late(2.6).ends_with("<= 0.5 after raw: MISSED"));
    }
}
