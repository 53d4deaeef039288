use super::*;

fn now() -> SystemTime {
    time(1_800_000_000)
}

fn authority() -> (Identity, Authority) {
    let made = new_authority(now()).unwrap();
    let read = Authority::read(&made.public, &made.private, now()).unwrap();
    (made, read)
}

fn parsed<T>(pem: &str, read: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    read(&X509Certificate::from_der(&der).unwrap().1)
}

#[test]
fn an_authority_signs_clusters_for_ten_years_and_no_other_authorities() {
    let (made, _) = authority();
    parsed(&made.public, |certificate| {
        assert_eq!(certificate.subject().to_string(), "CN=kubernetes");
        assert_eq!(certificate.issuer(), certificate.subject());
        let basic = certificate.basic_constraints().unwrap().unwrap();
        assert!(basic.critical && basic.value.ca);
        assert_eq!(basic.value.path_len_constraint, Some(0));
        assert!(certificate.key_usage().unwrap().unwrap().value.key_cert_sign());
        let validity = certificate.validity();
        assert_eq!(validity.not_before.timestamp(), 1_800_000_000 - 300);
        assert_eq!(validity.not_after.timestamp(), 1_800_000_000 + 3650 * 86400);
    });
}

#[test]
fn the_administrator_is_of_the_masters_and_may_only_be_a_client_for_a_year() {
    let (_, authority) = authority();
    let later = now() + Duration::from_secs(1000);
    let administrator = authority.administrator(later).unwrap();
    parsed(&administrator.public, |certificate| {
        assert_eq!(certificate.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        assert!(certificate.serial.bits() > 0);
        assert_eq!(certificate.validity().not_before.timestamp(), 1_800_000_000 - 300);
    });
    let until = authority.signed_until(&administrator.public).unwrap();
    assert_eq!(until, later + Duration::from_secs(365 * 86400));
    assert_eq!(renew_at(until), later + Duration::from_secs(365 * 43200));
    let (_, other) = self::authority();
    assert_eq!(other.signed_until(&administrator.public), None);
    assert_eq!(other.signed_until("no certificate"), None);
}

#[test]
fn an_authority_that_cannot_sign_is_refused_with_the_reason() {
    let (one, other) = (new_authority(now()).unwrap(), new_authority(now()).unwrap());
    let refused = |certificate: &str, key: &str, at| {
        Authority::read(certificate, key, at).err().map(|error| error.to_string()).unwrap()
    };
    assert!(refused(&one.public, &other.private, now()).contains("does not match its certificate"));
    let late = now() + AUTHORITY_LIFE;
    assert!(refused(&one.public, &one.private, late).contains("has expired"));
    assert!(refused("", &one.private, now()).contains("give one certificate in PEM"));
    let bad =
        refused(&one.public, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", now());
    assert!(bad.contains("cannot read the key") && !bad.contains("AAAA"), "{bad}");
}

/// Certificate and key of an authority that `openssl` made for these tests alone, for a hundred
/// years. Each key is in a form that kubeadm, kops or people use.
macro_rules! made_by_openssl {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("testdata/", $name, ".pem")))),*]
    };
}

#[test]
fn authorities_with_keys_of_every_common_form_sign() {
    let now = SystemTime::now();
    for (name, pem) in
        made_by_openssl!["rsa-pkcs1", "rsa-pkcs8", "p256-sec1", "p384-sec1", "p256-pkcs8"]
    {
        let authority =
            Authority::read(pem, pem, now).unwrap_or_else(|error| panic!("{name}: {error}"));
        let administrator = authority.administrator(now).unwrap();
        assert!(authority.signed_until(&administrator.public).is_some(), "{name}");
        parsed(&administrator.public, |client| {
            parsed(pem, |authority| {
                assert_eq!(client.issuer().as_raw(), authority.subject().as_raw(), "{name}");
            });
        });
    }
    let [(_, short)] = made_by_openssl!["rsa-1024"];
    assert!(matches!(Authority::read(short, short, now), Err(CertificateError::Key)));
}
