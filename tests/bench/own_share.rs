//! The product's own part of a Node's wait: from the event that shows the Node to the PATCH that
//! leaves. Read from its metrics, because only the product sees both moments.

use ::tests::metrics::Metrics;
use ::tests::process;
use anyhow::Context as _;

const HISTOGRAM: &str = "node_ipam_first_patch_delay_seconds_bucket";

/// Percentiles over the Nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnShare {
    /// Half of the Nodes waited less, in milliseconds.
    pub(crate) p50_ms: f64,
    /// 99 % of them did.
    pub(crate) p99_ms: f64,
}

/// Asks the contender that serves on this loopback port; none when it has no such metric.
pub(crate) async fn of(port: u16) -> anyhow::Result<Option<OwnShare>> {
    let (status, page) = process::get(port, "/metrics").await.context("cannot read its metrics")?;
    // Stock asks for a login here, and has nothing of the kind anyway.
    Ok((status == 200).then(|| read(&Metrics::parse(&page))).flatten())
}

fn read(metrics: &Metrics) -> Option<OwnShare> {
    let mut buckets: Vec<(f64, f64)> = metrics
        .samples(HISTOGRAM)
        .filter_map(|(labels, count)| {
            let limit = labels.iter().find(|(name, _)| name == "le")?.1.as_str();
            Some((if limit == "+Inf" { f64::INFINITY } else { limit.parse().ok()? }, count))
        })
        .collect();
    buckets.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let share = |part| Some(quantile(&buckets, part)? * 1e3);
    Some(OwnShare { p50_ms: share(0.5)?, p99_ms: share(0.99)? })
}

/// A quantile like PromQL's `histogram_quantile`: linear within a bucket; beyond the last limit it
/// is that limit.
fn quantile(buckets: &[(f64, f64)], part: f64) -> Option<f64> {
    let rank = buckets.last()?.1 * part;
    let (mut lower, mut below) = (0.0, 0.0);
    for (limit, count) in buckets {
        if *count >= rank && *count > below {
            let inside = (rank - below) / (count - below);
            return Some(if limit.is_finite() { lower + (limit - lower) * inside } else { lower });
        }
        (lower, below) = (*limit, *count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(counts: [u32; 3]) -> Metrics {
        let [a, b, all] = counts;
        Metrics::parse(&format!(
            "{HISTOGRAM}{{le=\"0.001\"}} {a}\n{HISTOGRAM}{{le=\"0.002\"}} {b}\n\
             {HISTOGRAM}{{le=\"+Inf\"}} {all}\n"
        ))
    }

    #[test]
    fn percentiles_lie_where_they_would_if_each_bucket_were_even() {
        let share = read(&page([50, 100, 100])).unwrap();
        assert!(
            (share.p50_ms - 1.0).abs() < 1e-9 && (share.p99_ms - 1.98).abs() < 1e-9,
            "{share:?}"
        );
    }

    #[test]
    fn what_lies_beyond_the_last_limit_counts_as_that_limit() {
        let share = read(&page([10, 20, 100])).unwrap();
        assert!((share.p99_ms - 2.0).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn a_page_without_the_metric_or_without_nodes_has_no_share() {
        assert_eq!(read(&Metrics::parse("other 1\n")), None);
        assert_eq!(read(&page([0, 0, 0])), None);
    }
}
