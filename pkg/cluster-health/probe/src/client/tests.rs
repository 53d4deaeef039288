//! Inputs that make a client, and the problems reported for the others.

use memory_search::Mark;
use secrecy::SecretString;

use super::*;
use crate::inputs::WaivedChecks;
use crate::inputs::{ClientPair, Impersonation};

fn inputs(url: &str) -> Inputs {
    Inputs {
        addresses: vec![Address::parse(url).unwrap()],
        tls: WaivedChecks { everything: true, ..WaivedChecks::default() },
        ..Inputs::default()
    }
}

fn refused(inputs: &Inputs) -> Problem {
    Client::new(inputs, &TlsConfigs::default(), |_| None).expect_err("it cannot be used")
}

#[test]
fn what_cannot_be_used_is_told_with_its_code_and_without_secrets() {
    let key = rcgen::KeyPair::generate().unwrap();
    let own = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let pair = |certificate: &str, key: &str| {
        let key = key.as_bytes().to_vec().into();
        Some(ClientPair { certificate: certificate.into(), key })
    };
    let https = || inputs("https://api.example");
    let checked = || Inputs { tls: WaivedChecks::default(), ..https() };
    let proxy = |url: &str| Inputs { proxy: Some(SecretString::from(url)), ..https() };
    let rows = [
        (Inputs { addresses: vec![], ..https() }, Code::BadEndpoint, "no address"),
        // rule:plain-http-needs-leave
        (inputs("http://api.example"), Code::BadEndpoint, "--allow-plaintext-endpoints"),
        (Inputs { ca: b"hunter2".to_vec(), ..checked() }, Code::CaParse, "CA bundle"),
        (Inputs { token: Some(" ".into()), ..https() }, Code::TokenEmpty, "empty"),
        (Inputs { token: Some("hun\nter2".into()), ..https() }, Code::TokenEmpty, "line break"),
        (Inputs { pair: pair("hunter2", &other), ..https() }, Code::ClientCertificate, "PEM"),
        (Inputs { pair: pair(&own, "hunter2"), ..https() }, Code::ClientCertificate, "private key"),
        (Inputs { pair: pair(&own, &other), ..https() }, Code::ClientCertificate, "together"),
        (proxy("user:hunter2@proxy:3128"), Code::BadProxy, "scheme"),
        (proxy("ftp://user:hunter2@proxy"), Code::BadProxy, "socks5"),
        (proxy("http://"), Code::BadProxy, "proxy"),
    ];
    for (inputs, code, words) in rows {
        let problem = refused(&inputs);
        assert_eq!(problem.code(), code, "{problem}");
        let shown = format!("{problem} {problem:?}");
        assert!(shown.contains(words) && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_path_that_is_none_is_not_asked_for() {
    let client =
        Client::new(&inputs("https://api.example"), &TlsConfigs::default(), |_| None).unwrap();
    assert_eq!(client.request(0, "/readyz?verbose").unwrap().uri(), "/readyz?verbose");
    let refused = client.request(0, "/a b").unwrap_err();
    assert_eq!(refused.code, Code::BadEndpoint);
    assert!(refused.detail.contains("/a b"), "{}", refused.detail);
}

#[test]
fn the_fingerprint_tells_any_two_inputs_apart_and_nothing_else() {
    let url = "https://api.example";
    let pair = |certificate: &str, key: &str| {
        let key = key.as_bytes().to_vec().into();
        Some(ClientPair { certificate: certificate.into(), key })
    };
    let two = || vec![Address::parse("a").unwrap(), Address::parse("b").unwrap()];
    let swapped = || two().into_iter().rev().collect();
    let who = |user: &str, group: &str| {
        let groups = vec![group.to_owned()];
        Some(Impersonation { user: user.into(), groups, ..Default::default() })
    };
    let all = [
        inputs(url),
        inputs("https://api.example/path"),
        Inputs { addresses: two(), ..inputs(url) },
        Inputs { addresses: swapped(), ..inputs(url) },
        Inputs { ca: b"ca".to_vec(), ..inputs(url) },
        Inputs { token: Some("ca".into()), ..inputs(url) },
        Inputs { proxy: Some("ca".into()), ..inputs(url) },
        Inputs { user_agent: "ca".into(), ..inputs(url) },
        Inputs { pair: pair("ab", "c"), ..inputs(url) },
        Inputs { pair: pair("a", "bc"), ..inputs(url) },
        Inputs { impersonate: who("ab", "c"), ..inputs(url) },
        Inputs { impersonate: who("a", "bc"), ..inputs(url) },
        Inputs { impersonate: Some(Impersonation::default()), ..inputs(url) },
        Inputs { allow_plaintext: true, ..inputs(url) },
        Inputs { tls: WaivedChecks::from_names(["SubjectName"]), ..inputs(url) },
        Inputs { tls: WaivedChecks::from_names(["ValidityPeriod"]), ..inputs(url) },
    ];
    for (number, one) in all.iter().enumerate() {
        assert_eq!(one.fingerprint(), one.clone().fingerprint());
        for other in &all[..number] {
            assert_ne!(one.fingerprint(), other.fingerprint(), "{one:?} {other:?}");
        }
    }
    assert_eq!(all[0].fingerprint().to_string().len(), 8);
}

#[test]
fn a_client_that_is_dropped_leaves_no_copy_of_its_token_in_memory() {
    let token = Mark::random();
    let made = Inputs {
        token: Some(SecretString::from(token.secret().as_str())),
        ..inputs("https://api.example")
    };
    let client = Client::new(&made, &TlsConfigs::default(), |_| None).unwrap();
    drop(made);
    assert!(token.is_in_memory(), "the client has it");
    drop(client);
    assert!(!token.is_in_memory());
}

#[test]
fn the_last_answer_of_each_address_counts() {
    let mut silent = Silent::default();
    for (endpoint, answered, count) in
        [(0, false, 1), (63, false, 2), (0, false, 2), (1, true, 2), (0, true, 1), (63, true, 0)]
    {
        silent.note(endpoint, answered);
        assert_eq!(silent.count(), count, "{endpoint} {answered}");
    }
}
