//! What `/metrics` shows: the flags, and the file that one of them names.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serving::Exposition;

use crate::flags::label_values;

/// With what the file says of labels that no flag names.
///
/// # Errors
/// The file cannot be used.
pub(crate) async fn with_manifest(
    mut exposition: Exposition,
    manifest: Option<&Path>,
) -> Result<Exposition> {
    let Some(path) = manifest else { return Ok(exposition) };
    let told = || format!("cannot use --allow-metric-labels-manifest={}", path.display());
    let text = tokio::fs::read_to_string(path).await.with_context(told)?;
    let pairs: BTreeMap<String, String> = serde_saphyr::from_str(&text).with_context(told)?;
    let of_file = label_values(pairs).map_err(|message| anyhow!(message)).with_context(told)?;
    for (label, values) in of_file {
        exposition.label_values.entry(label).or_insert(values);
    }
    Ok(exposition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn flags_go_before_the_file_and_a_file_that_is_none_is_told() {
        let path = std::env::temp_dir().join(format!("icm-labels-{}", std::process::id()));
        let ask = async |text: &str| {
            std::fs::write(&path, text).unwrap();
            let label_values = label_values([("a,b".to_owned(), "1".to_owned())]).unwrap();
            let exposition = Exposition { label_values, ..Exposition::default() };
            with_manifest(exposition, Some(&path)).await
        };
        let both = ask("a,b: \"2\"\nc,d: x,y\n").await.unwrap();
        let shown: Vec<_> = both.label_values.iter().collect();
        assert_eq!(format!("{shown:?}"), r#"[(("a", "b"), {"1"}), (("c", "d"), {"x", "y"})]"#);
        for bad in ["[", "a: 1", "a,b: {}"] {
            let told = format!("{:#}", ask(bad).await.unwrap_err());
            assert!(told.starts_with("cannot use --allow-metric-labels-manifest=/"), "{told}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(with_manifest(Exposition::default(), Some(&path)).await.is_err());
    }
}
