//! Certificates and keys that cannot be read: what is wrong is named, a key is never quoted.

use super::*;

#[test]
fn what_is_no_certificate_or_key_is_named_and_a_key_never_quoted() {
    let key = KeyPair::generate().unwrap();
    let own = params(&[]).self_signed(&key).unwrap().pem();
    let other = KeyPair::generate().unwrap().serialize_pem();
    assert!(matches!(Trust::from_pem(b"nothing"), Err(TlsError::NoCertificate)));
    let no_key = ClientCertificate::from_pem(own.as_bytes(), own.as_bytes());
    assert!(matches!(no_key, Err(TlsError::NoKey)));
    let mixed = ClientCertificate::from_pem(own.as_bytes(), other.as_bytes()).unwrap();
    let error = TlsConfigs::default().get(&Trust::anybody(), Some(&mixed), Protocol::Http1);
    let error = error.unwrap_err();
    assert!(matches!(error, TlsError::Pair(_)), "{error}");
    assert_hides(&other, &format!("{mixed:?} {error:?} {error}"));
}

/// Fails when `shown` holds a line of `key`, or bytes of it as a `Debug` of bytes prints them.
fn assert_hides(key: &str, shown: &str) {
    for line in key.lines() {
        let decimal = format!("{:?}", &line.as_bytes()[..line.len().min(8)]);
        let decimal = decimal.trim_matches(['[', ']']);
        assert!(!shown.contains(line) && !shown.contains(decimal), "{shown}");
    }
}

#[test]
fn a_key_that_is_not_pem_is_reported_without_its_content() {
    let key = KeyPair::generate().unwrap();
    let own = params(&[]).self_signed(&key).unwrap().pem();
    let whole = key.serialize_pem();
    let rows = [
        (whole.replace('\n', " "), "line breaks"),
        (whole.trim_end().replace('\n', "\\n"), "line breaks"),
        (whole.replace("-----END PRIVATE KEY-----", ""), "END"),
        (whole.replacen("KEY-----\n", "KEY-----\n!", 1), "base64"),
        (whole.replacen("KEY-----\n", "KEY\n", 1), "BEGIN"),
    ];
    for (text, words) in rows {
        for error in [
            ClientCertificate::from_pem(own.as_bytes(), text.as_bytes()).unwrap_err(),
            Trust::from_pem(text.as_bytes()).unwrap_err(),
        ] {
            let shown = format!("{error} {error:?} {error:#?} {}", crate::ErrorChain(&error));
            assert!(shown.contains(words), "{shown}");
            assert_hides(&whole, &shown);
        }
    }
}
