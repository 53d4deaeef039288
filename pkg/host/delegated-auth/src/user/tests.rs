mod request_header;

use super::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

fn certificate(names: &[(DnType, &str)]) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
}

#[test]
fn the_common_name_is_the_user_and_organizations_are_groups() {
    let second_group = DnType::CustomDnType(vec![2, 5, 4, 10]);
    let names = [(DnType::CommonName, "ada"), (DnType::OrganizationName, "a"), (second_group, "b")];
    let user = Subject::of(&certificate(&names)).unwrap().into_user().unwrap();
    assert_eq!(user.name, "ada");
    assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
}

#[test]
fn a_certificate_without_a_name_has_no_user() {
    let subject = Subject::of(&certificate(&[(DnType::OrganizationName, "a")])).unwrap();
    assert_eq!(subject.common_name, "");
    assert_eq!(subject.into_user(), None);
}

#[test]
fn bytes_that_are_no_certificate_have_no_subject() {
    assert_eq!(Subject::of(&CertificateDer::from(vec![1, 2, 3])), None);
    assert_eq!(Subject::of(&CertificateDer::from(Vec::new())), None);
}
