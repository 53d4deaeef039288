//! How members are probed, by flags and by the KubeFedConfig, which wins
//! (`rule:kubefed-config-wins`). Pure.

use std::time::Duration;

use flags::GoDuration;
use health::{Cadence, Policy, Thresholds};

use crate::api::kubefed::ClusterHealthCheck;
use crate::options::{PERIOD_MIN, TIMEOUT_MIN};

/// The policy that follows from the flags and from what the KubeFedConfig says. What it says
/// wrongly is left to the flags and named.
pub(crate) fn policy(flags: &Policy, config: Option<&ClusterHealthCheck>) -> (Policy, Vec<String>) {
    let mut wrong = Vec::new();
    let Some(config) = config else { return (*flags, wrong) };
    let mut span = |name: &str, text: Option<&String>, least: Duration, flag: Duration| {
        let Some(text) = text else { return flag };
        let value = text.parse::<GoDuration>().map(GoDuration::to_std).unwrap_or_default();
        if value < least {
            let field = format!("spec.clusterHealthCheck.{name}");
            wrong.push(format!("{field} is not a duration of at least {least:?}"));
            return flag;
        }
        value
    };
    let Cadence { period, timeout, .. } = flags.cadence;
    let period = span("period", config.period.as_ref(), PERIOD_MIN, period);
    let timeout = span("timeout", config.timeout.as_ref(), TIMEOUT_MIN, timeout);
    let mut count = |name: &str, value: Option<i64>, flag: u32| {
        let Some(value) = value else { return flag };
        match u32::try_from(value) {
            Ok(value @ 1..) => value,
            _ => {
                wrong.push(format!("spec.clusterHealthCheck.{name} is not a number above 0"));
                flag
            }
        }
    };
    let thresholds = Thresholds {
        failure: count("failureThreshold", config.failure_threshold, flags.thresholds.failure),
        success: count("successThreshold", config.success_threshold, flags.thresholds.success),
    };
    let cadence = Cadence { period, timeout, ..flags.cadence };
    (Policy { cadence, thresholds, ..*flags }, wrong)
}

/// What is allowed and hardly meant.
pub(crate) fn odd(policy: &Policy) -> Option<String> {
    let Cadence { period, timeout, .. } = policy.cadence;
    let text = format!(
        "the timeout of {timeout:?} is longer than the period of {period:?}: silent clusters are \
         probed every {timeout:?}"
    );
    (timeout > period).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubefed::testing::policy as of_flags;

    /// rule:kubefed-config-wins
    #[test]
    fn what_the_config_says_wins_and_what_it_leaves_out_or_says_wrongly_is_left_to_the_flags() {
        let s = Duration::from_secs;
        // (config, period, timeout, failures, successes, wrong fields)
        let rows = [
            (json!({}), s(10), s(3), 3, 1, 0),
            (json!({"period": "30s", "failureThreshold": 5}), s(30), s(3), 5, 1, 0),
            (json!({"timeout": "1m30s", "successThreshold": 2}), s(10), s(90), 3, 2, 0),
            (json!({"period": "0s", "timeout": "soon"}), s(10), s(3), 3, 1, 2),
            (json!({"period": "999ms", "timeout": "99ms"}), s(10), s(3), 3, 1, 2),
            (json!({"period": "1s"}), s(1), s(3), 3, 1, 0),
            (json!({"failureThreshold": 0, "successThreshold": -1}), s(10), s(3), 3, 1, 2),
            (json!({"period": "-5s", "failureThreshold": 5_000_000_000_i64}), s(10), s(3), 3, 1, 2),
        ];
        for (config, period, timeout, failure, success, wrong) in rows {
            let config: ClusterHealthCheck = serde_json::from_value(config).unwrap();
            let (policy, named) = policy(&of_flags(), Some(&config));
            let Policy { cadence, thresholds, .. } = policy;
            assert_eq!((cadence.period, cadence.timeout), (period, timeout), "{config:?}");
            assert_eq!((thresholds.failure, thresholds.success), (failure, success), "{config:?}");
            assert_eq!(named.len(), wrong, "{named:?}");
        }
        assert_eq!(policy(&of_flags(), None), (of_flags(), vec![]));
    }

    #[test]
    fn a_timeout_longer_than_the_period_is_odd() {
        assert_eq!(odd(&of_flags()), None);
        let config: ClusterHealthCheck = serde_json::from_value(json!({"timeout": "15s"})).unwrap();
        let odd = odd(&policy(&of_flags(), Some(&config)).0).unwrap();
        assert!(odd.starts_with("the timeout of 15s is longer than the period of 10s"), "{odd}");
    }
}
