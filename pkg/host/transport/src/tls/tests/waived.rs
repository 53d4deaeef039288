//! `rule:a-waiver-leaves-the-other-checks`

use super::*;
use crate::certificates::{Validity, validity};

const ANY_NAME: Waived = Waived { name: true, dates: false };
const ANY_DATE: Waived = Waived { name: false, dates: true };

fn valid_in(mut params: CertificateParams, from: i32, to: i32) -> CertificateParams {
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}

fn intermediate(params: CertificateParams, by: &Signer) -> Signer {
    let mut params = as_authority(params);
    params.distinguished_name.push(DnType::CommonName, "intermediate");
    CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), by).unwrap()
}

#[test]
fn a_waived_name_leaves_authority_and_dates() {
    let (ca, other) = (authority("ca"), authority("other"));
    let bundle = [ca.der().clone()];
    let server = || params(&["api.example"]);
    let rows = [
        (signed(server(), &ca), None),
        (signed(params(&[]), &ca), None),
        (signed(server(), &other), Some("add the CA")),
        (signed(valid_in(server(), 2020, 2021), &ca), Some("expired")),
        (signed(valid_in(server(), 2030, 2031), &ca), Some("not valid yet")),
    ];
    for (leaf, refused) in rows {
        let verdict = judge_chain(&bundle, ANY_NAME, &[leaf], "elsewhere.example");
        match refused {
            None => assert_eq!(verdict, Ok(())),
            Some(words) => assert!(verdict.clone().unwrap_err().contains(words), "{verdict:?}"),
        }
    }
}

#[test]
fn waived_dates_leave_authority_and_name_for_every_certificate_of_the_chain() {
    let (ca, other) = (authority("ca"), authority("other"));
    let bundle = [ca.der().clone()];
    let server = || params(&["api.example"]);
    let past = intermediate(valid_in(params(&[]), 2010, 2012), &ca);
    let mut client = server();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let no_issuer = {
        let params = valid_in(params(&["between"]), 2010, 2012);
        CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &ca).unwrap()
    };
    // (the certificate of the server, the issuer that it sends, the message)
    let rows: [(_, Option<&Signer>, _); 9] = [
        (signed(server(), &ca), None, None),
        (signed(valid_in(server(), 2020, 2021), &ca), None, None),
        (signed(valid_in(server(), 2045, 2055), &ca), None, None),
        // There is no time at which both were valid.
        (signed(valid_in(server(), 2045, 2046), &past), Some(&past), None),
        (signed(valid_in(server(), 2020, 2021), &past), None, Some("add the CA")),
        (signed(valid_in(server(), 2020, 2021), &other), None, Some("add the CA")),
        (signed(valid_in(params(&["other.example"]), 2020, 2021), &ca), None, Some("other.ex")),
        (signed(valid_in(client, 2020, 2021), &ca), None, Some("serverAuth")),
        (signed(valid_in(server(), 2020, 2021), &no_issuer), Some(&no_issuer), Some("")),
    ];
    for (number, (leaf, issuer, refused)) in rows.into_iter().enumerate() {
        let chain: Vec<_> = [leaf].into_iter().chain(issuer.map(|by| by.der().clone())).collect();
        let verdict = judge_chain(&bundle, ANY_DATE, &chain, "api.example");
        match refused {
            None => assert_eq!(verdict, Ok(()), "row {number}"),
            Some(words) => {
                let error = verdict.expect_err(&format!("row {number}"));
                assert!(error.contains(words), "row {number}: {error}");
            }
        }
    }
}

#[test]
fn waived_dates_do_not_let_a_changed_certificate_pass() {
    let ca = authority("ca");
    let leaf = signed(valid_in(params(&["api.example"]), 2020, 2021), &ca);
    let mut changed = leaf.to_vec();
    let at = changed.windows(11).position(|bytes| bytes == b"api.example").unwrap();
    changed[at..at + 11].copy_from_slice(b"abi.example");
    let verdict = judge_chain(&[ca.der().clone()], ANY_DATE, &[changed.into()], "abi.example");
    assert!(verdict.is_err());
}

#[test]
fn an_expired_certificate_that_is_its_own_authority_is_good_where_dates_are_waived() {
    let leaf = authority_as_server(valid_in(params(&["api.example"]), 2020, 2021));
    let bundle = std::slice::from_ref(&leaf);
    assert!(judge(bundle, &leaf, "api.example").is_err());
    let chain = std::slice::from_ref(&leaf);
    assert_eq!(judge_chain(bundle, ANY_DATE, chain, "api.example"), Ok(()));
    assert!(judge_chain(bundle, ANY_DATE, chain, "other.example").is_err());
    let both = Waived { name: true, dates: true };
    assert_eq!(judge_chain(bundle, both, chain, "other.example"), Ok(()));
}

#[test]
fn the_validity_of_a_certificate_is_read_to_the_second() {
    let leaf = signed(valid_in(params(&["api.example"]), 2020, 2055), &authority("ca"));
    let seconds = |year| u64::try_from(date_time_ymd(year, 1, 1).unix_timestamp()).unwrap();
    assert_eq!(validity(&leaf), Some(Validity { from: seconds(2020), to: seconds(2055) }));
    assert_eq!(validity(&b"no certificate".to_vec().into()), None);
}
