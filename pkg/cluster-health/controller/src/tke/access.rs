//! How a Cluster is reached: the addresses of its API server, and what its client is made of. Pure.

use std::collections::BTreeMap;

use health::Code;
use objects::Object;
use probe::{Address, Fields, Impersonation, Inputs, Problem, WaivedChecks};
use secrecy::ExposeSecret as _;

use crate::USER_AGENT;
use crate::api::tke::{AddressType, Cluster, ClusterAddress, ClusterCredential};
use crate::credential_policy::{Reference, is_for, may_read, may_send};
use crate::engine::hash_of;
use crate::secret_data::{SecretData, client_pair, missing};
use crate::tke::credentials::{reference, target};

/// A hash of the fields of a Cluster that its connection depends on.
pub(crate) fn access(cluster: &Object<Cluster>) -> u64 {
    hash_of(&(known(cluster), &cluster.body.spec.tenant_id, reference(cluster)))
}

/// The ways that are for us, the best first.
const PREFERENCE: [AddressType; 3] =
    [AddressType::Internal, AddressType::Advertise, AddressType::Real];

/// All addresses of the best type that there is, in the order in which they are tried
///
/// # Errors
/// No address exists, or one cannot be used.
pub(crate) fn addresses(cluster: &Object<Cluster>) -> Result<Vec<Address>, Problem> {
    let known = known(cluster);
    let of_type = |wanted: &AddressType| known.iter().any(|address| address.kind == *wanted);
    let Some(best) = PREFERENCE.into_iter().find(of_type) else {
        let text = "the cluster has no address of type Internal, Advertise or Real";
        return Err(Problem::new(Code::BadEndpoint, text));
    };
    known.iter().filter(|address| address.kind == best).map(parse).collect()
}

fn known(cluster: &Object<Cluster>) -> &[ClusterAddress] {
    match &cluster.body.spec.addresses[..] {
        [] => &cluster.status.addresses,
        wanted => wanted,
    }
}

fn parse(address: &ClusterAddress) -> Result<Address, Problem> {
    // Port 0 is refused with the other numbers that are not ports.
    let port = u16::try_from(address.port).unwrap_or_default();
    Ok(Address::of_parts(&address.host, port, &address.path)?)
}

/// The Secret that a credential refers to, which the credential of this Cluster may do; it is in
/// `namespace`, if there is only one.
///
/// # Errors
/// The credential is not for this Cluster, or may not refer to that Secret.
pub(crate) fn secret_key(
    cluster: &Object<Cluster>,
    credential: &ClusterCredential,
    namespace: Option<&str>,
) -> Result<Option<String>, Problem> {
    is_for(credential, target(cluster)).map_err(|refusal| {
        refusal.problem(&format!("ClusterCredential {}", credential.metadata.name))
    })?;
    let Some(of) = &credential.secret_ref else { return Ok(None) };
    may_read(of, namespace)?;
    Ok(Some(format!("{}/{}", of.namespace, of.name)))
}

/// Where the user of a Cluster mends what is refused.
const FIELDS: Fields =
    Fields { ca: "caCert of its ClusterCredential, or ca.crt of the Secret", other_name: "" };

