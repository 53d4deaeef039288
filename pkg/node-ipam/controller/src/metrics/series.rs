//! The labels and numbers of the series of a pool.

/// The values of the labels of a pool's series.
pub(super) fn series<'a>(cidr: &'a str, object: Option<&'a str>) -> Vec<&'a str> {
    std::iter::once(cidr).chain(object).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a metric of 2^53 blocks needs no more digits")]
pub(super) fn float(blocks: u128) -> f64 {
    blocks as f64
}
