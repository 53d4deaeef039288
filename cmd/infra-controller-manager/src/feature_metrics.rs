//! `kubernetes_feature_enabled`: which feature gates are on, as Kubernetes' components show it.

use prometheus::{IntGaugeVec, Opts, Registry};

/// Registers it with these gates: name, stage and value of each.
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