/// Puts them together: what stands in the credential wins over its Secret, and a token and a client
/// certificate go together. With a token or a certificate of the Secret only the authorities of the
/// Secret count (`rule:a-credential-goes-where-its-owner-sent-it`).
///
/// # Errors
/// There is neither of them, or half of a client certificate, or the Secret may not be sent.
pub(crate) fn inputs(
    addresses: Vec<Address>,
    credential: ClusterCredential,
    secret: Option<SecretData>,
    insecure_without_ca: bool,
) -> Result<Inputs, Problem> {
    let key = credential.secret_ref.as_ref().map(|of| format!("{}/{}", of.namespace, of.name));
    let referred = key.clone().filter(|_| secret.is_none());
    let secret = secret.unwrap_or_default();
    let name = credential.metadata.name;
    let empty_token = secret.token.is_some() && secret.token().is_none();
    let takes_token = credential.token.is_none() && secret.token().is_some();
    let takes_pair = credential.client_cert.is_none() && secret.certificate.is_some()
        || credential.client_key.is_none() && secret.key.is_some();
    let is_of_secret = takes_token || takes_pair;
    if is_of_secret {
        may_send(Reference::ClusterCredential, secret.facts).map_err(|refusal| {
            refusal.problem(&format!("Secret {}", key.as_deref().unwrap_or_default()))
        })?;
    }
    let token = credential.token.or_else(|| secret.token());
    let certificate = credential.client_cert.or(secret.certificate);
    let incomplete = || format!("the client certificate or its key is missing in {name}");
    let pair = client_pair(certificate, credential.client_key.or(secret.key), incomplete)?;
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
        return Err(missing(text));
    }
    let ca = if is_of_secret { secret.ca } else { credential.ca_cert.or(secret.ca) };
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
        tls: WaivedChecks { everything, ..WaivedChecks::default() },
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tke::testing::cluster;

    fn at(kind: &str, host: &str) -> Value {
        json!({"type": kind, "host": host, "port": 6443})
    }

    fn urls(cluster: &Object<Cluster>) -> Vec<String> {
        addresses(cluster).unwrap().iter().map(ToString::to_string).collect()
    }

    fn of_status(addresses: Value) -> Vec<String> {
        urls(&cluster(|object| object["status"]["addresses"] = addresses))
    }

    #[test]
    fn all_addresses_of_the_best_type_are_tried_in_their_order_and_no_others() {
        let all = [at("Public", "p"), at("Real", "r1"), at("Real", "r2"), at("Support", "s")];
        assert_eq!(of_status(json!(all)), ["https://r1:6443", "https://r2:6443"]);
        let more = [&all[..], &[at("Advertise", "a")]].concat();
        assert_eq!(of_status(json!(more)), ["https://a:6443"]);
        let most = [&more[..], &[at("Internal", "i2"), at("Internal", "i1")]].concat();
        assert_eq!(of_status(json!(most)), ["https://i2:6443", "https://i1:6443"]);
        for unfit in [json!([at("Public", "p"), at("Support", "s"), at("Tunnel", "t")]), json!([])]
        {
            let cluster = cluster(|object| object["status"]["addresses"] = unfit);
            assert_eq!(addresses(&cluster).unwrap_err().code(), Code::BadEndpoint);
        }
    }

    #[test]
    fn hosts_are_written_as_urls_want_them() {
        for (host, path, url) in [
            ("10.0.0.1", "", "https://10.0.0.1:6443"),
            ("fd00::1", "", "https://[fd00::1]:6443"),
            ("[fd00::1]", "", "https://[fd00::1]:6443"),
            ("api.example.org", "/clusters/one/", "https://api.example.org:6443/clusters/one"),
        ] {
            let mut address = at("Internal", host);
            address["path"] = json!(path);
            assert_eq!(of_status(json!([address])), [url]);
        }
    }

    #[test]
    fn the_addresses_of_the_spec_count_whatever_the_status_says() {
        let of_both = |spec: Value, status: Value| {
            urls(&cluster(|object| {
                object["spec"]["addresses"] = spec;
                object["status"]["addresses"] = status;
            }))
        };
        let (spec, status) = (json!([at("Real", "spec")]), json!([at("Internal", "status")]));
        assert_eq!(of_both(spec.clone(), json!([])), ["https://spec:6443"]);
        assert_eq!(of_both(spec, status.clone()), ["https://spec:6443"]);
        assert_eq!(of_both(json!([]), status), ["https://status:6443"]);
    }
}

