//! Versions, suites and groups that clients and a listener agree on.

use super::*;
use http::StatusCode;
use rustls::crypto::ring::{cipher_suite as suite, kx_group as group};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, NamedGroup};

use crate::{Access, Page, TlsChoice, reply};

/// A listener with these values of the TLS flags.
async fn chosen(oldest: &str, suites: &[&str], groups: &[i64]) -> Running {
    let suites: Vec<_> = suites.iter().map(ToString::to_string).collect();
    let choice = TlsChoice::new(oldest, &suites, groups);
    assert!(choice.refused.is_empty(), "{:?}", choice.refused);
    start(&ListenerOptions { tls: choice.options, ..loopback() }).await
}

fn speaking(version: &'static SupportedProtocolVersion) -> ClientConfig {
    client(ring::default_provider(), &[version]).with_no_client_auth()
}

async fn agreed_suite(server: &Running, config: ClientConfig) -> Option<CipherSuite> {
    let stream = server.connect_as(config).await.ok()?;
    Some(stream.get_ref().1.negotiated_cipher_suite()?.suite())
}

#[tokio::test]
async fn clients_of_tls_1_2_are_served_unless_the_oldest_version_is_1_3() {
    for (oldest, old_client) in
        [("", true), ("VersionTLS10", true), ("VersionTLS12", true), ("VersionTLS13", false)]
    {
        let server = chosen(oldest, &[], &[]).await;
        let connected = server.connect_as(speaking(&TLS12)).await;
        assert_eq!(connected.is_ok(), old_client, "{oldest:?}");
        if let Ok(stream) = connected {
            let request = Request::get("/livez").header("host", "x");
            let answer = send(stream, request.body(Full::default()).unwrap()).await;
            assert_eq!(answer.body, "ok", "{oldest:?}");
        }
        assert!(server.connect_as(speaking(&TLS13)).await.is_ok(), "{oldest:?}");
    }
}

#[tokio::test]
async fn only_the_named_suites_of_tls_1_2_are_agreed_on() {
    let server = chosen("", &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], &[]).await;
    let agreed = agreed_suite(&server, speaking(&TLS12)).await;
    assert_eq!(agreed, Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256));
    let cipher_suites = vec![suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384];
    let provider = CryptoProvider { cipher_suites, ..ring::default_provider() };
    let other = client(provider, &[&TLS12]).with_no_client_auth();
    assert_eq!(agreed_suite(&server, other).await, None);
    assert!(agreed_suite(&server, speaking(&TLS13)).await.is_some());
}

#[tokio::test]
async fn only_the_named_groups_are_agreed_on() {
    let server = chosen("", &[], &[24]).await;
    let stream = server.connect(&["h2"]).await;
    let agreed = stream.get_ref().1.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(agreed, NamedGroup::secp384r1);
    let provider = CryptoProvider { kx_groups: vec![group::X25519], ..ring::default_provider() };
    let other = client(provider, &[&TLS13]).with_no_client_auth();
    assert!(server.connect_as(other).await.is_err());
}

#[tokio::test]
async fn a_listener_without_a_client_ca_asks_for_no_certificate() {
    let server = start(&loopback()).await;
    server.pages.add(Page::new("/who", Access::Authorized, async |request| {
        reply::text(StatusCode::OK, format!("{:?}", request.peer.certificate))
    }));
    assert_eq!(server.get(&["h2"], "/who").await.body, "Absent");
}
