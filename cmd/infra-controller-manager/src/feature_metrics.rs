//! What `/metrics` shows of the process: feature gates, the version, and which label values are allowed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use prometheus::Registry;
use serving::Exposition;

use super::flags::label_values;

/// Registers `kubernetes_feature_enabled` with these gates: name, stage and value of each.
pub(crate) fn register(
    registry: &Registry,
    features: &[(&'static str, &'static str, bool)],
) -> Result<(), prometheus::Error> {
    let help =
        "[BETA] Whether a feature gate is on, for the gates that change what this program does.";
    let name = "kubernetes_feature_enabled";
    let enabled = metrics::gauge(registry, name, help, &["name", "stage"])?;
    for (name, stage, is_on) in features {
        enabled.with_label_values(&[name, stage]).set(i64::from(*is_on));
    }
    Ok(())
}

/// Registers `version_info`: this program emulates no other version.
pub(crate) fn register_version(
    registry: &Registry,
    version: &str,
) -> Result<(), prometheus::Error> {
    let labels = ["binary", "component", "emulation", "min_compat"];
    let help = "[ALPHA] Version of this program, which is compatible with itself alone.";
    let info = metrics::gauge(registry, "version_info", help, &labels)?;
    let version = version.trim_start_matches('v');
    info.with_label_values(&[version, super::build::PRODUCT, version, version]).set(1);
    Ok(())
}

/// With what the file says of labels that no flag names.
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
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn each_gate_has_its_stage_and_value() {
        let registry = Registry::new();
        register(&registry, &[("Off", "ALPHA", false), ("On", "BETA", true)]).unwrap();
        let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"kubernetes_feature_enabled{name="Off",stage="ALPHA"} 0"#,
                r#"kubernetes_feature_enabled{name="On",stage="BETA"} 1"#,
            ]
        );
    }
}

#[cfg(test)]
mod exposition_tests {
    use super::*;

    #[tokio::test]
    async fn flags_take_precedence_over_the_file_and_an_invalid_file_is_reported() {
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