#[cfg(test)]
mod inputs_tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::credential_policy::SEND_LABEL;

    fn made(credential: &Value, secret: Option<&Value>) -> Result<Inputs, Problem> {
        made_with(credential, secret, false)
    }

    fn made_with(
        credential: &Value,
        secret: Option<&Value>,
        insecure: bool,
    ) -> Result<Inputs, Problem> {
        let credential = ClusterCredential::read(credential.to_string().as_bytes()).unwrap();
        let secret =
            secret.map(|secret| SecretData::decode(secret.to_string().as_bytes()).unwrap());
        inputs(Vec::new(), credential, secret, insecure)
    }

    /// A Secret that its owner lets be sent.
    fn secret() -> Value {
        json!({"metadata": {"labels": {SEND_LABEL: "true"}}, "data": {"token": "c2VjcmV0", "ca.crt": "Y2E=", "tls.crt": "Y2VydA==", "tls.key": "a2V5"}})
    }

    #[test]
    fn what_stands_in_the_credential_wins_over_its_secret() {
        let credential =
            json!({"metadata": {"name": "cc"}, "token": "inline", "caCert": "aW5saW5l"});
        let inputs = made(&credential, Some(&secret())).unwrap();
        assert_eq!(inputs.token.unwrap().expose_secret(), "inline");
        assert_eq!(inputs.ca, b"ca", "its key is proven to servers of the Secret only");
        let pair = inputs.pair.unwrap();
        assert_eq!((&*pair.certificate, pair.key.expose_secret()), (&b"cert"[..], &b"key"[..]));
        assert!(inputs.fields.ca.contains("caCert") && inputs.fields.other_name.is_empty());
        let alone = made(&json!({"metadata": {"name": "cc"}}), Some(&secret())).unwrap();
        assert_eq!(alone.token.unwrap().expose_secret(), "secret");
        let trusting = json!({"data": {"ca.crt": "Y2E="}});
        let mut own = credential.clone();
        assert_eq!(made(&own, Some(&trusting)).unwrap().ca, b"inline");
        own["caCert"] = Value::Null;
        assert_eq!(made(&own, Some(&trusting)).unwrap().ca, b"ca");
    }

    /// rule:a-credential-goes-where-its-owner-sent-it
    #[test]
    fn an_inline_authority_is_never_joined_to_what_a_secret_holds() {
        let mine = json!({"metadata": {"name": "cc"}, "caCert": "bWluZQ==",
            "secretRef": {"namespace": "ns", "name": "one"}});
        for data in
            [json!({"token": "c2VjcmV0"}), json!({"tls.crt": "Y2VydA==", "tls.key": "a2V5"})]
        {
            let mut secret = json!({"metadata": {"labels": {SEND_LABEL: "true"}}, "data": data});
            for insecure in [false, true] {
                let problem = made_with(&mine, Some(&secret), insecure).unwrap_err();
                assert_eq!(problem.code(), Code::CredentialRefused);
                assert!(
                    problem.to_string().contains("Secret ns/one is not used: it has no ca.crt")
                );
            }
            secret["data"]["ca.crt"] = json!("Y2E=");
            assert_eq!(made(&mine, Some(&secret)).unwrap().ca, b"ca");
            for labels in [json!({}), json!(null), json!({SEND_LABEL: "false"})] {
                secret["metadata"]["labels"] = labels;
                let problem = made(&mine, Some(&secret)).unwrap_err();
                assert!(problem.to_string().contains("only with the label"), "{problem}");
            }
        }
        // One half of a pair from each is no way around it.
        let half =
            json!({"metadata": {"name": "cc"}, "clientCert": "Y2VydA==", "caCert": "bWluZQ=="});
        let unmarked = json!({"data": {"tls.key": "a2V5", "ca.crt": "Y2E="}});
        assert_eq!(made(&half, Some(&unmarked)).unwrap_err().code(), Code::CredentialRefused);
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
        let mut with_a_pair = secret();
        with_a_pair["data"]["token"] = json!("");
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
