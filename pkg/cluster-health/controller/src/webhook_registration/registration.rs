//! The fields of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration that the webhook
//! reads and keeps in order.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Annotation of cert-manager: it fills in the bundle.
const INJECTED: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// Reaction of an API server when the webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    /// Lets it pass.
    Ignore,
    /// Refuses it.
    Fail,
}

impl FailurePolicy {
    fn word(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

/// Whether another program fills in the bundle of a registration with these annotations.
pub(crate) fn is_injected<'a>(mut annotations: impl Iterator<Item = &'a str>) -> bool {
    annotations.any(|name| INJECTED.contains(&name))
}

/// The names by which API servers call, which the certificate has to have; none without a webhook.
pub(crate) fn names(body: &Map<String, Value>) -> BTreeSet<String> {
    webhooks(body).filter_map(name).collect()
}

/// Whether every webhook has this bundle.
pub(crate) fn has_bundle(body: &Map<String, Value>, bundle: &str) -> bool {
    let wanted = STANDARD.encode(bundle);
    webhooks(body).all(|webhook| webhook["clientConfig"]["caBundle"] == *wanted)
}

fn webhooks(body: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    body.get("webhooks").and_then(Value::as_array).into_iter().flatten()
}

/// Writes the bundle, where one is given, and the failure policy into the fields of a registration.
pub(crate) fn mend(body: &mut Map<String, Value>, bundle: Option<&str>, policy: FailurePolicy) {
    let webhooks = body.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter_map(Value::as_object_mut) {
        webhook.insert("failurePolicy".to_owned(), policy.word().into());
        let Some(bundle) = bundle else { continue };
        if let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
            config.insert("caBundle".to_owned(), STANDARD.encode(bundle).into());
        }
    }
}

/// DNS name that the API server uses in the handshake.
fn name(webhook: &Value) -> Option<String> {
    let config = webhook.get("clientConfig")?;
    if let Some(service) = config.get("service").filter(|service| service.is_object()) {
        let part = |name: &str| service.get(name).and_then(Value::as_str);
        return Some(format!("{}.{}.svc", part("name")?, part("namespace")?));
    }
    let (_, rest) = config.get("url")?.as_str()?.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    Some(host.to_owned()).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(configs: &[Value]) -> Map<String, Value> {
        let webhooks: Vec<Value> =
            configs.iter().map(|config| json!({"name": "a", "clientConfig": config})).collect();
        json!({ "webhooks": webhooks }).as_object().unwrap().clone()
    }

    #[test]
    fn names_are_those_that_api_servers_ask_for() {
        for (config, expected) in [
            (json!({"service": {"name": "s", "namespace": "n", "port": 443}}), &["s.n.svc"][..]),
            (json!({"url": "https://127.0.0.1:9443/validate"}), &["127.0.0.1"]),
            (json!({"url": "https://[::1]:9443"}), &["::1"]),
            (json!({"url": "https://example.org?x"}), &["example.org"]),
            (json!({"url": "https://"}), &[]),
            (json!({}), &[]),
        ] {
            let body = body(&[config.clone(), config]);
            assert!(names(&body).iter().eq(expected));
        }
        assert!(names(&Map::new()).is_empty());
    }

    #[test]
    fn nothing_but_bundle_and_policy_is_written() {
        let config = json!({"service": {"name": "s", "namespace": "n"}});
        let mut mended = body(&[config.clone(), config.clone()]);
        assert!(!has_bundle(&mended, "b"));
        mend(&mut mended, None, FailurePolicy::Fail);
        assert_eq!(mended["webhooks"][1]["clientConfig"], config);
        mend(&mut mended, Some("b"), FailurePolicy::Ignore);
        assert!(has_bundle(&mended, "b"));
        let expected = json!({"name": "a", "failurePolicy": "Ignore", "clientConfig":
            {"caBundle": "Yg==", "service": {"name": "s", "namespace": "n"}}});
        assert_eq!(mended["webhooks"], json!([expected, expected]));
        let mut odd = json!({"webhooks": [7, {"clientConfig": 7}], "odd": 1});
        mend(odd.as_object_mut().unwrap(), Some("b"), FailurePolicy::Ignore);
        assert_eq!(odd["odd"], 1);
    }

    #[test]
    fn the_annotation_of_a_certificate_manager_is_known() {
        assert!(is_injected(["a", "cert-manager.io/inject-ca-from"].into_iter()));
        assert!(!is_injected(["a", "cert-manager.io/issuer"].into_iter()));
    }
}
