//! What a client of a Cluster is made of. Pure.

use std::collections::BTreeMap;

use health::Code;
use probe::{Address, ClientPair, Fields, Impersonation, Inputs, Problem, TlsOptions};
use secrecy::ExposeSecret as _;

use crate::api::tke::{ClusterCredential, SecretRef};
use crate::member::USER_AGENT;
use crate::object_name::is_name;
use crate::secret_data::SecretData;

/// Where the user of a Cluster mends what is refused.
const FIELDS: Fields =
    Fields { ca: "caCert of its ClusterCredential, or ca.crt of the Secret", other_name: "" };

/// Puts them together: what stands in the credential wins over its Secret, and a token and a client
/// certificate go together.
///
/// # Errors
/// There is neither of them, or half of a client certificate.
pub(crate) fn inputs(
    addresses: Vec<Address>,
    credential: ClusterCredential,
    secret: Option<SecretData>,
    insecure_without_ca: bool,
) -> Result<Inputs, Problem> {
    let referred = credential.secret_ref.as_ref().filter(|_| secret.is_none());
    let referred = referred.map(|of| format!("{}/{}", of.namespace, of.name));
    let secret = secret.unwrap_or_default();
    let name = credential.metadata.name;
    let empty_token = secret.token.is_some() && secret.token().is_none();
    let token = credential.token.or_else(|| secret.token());
    let certificate = credential.client_cert.or(secret.certificate);
    let pair = match (certificate, credential.client_key.or(secret.key)) {
        (Some(certificate), Some(key)) => {
            Some(ClientPair { certificate: certificate.expose_secret().to_vec(), key })
        }
        (None, None) => None,
        _ => {
            let text = format!("the client certificate or its key is missing in {name}");
            return Err(Problem::new(Code::ClientCertificate, text));
        }
    };
    if token.is_none() && pair.is_none() {
        if let Some(of) = credential.secret_ref.as_ref().filter(|_| empty_token) {
            let text = format!(
                "key token of Secret {}/{} is empty or not text; write a token into it",
                of.namespace, of.name
            );
            return Err(Problem::new(Code::TokenEmpty, text));
        }
        let text = match referred {
            Some(key) => {
                format!("ClusterCredential {name} refers to Secret {key}, which is not there")
            }
            None => format!("there is neither a token nor a client certificate in {name}"),
        };
        return Err(Problem::new(Code::SecretMissing, text));
    }
    let ca = credential.ca_cert.or(secret.ca);
    let ca = ca.map(|ca| ca.expose_secret().to_vec()).unwrap_or_default();
    let everything = ca.is_empty() && insecure_without_ca;
    Ok(Inputs {
        addresses,
        ca,
        token,
        pair,
        impersonate: impersonation(
            &credential.as_user,
            &credential.as_groups,
            &credential.as_user_extra,
        ),
        tls: TlsOptions { everything, ..TlsOptions::default() },
        fields: FIELDS,
        renewed_in: "its ClusterCredential, or the Secret of that",
        user_agent: USER_AGENT.to_owned(),
        ..Inputs::default()
    })
}

fn impersonation(
    user: &str,
    groups: &[Box<str>],
    extra: &BTreeMap<Box<str>, Box<str>>,
) -> Option<Impersonation> {
    let list = |text: &str| text.split(',').map(str::trim).map(str::to_owned).collect();
    let anybody = !user.is_empty() || !groups.is_empty() || !extra.is_empty();
    anybody.then(|| Impersonation {
        user: user.to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
        extra: extra.iter().map(|(key, values)| (key.to_string(), list(values))).collect(),
    })
}

