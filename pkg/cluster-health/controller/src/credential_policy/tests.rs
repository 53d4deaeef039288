//! Every case there is.

use serde_json::json;

use super::*;

const BOTH: [bool; 2] = [false, true];

/// rule:a-credential-goes-where-its-owner-sent-it
#[test]
fn nothing_is_asked_for_an_unknown_caller_or_under_the_name_of_another_object() {
    for (asker, expected) in [
        (Asker::Command, Ok(())),
        (Asker::AuthenticatedReview { name_is_taken: false }, Ok(())),
        (Asker::AuthenticatedReview { name_is_taken: true }, Err(Refusal::NameIsTaken)),
        (Asker::UnauthenticatedReview, Err(Refusal::UnknownCaller)),
    ] {
        assert_eq!(may_ask(asker), expected, "{asker:?}");
    }
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[test]
fn a_credential_is_for_the_cluster_of_its_name_and_tenant_and_for_no_other() {
    let words = ["", "a", "b", "A", "a "];
    for (cluster, tenant, name, of) in words
        .iter()
        .flat_map(|cluster| words.map(|tenant| (*cluster, tenant)))
        .flat_map(|(cluster, tenant)| {
            words.iter().flat_map(move |name| words.map(|of| (cluster, tenant, *name, of)))
        })
    {
        let credential = json!({"clusterName": cluster, "tenantID": tenant}).to_string();
        let credential = ClusterCredential::read(credential.as_bytes()).unwrap();
        let expected = match (cluster == name, tenant == of) {
            _ if cluster.is_empty() => Err(Refusal::Unassigned),
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::Tenant),
            (false, _) => Err(Refusal::ClusterName),
        };
        assert_eq!(is_for(&credential, Target { name, tenant: of }), expected);
    }
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[test]
fn a_secret_is_sent_as_its_type_its_label_and_its_authority_allow() {
    use Reference::{ClusterCredential, OtherNamespace, SameNamespace};
    for (is_service_account_token, may_be_sent, has_ca) in BOTH
        .iter()
        .flat_map(|token| BOTH.map(|label| (*token, label)))
        .flat_map(|(token, label)| BOTH.map(|ca| (token, label, ca)))
    {
        let facts = SecretFacts { is_service_account_token, may_be_sent, has_ca };
        let sent = |reference| may_send(reference, facts).is_ok();
        assert_eq!(sent(SameNamespace), may_be_sent || !is_service_account_token, "{facts:?}");
        assert_eq!(sent(OtherNamespace), may_be_sent, "{facts:?}");
        assert_eq!(sent(ClusterCredential), may_be_sent && has_ca, "{facts:?}");
    }
    let none = SecretFacts::default();
    let marked = SecretFacts { may_be_sent: true, ..none };
    let token = SecretFacts { is_service_account_token: true, has_ca: true, ..none };
    assert_eq!(may_send(ClusterCredential, none), Err(Refusal::Unmarked));
    assert_eq!(may_send(ClusterCredential, marked), Err(Refusal::NoAuthority));
    assert_eq!(may_send(SameNamespace, token), Err(Refusal::ServiceAccountToken));
}

#[test]
fn a_refusal_names_the_object_and_what_has_to_be_done() {
    let problem = Refusal::Unmarked.problem("Secret fed/one");
    assert_eq!(problem.code(), Code::CredentialRefused);
    let told = "Secret fed/one is not used: an object outside of its namespace may use it only with the label infra-controller-manager/send-to-member: \"true\"";
    assert_eq!(problem.to_string(), told);
    assert_eq!(Refusal::Unassigned.problem("x").code(), Code::SecretMissing);
    assert!(Refusal::ClusterName.to_string().contains("clusterName"));
    assert!(Refusal::Tenant.to_string().contains("tenantID"));
}

/// rule:secret-of-the-same-namespace
#[test]
fn a_secret_is_read_in_the_namespace_for_them_and_by_a_name() {
    let read = |namespace: &str, name: &str, only: Option<&str>| {
        may_read(&SecretRef { namespace: namespace.into(), name: name.into() }, only)
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
