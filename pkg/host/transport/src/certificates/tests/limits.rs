use super::*;
use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};

fn refused(ca: CertificateParams, between: &[&str]) -> Option<Refused> {
    let ca = root(ca);
    let authorities = trusting(&[&ca]);
    let mut signers = vec![ca];
    for name in between {
        let next = intermediate(as_ca(name), &signers[signers.len() - 1]);
        signers.push(next);
    }
    let others: Vec<_> = signers[1..].iter().map(|signer| signer.der().clone()).collect();
    judge(&authorities, &leaf(&signers[signers.len() - 1]), &others).0.err()
}

#[test]
fn an_authority_that_is_not_valid_now_verifies_no_server_unless_dates_are_waived() {
    for (from, to, fault) in
        [(2020, 2021, AuthorityFault::Expired), (2030, 2031, AuthorityFault::NotValidYet)]
    {
        let mut ca = as_ca("ca");
        (ca.not_before, ca.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        assert_eq!(refused(ca.clone(), &[]), Some(Refused::Authority(fault)));
        let ca = root(ca);
        let waived = Terms { any_date: true, ..terms() };
        assert!(trusting(&[&ca]).judge(&leaf(&ca), &[], &waived).is_ok());
    }
}

#[test]
fn the_path_length_of_an_authority_counts() {
    let near = |most| {
        let mut ca = as_ca("ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(most));
        ca
    };
    let too_far = Some(Refused::Authority(AuthorityFault::PathLength));
    assert_eq!(refused(near(0), &[]), None);
    assert_eq!(refused(near(0), &["one"]), too_far);
    assert_eq!(refused(near(1), &["one"]), None);
    assert_eq!(refused(near(1), &["one", "two"]), too_far);
}

#[test]
fn the_usages_of_an_authority_count() {
    let with = |usages: &[ExtendedKeyUsagePurpose]| {
        let mut ca = as_ca("ca");
        ca.extended_key_usages = usages.to_vec();
        ca
    };
    assert_eq!(refused(with(&[ClientAuth]), &[]), None);
    assert_eq!(refused(with(&[Any]), &[]), None);
    let purpose = Some(Refused::Authority(AuthorityFault::Purpose));
    assert_eq!(refused(with(&[ServerAuth]), &[]), purpose);
}

#[test]
fn a_key_that_may_not_sign_certificates_signs_none() {
    let mut ca = as_ca("ca");
    ca.key_usages = vec![KeyUsagePurpose::CrlSign];
    assert_eq!(refused(ca, &[]), Some(Refused::Webpki(webpki::Error::UnknownIssuer)));

    let top = root(as_ca("ca"));
    let mut between = as_ca("between");
    between.key_usages = vec![KeyUsagePurpose::CrlSign];
    let between = intermediate(between, &top);
    let (verdict, _) = judge(&trusting(&[&top]), &leaf(&between), &[between.der().clone()]);
    assert_eq!(verdict, Err(Refused::Authority(AuthorityFault::MayNotSign)));
}

#[test]
fn a_certificate_that_is_no_authority_vouches_for_itself_alone() {
    let mut server = params("server");
    for is_ca in [IsCa::ExplicitNoCa, IsCa::NoCa] {
        server.is_ca = is_ca;
        let own = root(server.clone());
        let authorities = trusting(&[&own]);
        assert!(judge(&authorities, own.der(), &[]).0.is_ok());
        let unknown = Err(Refused::Webpki(webpki::Error::UnknownIssuer));
        assert_eq!(judge(&authorities, &leaf(&own), &[]).0, unknown);
    }
}

#[test]
fn a_verdict_holds_until_the_first_certificate_of_the_path_ends() {
    let until = |year| {
        let time = date_time_ymd(year, 1, 1).unix_timestamp();
        u64::try_from(time).unwrap()
    };
    for (ca_ends, between_ends, leaf_ends) in
        [(2031, 2032, 2033), (2033, 2031, 2032), (2033, 2032, 2031)]
    {
        let ending = |mut params: CertificateParams, year| {
            params.not_after = date_time_ymd(year, 1, 1);
            params
        };
        let ca = root(ending(as_ca("ca"), ca_ends));
        let between = intermediate(ending(as_ca("between"), between_ends), &ca);
        let shown = signed(ending(params("leaf"), leaf_ends), &between);
        let (verdict, _) = judge(&trusting(&[&ca]), &shown, &[between.der().clone()]);
        assert_eq!(verdict, Ok(Good { until: until(2031) }));
    }
}

/// A renewed CA has the same name and key as the one that has expired.
#[test]
fn of_two_certificates_of_one_authority_the_one_that_is_valid_counts() {
    let key = KeyPair::generate().unwrap();
    let mut old = as_ca("ca");
    old.not_after = date_time_ymd(2021, 1, 1);
    let old = old.self_signed(&key).unwrap().der().clone();
    let new = CertifiedIssuer::self_signed(as_ca("ca"), key).unwrap();
    let shown = leaf(&new);
    for bundle in [vec![old.clone(), new.der().clone()], vec![new.der().clone(), old]] {
        assert!(judge(&Authorities::new(bundle), &shown, &[]).0.is_ok());
    }
}