/// Whether the Secret of a ClusterCredential is ours to read; `namespace` is the only one in which
/// they are, if there is one.
///
/// # Errors
/// It is in another one, or no Secret can have that name.
pub(crate) fn readable(of: &SecretRef, namespace: Option<&str>) -> Result<(), Problem> {
    if !is_name(&of.namespace) || !is_name(&of.name) {
        let text = "secretRef of a ClusterCredential names no Secret: namespace or name is not one";
        return Err(Problem::new(Code::SecretMissing, text));
    }
    match namespace.filter(|namespace| **namespace != *of.namespace) {
        None => Ok(()),
        Some(namespace) => {
            let text = format!(
                "the Secret of a ClusterCredential has to be in namespace {namespace}, not {}",
                of.namespace
            );
            Err(Problem::new(Code::SecretMissing, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(credential: &Value, secret: Option<&Value>) -> Result<Inputs, Problem> {
        let credential = ClusterCredential::read(credential.to_string().as_bytes()).unwrap();
        let secret =
            secret.map(|secret| SecretData::decode(secret.to_string().as_bytes()).unwrap());
        inputs(Vec::new(), credential, secret, false)
    }

    fn secret() -> Value {
        json!({"data": {"token": "c2VjcmV0", "ca.crt": "Y2E=", "tls.crt": "Y2VydA==", "tls.key": "a2V5"}})
    }

    #[test]
    fn what_stands_in_the_credential_wins_over_its_secret() {
        let credential =
            json!({"metadata": {"name": "cc"}, "token": "inline", "caCert": "aW5saW5l"});
        let inputs = made(&credential, Some(&secret())).unwrap();
        assert_eq!(inputs.token.unwrap().expose_secret(), "inline");
        assert_eq!(inputs.ca, b"inline");
        let pair = inputs.pair.unwrap();
        assert_eq!((&*pair.certificate, pair.key.expose_secret()), (&b"cert"[..], &b"key"[..]));
        assert!(inputs.fields.ca.contains("caCert") && inputs.fields.other_name.is_empty());
        let alone = made(&json!({"metadata": {"name": "cc"}}), Some(&secret())).unwrap();
        assert_eq!(alone.token.unwrap().expose_secret(), "secret");
    }

    #[test]
    fn without_a_whole_way_to_say_who_we_are_there_is_no_client() {
        let rows = [
            (json!({"caCert": "Y2E="}), Code::SecretMissing),
            (json!({"token": ""}), Code::SecretMissing),
            (json!({"clientCert": "Y2E="}), Code::ClientCertificate),
            (json!({"token": "t", "clientKey": "Y2E="}), Code::ClientCertificate),
        ];
        for (credential, code) in rows {
            assert_eq!(made(&credential, None).unwrap_err().code(), code, "{credential}");
        }
    }

    #[test]
    fn a_secret_whose_token_is_empty_is_told_as_that() {
        let credential = json!({"metadata": {"name": "cc"},
            "secretRef": {"namespace": "ns", "name": "one"}});
        for empty in ["", "IAo="] {
            let problem = made(&credential, Some(&json!({"data": {"token": empty}}))).unwrap_err();
            assert_eq!(problem.code(), Code::TokenEmpty, "{problem}");
            assert!(problem.to_string().contains("Secret ns/one"), "{problem}");
        }
        let with_a_pair = json!({"data": {"token": "", "tls.crt": "Y2VydA==", "tls.key": "a2V5"}});
        assert!(made(&credential, Some(&with_a_pair)).is_ok(), "a client certificate will do");
    }

    #[test]
    fn a_secret_that_is_not_there_is_named_unless_the_credential_does_without() {
        let mut credential = json!({"metadata": {"name": "cc"},
            "secretRef": {"namespace": "ns", "name": "one"}});
        let problem = made(&credential, None).unwrap_err();
        let told = "ClusterCredential cc refers to Secret ns/one, which is not there";
        assert_eq!((problem.code(), &*problem.to_string()), (Code::SecretMissing, told));
        let empty = made(&credential, Some(&json!({"data": {}}))).unwrap_err();
        assert!(empty.to_string().starts_with("there is neither a token"), "{empty}");
        credential["token"] = json!("t");
        assert!(made(&credential, None).is_ok());
    }

    /// rule:secret-of-the-same-namespace
    #[test]
    fn a_secret_is_read_in_the_namespace_for_them_and_by_a_name() {
        let read = |namespace: &str, name: &str, only: Option<&str>| {
            readable(&SecretRef { namespace: namespace.into(), name: name.into() }, only)
        };
        assert_eq!(read("fed", "one", Some("fed")), Ok(()));
        assert_eq!(read("other", "one", None), Ok(()));
        for (namespace, name) in
            [("other", "one"), ("fed", "../../other/secrets/one"), ("fed", "one?x"), ("fed", "")]
        {
            let problem = read(namespace, name, Some("fed")).unwrap_err();
            assert_eq!(problem.code(), Code::SecretMissing, "{namespace}/{name}");
        }
        assert!(read("../x", "one", None).is_err());
    }

    #[test]
    fn whom_to_act_as_is_read_from_the_credential() {
        let credential = json!({"token": "t", "as": "u", "as-groups": ["a", "b"],
            "as-user-extra": {"scopes": "x, y"}});
        let who = made(&credential, None).unwrap().impersonate.unwrap();
        assert_eq!((&*who.user, who.groups.len()), ("u", 2));
        assert_eq!(who.extra["scopes"], ["x", "y"]);
        assert!(made(&json!({"token": "t"}), None).unwrap().impersonate.is_none());
    }

    #[test]
    fn certificates_are_checked_without_a_ca_unless_a_flag_says_otherwise() {
        let credential = || ClusterCredential::read(br#"{"token": "t"}"#).unwrap();
        for (insecure, everything) in [(false, false), (true, true)] {
            let inputs = inputs(Vec::new(), credential(), None, insecure).unwrap();
            assert_eq!(inputs.tls.everything, everything);
        }
        let with_ca = ClusterCredential::read(br#"{"token": "t", "caCert": "Y2E="}"#).unwrap();
        assert!(!inputs(Vec::new(), with_ca, None, true).unwrap().tls.everything);
    }
}
