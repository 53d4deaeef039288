//! What `--allow-metric-labels` and its file say.

use std::collections::{BTreeMap, BTreeSet};

/// By metric and label the values that this may have.
type LabelValues = BTreeMap<(String, String), BTreeSet<String>>;

/// Reads pairs of `metric,label` and `value,value`.
///
/// # Errors
/// One of them is none, in words for whoever wrote it.
pub fn label_values(
    pairs: impl IntoIterator<Item = (String, String)>,
) -> Result<LabelValues, String> {
    let mut all = LabelValues::new();
    for (of, values) in pairs {
        let parts = of.split_once(',').map(|(metric, label)| (metric.trim(), label.trim()));
        let is_whole = |(metric, label): &(&str, &str)| {
            !metric.is_empty() && !label.is_empty() && !label.contains(',')
        };
        let Some((metric, label)) = parts.filter(is_whole) else {
            return Err(format!(
                "{of:?} does not name a metric and one of its labels, as metric,label"
            ));
        };
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        all.insert((metric.to_owned(), label.to_owned()), values);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_name_a_metric_a_label_and_its_values() {
        let pair = |of: &str, values: &str| [(of.to_owned(), values.to_owned())];
        let read = label_values(pair("rest_client_requests_total,code", "200, 404")).unwrap();
        let key = ("rest_client_requests_total".to_owned(), "code".to_owned());
        assert_eq!(read, [(key, ["200", "404"].map(str::to_owned).into())].into());
        for bad in ["", "metric", "metric,", ",label", "metric,label,more"] {
            let told = label_values(pair(bad, "a")).unwrap_err();
            assert!(told.starts_with(&format!("{bad:?} does not name")), "{told}");
        }
    }
}
