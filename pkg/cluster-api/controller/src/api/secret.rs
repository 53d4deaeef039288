//! [`Secret`]: certificates, keys and kubeconfigs of clusters. What was decoded is wiped when it is
//! dropped, and nothing here can be printed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::{Object, Schema};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// Type of the Secrets of Cluster API; one of another type is read all the same.
pub(crate) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

#[derive(Debug)]
pub(crate) enum Secret {}

impl Schema for Secret {
    type Body = SecretBody;
    type Status = ();
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct SecretBody {
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub(crate) secret_type: String,
    /// By key, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) data: BTreeMap<String, String>,
}

impl Drop for SecretBody {
    fn drop(&mut self) {
        self.data.values_mut().for_each(Zeroize::zeroize);
    }
}

impl SecretBody {
    /// A Secret of Cluster API's type with these texts.
    pub(crate) fn of<const N: usize>(texts: [(&str, &str); N]) -> Self {
        let encoded = texts.map(|(key, text)| (key.to_owned(), STANDARD.encode(text)));
        Self { secret_type: SECRET_TYPE.to_owned(), data: encoded.into() }
    }

    pub(crate) fn put(&mut self, key: &str, text: &str) {
        self.data.insert(key.to_owned(), STANDARD.encode(text));
    }
}

/// A text in a Secret; `None` if the key is absent or its value is no UTF-8.
pub(crate) fn text(secret: &Object<Secret>, key: &str) -> Option<Zeroizing<String>> {
    let bytes = STANDARD.decode(secret.body.data.get(key)?).ok()?;
    String::from_utf8(bytes).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_put_into_a_secret_is_read_back_and_never_printed() {
        let body = SecretBody::of([("tls.key", "planted-secret")]);
        let secret: Object<Secret> = Object::read(json!({
            "metadata": {"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "type": body.secret_type, "data": body.data,
        }))
        .unwrap();
        assert_eq!(text(&secret, "tls.key").unwrap().as_str(), "planted-secret");
        assert!(text(&secret, "value").is_none());
        assert!(!format!("{secret:?}").contains("planted"));
    }
}
