//! From object and Secret to what a client is made of.

use base64::Engine as _;
use serde_json::{Value, json};

use super::*;
use crate::kubefed::testing::cluster;

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

fn secret(data: &Value) -> SecretData {
    SecretData::decode(json!({"data": data}).to_string().as_bytes()).unwrap()
}

fn whole() -> SecretData {
    secret(&json!({"token": base64("hunter2"), "ca.crt": base64("ca of the Secret")}))
}

#[test]
fn a_client_is_made_of_the_object_and_its_secret() {
    let object = cluster(|object| {
        object["spec"]["disabledTLSValidations"] = json!(["SubjectName"]);
        object["spec"]["proxyURL"] = json!("http://user:hunter2@proxy:3128");
    });
    let pair = json!({"token": base64("hunter2"), "tls.crt": base64("c"), "tls.key": base64("k")});
    let inputs = inputs(&object, Some(&secret(&pair)), false).unwrap();
    assert_eq!(inputs.addresses[0].to_string(), "https://10.0.0.1:6443");
    assert_eq!(inputs.token.as_ref().unwrap().expose_secret(), "hunter2");
    assert_eq!(inputs.pair.as_ref().unwrap().key.expose_secret(), b"k");
    assert!(inputs.tls.subject_name && !inputs.tls.validity_period && !inputs.allow_plaintext);
    assert!(inputs.proxy.is_some());
    let (ca, other_name) = (inputs.fields.ca, inputs.fields.other_name);
    assert!(ca.contains("caBundle") && other_name.contains("disabledTLSValidations"));
    assert!(!format!("{object:?} {inputs:?}").contains("hunter2"));
}

#[test]
fn the_bundle_of_the_object_goes_before_that_of_the_secret() {
    let ca_of = |object: &Object<KubeFedCluster>| {
        String::from_utf8(inputs(object, Some(&whole()), false).unwrap().ca).unwrap()
    };
    assert_eq!(ca_of(&cluster(|_| {})), "ca of the Secret");
    let own = cluster(|object| object["spec"]["caBundle"] = json!(base64("ca of the object")));
    assert_eq!(ca_of(&own), "ca of the object");
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[test]
fn a_token_of_a_service_account_is_sent_only_where_a_label_allows_it() {
    let labelled = json!({"infra-controller-manager/send-to-member": "true"});
    for (kind, labels, is_sent) in [
        // As kubefedctl join makes it: of no type, with a token and nothing else.
        (Value::Null, Value::Null, true),
        (json!("Opaque"), Value::Null, true),
        (json!("kubernetes.io/service-account-token"), Value::Null, false),
        (json!("kubernetes.io/service-account-token"), json!({"a": "true"}), false),
        (json!("kubernetes.io/service-account-token"), labelled, true),
    ] {
        let whole = json!({"metadata": {"labels": labels}, "type": kind,
            "data": {"token": base64("t")}});
        let secret = SecretData::decode(whole.to_string().as_bytes()).unwrap();
        let bundled = cluster(|it| it["spec"]["caBundle"] = json!(base64("ca")));
        let made = inputs(&bundled, Some(&secret), false);
        assert_eq!(made.is_ok(), is_sent, "{whole}");
        if let Err(problem) = made {
            assert_eq!(problem.code(), Code::CredentialRefused);
            assert!(problem.to_string().contains("Secret one-secret is not used"), "{problem}");
        }
    }
}

#[test]
fn what_is_missing_is_told_by_its_field_or_key() {
    let fine = || cluster(|_| {});
    let with = |path: &str, value: &str| {
        cluster(|object| *object.pointer_mut(path).unwrap() = json!(value))
    };
    let no_bundle = cluster(|object| object["spec"]["caBundle"] = json!("%%%"));
    let of = |data: Value| Some(secret(&data));
    let rows = [
        (with("/spec/apiEndpoint", " "), of(json!({})), Code::BadEndpoint, "spec.apiEndpoint"),
        (with("/spec/apiEndpoint", "ftp://a"), of(json!({})), Code::BadEndpoint, "scheme"),
        (with("/spec/secretRef/name", ""), None, Code::SecretMissing, "spec.secretRef.name"),
        (with("/spec/secretRef/name", "../x"), None, Code::SecretMissing, "spec.secretRef.name"),
        (fine(), None, Code::SecretMissing, "Secret one-secret does not exist"),
        (fine(), of(json!({})), Code::SecretMissing, "Secret one-secret has no key token"),
        (fine(), of(json!({"token": base64(" \n")})), Code::TokenEmpty, "key token"),
        (fine(), of(json!({"token": ""})), Code::TokenEmpty, "key token"),
        (no_bundle, Some(whole()), Code::CaParse, "spec.caBundle"),
        (
            fine(),
            of(json!({"token": base64("t"), "tls.crt": base64("c")})),
            Code::ClientCertificate,
            "only one of the keys",
        ),
    ];
    for (object, secret, code, words) in rows {
        let problem = inputs(&object, secret.as_ref(), false).unwrap_err();
        assert_eq!(problem.code(), code, "{problem}");
        assert!(problem.to_string().contains(words), "{problem}");
    }
}

/// `rule:secret-of-the-same-namespace`
#[test]
fn the_secret_is_in_the_namespace_of_the_object() {
    assert_eq!(secret_key(&cluster(|_| {})).as_deref(), Some("fed/one-secret"));
    for name in ["", "other/one", "..", ".hidden", "a b"] {
        let object = cluster(|object| object["spec"]["secretRef"]["name"] = json!(name));
        assert_eq!(secret_key(&object), None, "{name}");
    }
}

#[test]
fn endpoints_that_mean_the_same_are_spelled_the_same() {
    for text in ["https://10.0.0.1:443", "10.0.0.1", " https://10.0.0.1/ "] {
        let object = cluster(|object| object["spec"]["apiEndpoint"] = json!(text));
        assert_eq!(endpoint(&object), "https://10.0.0.1:443");
    }
}
