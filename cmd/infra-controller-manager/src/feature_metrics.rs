//! Which feature gates are on, and which version this is, as Kubernetes' components show them.

use prometheus::{IntGaugeVec, Opts, Registry};

/// Registers `kubernetes_feature_enabled` with these gates: name, stage and value of each.
///
/// # Errors
/// The name is registered already.
pub(crate) fn register(
    registry: &Registry,
    features: &[(&'static str, &'static str, bool)],
) -> Result<(), prometheus::Error> {
    let help =
        "[BETA] Whether a feature gate is on, for the gates that change what this program does.";
    let enabled =
        IntGaugeVec::new(Opts::new("kubernetes_feature_enabled", help), &["name", "stage"])?;
    for (name, stage, is_on) in features {
        enabled.with_label_values(&[name, stage]).set(i64::from(*is_on));
    }
    registry.register(Box::new(enabled))
}

/// Registers `version_info`: this program emulates no other version.
///
/// # Errors
/// The name is registered already.
pub(crate) fn register_version(
    registry: &Registry,
    version: &str,
) -> Result<(), prometheus::Error> {
    let labels = ["binary", "component", "emulation", "min_compat"];
    let help = "[ALPHA] Version of this program, which is compatible with itself alone.";
    let info = IntGaugeVec::new(Opts::new("version_info", help), &labels)?;
    let version = version.trim_start_matches('v');
    info.with_label_values(&[version, crate::build::PRODUCT, version, version]).set(1);
    registry.register(Box::new(info))
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
