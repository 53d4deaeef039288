//! How a member is reached, by its object and its Secret, and how it is probed, by the flags and the
//! KubeFedConfig. Pure.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flags::GoDuration;
use health::{Cadence, Code, Policy, Thresholds};
use objects::Object;
use probe::{Address, Fields, Inputs, Problem, WaivedChecks};
use secrecy::ExposeSecret as _;

use crate::USER_AGENT;
use crate::api::is_name;
use crate::api::kubefed::{ClusterHealthCheck, KubeFedCluster, KubeFedClusterSpec};
use crate::credential_policy::Reference;
use crate::options::{PERIOD_MIN, TIMEOUT_MIN};
use crate::secret_data::{SecretData, client_pair, missing};

/// Where the user of a member mends what is refused.
const FIELDS: Fields = Fields {
    ca: "spec.caBundle, or ca.crt of the Secret",
    other_name: ", or put SubjectName into spec.disabledTLSValidations",
};

/// Key of the Secret of a member: in the namespace of its object
/// (`rule:secret-of-the-same-namespace`).
pub(crate) fn secret_key(cluster: &Object<KubeFedCluster>) -> Option<String> {
    let name = &*cluster.body.spec.secret_ref.name;
    let namespace = cluster.metadata.namespace()?;
    is_name(name).then(|| format!("{namespace}/{name}"))
}

/// Where the member is reached, in one spelling for all that mean the same.
pub(crate) fn endpoint(cluster: &Object<KubeFedCluster>) -> String {
    let text = cluster.body.spec.api_endpoint.trim();
    Address::parse(text).map_or_else(|_| text.to_owned(), |address| address.to_string())
}

/// The inputs of the client of a member.
///
/// # Errors
/// The first thing that is missing or cannot be used, by its field or key.
pub(crate) fn inputs(
    cluster: &Object<KubeFedCluster>,
    secret: Option<&SecretData>,
    allow_plaintext: bool,
) -> Result<Inputs, Problem> {
    let spec = &cluster.body.spec;
    if spec.api_endpoint.trim().is_empty() {
        return Err(Problem::new(Code::BadEndpoint, "spec.apiEndpoint is empty"));
    }
    let address = Address::parse(spec.api_endpoint.trim())?;
    let name = &spec.secret_ref.name;
    if secret_key(cluster).is_none() {
        let text = "spec.secretRef.name is empty or is not the name of a Secret";
        return Err(missing(text));
    }
    let secret = SecretData::to_send(secret, Reference::SameNamespace, name)?;
    let token = secret.needed_token(name)?;
    let incomplete = || format!("Secret {name} has only one of the keys tls.crt and tls.key");
    Ok(Inputs {
        addresses: vec![address],
        ca: ca(spec, secret)?,
        server_name: None,
        token: Some(token),
        pair: client_pair(secret.certificate.clone(), secret.key.clone(), incomplete)?,
        impersonate: None,
        proxy: (!spec.proxy_url.is_empty()).then(|| spec.proxy_url.as_str().into()),
        tls: WaivedChecks::from_names(spec.disabled_tls_validations.iter().map(String::as_str)),
        fields: FIELDS,
        renewed_in: "the Secret of spec.secretRef",
        allow_plaintext,
        user_agent: USER_AGENT.to_owned(),
    })
}

/// The bundle of the object, or else that of the Secret.
fn ca(spec: &KubeFedClusterSpec, secret: &SecretData) -> Result<Vec<u8>, Problem> {
    if spec.ca_bundle.is_empty() {
        return Ok(secret.ca.as_ref().map(|ca| ca.expose_secret().to_vec()).unwrap_or_default());
    }
    let decoded = STANDARD.decode(spec.ca_bundle.trim());
    decoded.map_err(|_| Problem::new(Code::CaParse, "spec.caBundle is not base64"))
}

#[cfg(test)]
mod tests;

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

/// A setting that is allowed and is likely a mistake.
pub(crate) fn odd(policy: &Policy) -> Option<String> {
    let Cadence { period, timeout, .. } = policy.cadence;
    let text = format!(
        "the timeout of {timeout:?} is longer than the period of {period:?}: silent clusters are \
         probed every {timeout:?}"
    );
    (timeout > period).then_some(text)
}

#[cfg(test)]
mod policy_tests {
    use serde_json::json;

    use super::*;
    use crate::kubefed::testing::policy as of_flags;

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
