use super::*;

fn choose(oldest: &str, suites: &[&str], groups: &[i64]) -> TlsChoice {
    let suites: Vec<_> = suites.iter().map(ToString::to_string).collect();
    TlsChoice::new(oldest, &suites, groups)
}

fn versions(choice: &TlsChoice) -> usize {
    choice.options.versions.len()
}

fn suites(choice: &TlsChoice) -> Vec<String> {
    choice.options.suites.iter().copied().map(iana_name).collect()
}

fn messages(findings: &[TlsFinding]) -> Vec<String> {
    findings.iter().map(|found| format!("--{}: {}", found.flag, found.message)).collect()
}

#[test]
fn nothing_given_is_all_that_the_library_can_do_from_tls_1_2_on() {
    let choice = choose("", &[], &[]);
    assert_eq!((versions(&choice), suites(&choice).len()), (2, 9));
    assert_eq!(choice.options.groups.len(), 3);
    assert!(choice.refused.is_empty() && choice.warned.is_empty());
}

#[test]
fn versions_are_a_table() {
    for (name, count, warnings, refusals) in [
        ("VersionTLS10", 2, 1, 0),
        ("VersionTLS11", 2, 1, 0),
        ("VersionTLS12", 2, 0, 0),
        ("VersionTLS13", 1, 0, 0),
        ("1.3", 2, 0, 1),
        ("versiontls13", 2, 0, 1),
    ] {
        let choice = choose(name, &[], &[]);
        let found = (versions(&choice), choice.warned.len(), choice.refused.len());
        assert_eq!(found, (count, warnings, refusals), "{name}");
    }
    assert_eq!(
        messages(&choose("VersionTLS10", &[], &[]).warned),
        ["--tls-min-version: VersionTLS10 is not served; the oldest version is TLS 1.2"]
    );
}

#[test]
fn named_suites_are_offered_together_with_those_of_tls_1_3() {
    let choice = choose("", &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], &[]);
    assert_eq!(
        suites(&choice),
        [
            "TLS_AES_256_GCM_SHA384",
            "TLS_AES_128_GCM_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        ]
    );
    assert_eq!(versions(&choice), 2);
}

#[test]
fn suites_of_tls_1_3_alone_leave_tls_1_2_out_and_cannot_be_picked_from() {
    let choice = choose("", &["TLS_AES_128_GCM_SHA256"], &[]);
    assert_eq!((suites(&choice).len(), versions(&choice)), (3, 1));
}

#[test]
fn gos_older_names_are_understood() {
    let choice = choose("", &["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"], &[]);
    let last = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
    assert_eq!(suites(&choice).last().map(String::as_str), Some(last));
}

#[test]
fn a_suite_of_go_that_the_library_lacks_is_a_warning_and_nothing_else_left_a_refusal() {
    let lacking = "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA";
    let choice = choose("", &[lacking, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], &[]);
    let warning = format!("--tls-cipher-suites: {lacking} is not supported and ignored");
    assert_eq!(messages(&choice.warned), [warning]);
    assert_eq!((suites(&choice).len(), choice.refused.len()), (4, 0));

    let choice = choose("", &[lacking], &[]);
    assert_eq!(choice.refused.len(), 1, "{choice:?}");
    let message = &choice.refused[0].message;
    assert!(message.contains("none of these cipher suites is supported"), "{message}");
    assert!(message.contains("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"), "{message}");
}

#[test]
fn an_unknown_suite_is_refused() {
    let choice = choose("", &["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_ROT13"], &[]);
    let refusal = "--tls-cipher-suites: \"TLS_RSA_WITH_ROT13\" is not a cipher suite";
    assert_eq!(messages(&choice.refused), [refusal]);
}

#[test]
fn groups_are_taken_in_the_order_given() {
    let choice = choose("", &[], &[24, 29]);
    let numbers: Vec<_> = choice.options.groups.iter().map(|group| iana_number(*group)).collect();
    assert_eq!(numbers, [24, 29]);
}

#[test]
fn groups_of_go_that_the_library_lacks_warn_and_others_are_refused() {
    let choice = choose("", &[], &[4588, 23]);
    let warning = "--tls-curve-preferences: 4588 (X25519MLKEM768) is not supported and ignored";
    assert_eq!(messages(&choice.warned), [warning]);
    assert_eq!((choice.options.groups.len(), choice.refused.len()), (1, 0));
    assert_eq!(choose("", &[], &[25]).refused.len(), 1, "nothing is left");
    let unknown = choose("", &[], &[23, 7]).refused;
    assert_eq!(messages(&unknown), ["--tls-curve-preferences: 7 is not a key exchange group"]);
}
