use std::collections::HashSet;

use super::*;

/// (code, its word, what it concludes)
const WORDS: [(Code, &str, Verdict); 27] = [
    (Code::Dns, "dns", Verdict::Unreachable),
    (Code::ConnectRefused, "connect-refused", Verdict::Unreachable),
    (Code::ConnectTimeout, "connect-timeout", Verdict::Unreachable),
    (Code::ConnectFailed, "connect-failed", Verdict::Unreachable),
    (Code::TlsVerify, "tls-verify", Verdict::Unreachable),
    (Code::TlsHandshake, "tls-handshake", Verdict::Unreachable),
    (Code::Proxy, "proxy", Verdict::Unreachable),
    (Code::Reset, "reset", Verdict::Unreachable),
    (Code::Timeout, "timeout", Verdict::Unreachable),
    (Code::OwnLimit, "own-limit", Verdict::Unreachable),
    (Code::Protocol, "protocol", Verdict::Unreachable),
    (Code::Http(418), "http-418", Verdict::Unhealthy),
    (Code::Body, "body", Verdict::Unhealthy),
    (Code::Unauthorized, "unauthorized", Verdict::Unhealthy),
    (Code::Forbidden, "forbidden", Verdict::Unhealthy),
    (Code::NodesNotReady, "nodes-not-ready", Verdict::Unhealthy),
    (Code::NodeNotReady, "node-not-ready", Verdict::Unhealthy),
    (Code::NodeMissing, "node-missing", Verdict::Unhealthy),
    (Code::SecretMissing, "secret-missing", Verdict::Config),
    (Code::CredentialRefused, "credential-refused", Verdict::Config),
    (Code::TokenEmpty, "token-empty", Verdict::Config),
    (Code::BadEndpoint, "bad-endpoint", Verdict::Config),
    (Code::BadImpersonation, "bad-impersonation", Verdict::Config),
    (Code::AddressDenied, "address-denied", Verdict::Config),
    (Code::BadProxy, "bad-proxy", Verdict::Config),
    (Code::CaParse, "ca-parse", Verdict::Config),
    (Code::ClientCertificate, "client-certificate", Verdict::Config),
];

#[test]
fn every_code_has_its_word_and_its_verdict() {
    for (code, word, verdict) in WORDS {
        assert_eq!((code.to_string().as_str(), code.verdict()), (word, verdict));
    }
}

#[test]
fn a_server_that_invents_statuses_makes_few_series() {
    let labels: HashSet<_> = (0..=u16::MAX).map(|status| Code::Http(status).label()).collect();
    assert_eq!(labels.len(), 11);
    assert_eq!(Code::Http(503).label(), "http-503");
    assert_eq!(Code::Http(999).label(), "http-other");
}
