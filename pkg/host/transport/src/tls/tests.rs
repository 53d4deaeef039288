//! Good and refused certificates of servers, the messages about refused ones, and shared configurations.

mod material;
mod version_1;
mod waived;

use super::*;
use std::collections::VecDeque;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConnection, HandshakeKind, ServerConfig, ServerConnection};

type Signer = CertifiedIssuer<'static, KeyPair>;

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, "server");
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2040, 1, 1);
    params
}

fn as_authority(mut params: CertificateParams) -> CertificateParams {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// What `openssl req -x509` makes: authority and server in one.
fn authority_as_server(params: CertificateParams) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    as_authority(params).self_signed(&key).unwrap().der().clone()
}

fn authority(name: &str) -> Signer {
    let mut params = as_authority(params(&[]));
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn signed(params: CertificateParams, by: &Signer) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, by).unwrap().der().clone()
}

/// The result of the verifier of `bundle` for `leaf`, shown for `name` in 2026.
fn judge(
    bundle: &[CertificateDer<'static>],
    leaf: &CertificateDer,
    name: &str,
) -> Result<(), String> {
    judge_chain(bundle, Waived::default(), std::slice::from_ref(leaf), name)
}

/// Like [`judged`], with the names of `fields`.
fn judge_speaking_of(
    fields: Fields,
    bundle: &[CertificateDer<'static>],
    leaf: &CertificateDer,
    name: &str,
) -> String {
    let bundle = Bundle::new(bundle, Waived::default(), fields).unwrap();
    judge_by(Judge::Bundle(bundle), std::slice::from_ref(leaf), name).unwrap_err()
}

/// Like [`judged`], for a chain and with some checks `waived`.
fn judge_chain(
    bundle: &[CertificateDer<'static>],
    waived: Waived,
    chain: &[CertificateDer],
    name: &str,
) -> Result<(), String> {
    let bundle = Bundle::new(bundle, waived, Fields::default()).unwrap();
    judge_by(Judge::Bundle(bundle), chain, name)
}

fn judge_by(judge: Judge, chain: &[CertificateDer], name: &str) -> Result<(), String> {
    let provider = rustls::crypto::ring::default_provider();
    let verifier = ServerVerifier::new(judge, &provider);
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_780_000_000));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let verdict = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now);
    verdict.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn a_certificate_signed_by_the_bundle_is_good() {
    let authority = authority("ca");
    let leaf = signed(params(&["api.example"]), &authority);
    assert_eq!(judge(&[authority.der().clone()], &leaf, "api.example"), Ok(()));
}

#[test]
fn a_certificate_that_is_itself_in_the_bundle_is_good_though_it_is_an_authority() {
    let leaf = authority_as_server(params(&["api.example", "10.0.0.1"]));
    let bundle = [authority("other").der().clone(), leaf.clone()];
    assert_eq!(judge(&bundle, &leaf, "api.example"), Ok(()));
    assert_eq!(judge(&bundle, &leaf, "10.0.0.1"), Ok(()));
}

#[test]
fn a_leaf_that_is_itself_in_the_bundle_is_valid_without_its_ca() {
    let leaf = signed(params(&["api.example"]), &authority("unknown"));
    assert_eq!(judge(std::slice::from_ref(&leaf), &leaf, "api.example"), Ok(()));
}

#[test]
fn a_servers_own_certificate_in_the_bundle_verifies_no_other_server() {
    for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa] {
        let mut server = params(&["server.example"]);
        server.is_ca = is_ca;
        let server = CertifiedIssuer::self_signed(server, KeyPair::generate().unwrap()).unwrap();
        let leaf = signed(params(&["api.example"]), &server);
        let own = server.der().clone();
        for bundle in [vec![own.clone()], vec![authority("ca").der().clone(), own.clone()]] {
            let error = judge(&bundle, &leaf, "api.example").unwrap_err();
            assert!(error.contains("add the CA that signed it"), "{is_ca:?}: {error}");
            assert_eq!(judge(&bundle, &own, "server.example"), Ok(()), "{is_ca:?}");
        }
    }
}

#[test]
fn an_authority_vouches_while_it_is_valid() {
    for (from, until, is_valid) in
        [(1975, 1980, false), (1975, 2040, true), (2020, 2021, false), (2050, 2060, false)]
    {
        let mut ca = as_authority(params(&[]));
        ca.not_before = date_time_ymd(from, 1, 1);
        ca.not_after = date_time_ymd(until, 1, 1);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let leaf = signed(params(&["api.example"]), &ca);
        let verdict = judge(&[ca.der().clone()], &leaf, "api.example");
        assert_eq!(verdict.is_ok(), is_valid, "{from}: {verdict:?}");
        let named = verdict.err().is_none_or(|error| error.contains("the CA that signed it"));
        assert!(named, "the server's own dates are good");
    }
}

#[test]
fn a_server_alone_in_the_bundle_is_refused_once_it_has_expired() {
    let mut params = params(&["api.example"]);
    params.not_after = date_time_ymd(2021, 1, 1);
    let leaf = signed(params, &authority("unknown"));
    let error = judge(std::slice::from_ref(&leaf), &leaf, "api.example").unwrap_err();
    assert!(error.contains("expired"), "{error}");
}

#[test]
fn being_in_the_bundle_excuses_neither_another_name_nor_wrong_dates() {
    let leaf = authority_as_server(params(&["api.example"]));
    let error = judge(std::slice::from_ref(&leaf), &leaf, "other.example").unwrap_err();
    assert!(error.contains("api.example") && error.contains("other.example"), "{error}");
    assert!(error.contains("tls-server-name"), "{error}");

    for (from, until, words) in [(2020, 2021, "expired"), (2030, 2031, "not valid yet")] {
        let mut params = params(&["api.example"]);
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let leaf = authority_as_server(params);
        let error = judge(std::slice::from_ref(&leaf), &leaf, "api.example").unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_authority_of_the_same_name_that_is_not_in_the_bundle_is_refused() {
    let known = authority_as_server(params(&["api.example"]));
    let other = authority_as_server(params(&["api.example"]));
    let error = judge(&[known], &other, "api.example").unwrap_err();
    assert!(error.contains("CA:TRUE") && error.contains("CA:FALSE"), "{error}");
}

#[test]
fn a_refusal_says_what_to_mend() {
    let ca = authority("ca");
    let bundle = [ca.der().clone()];
    let mut for_clients = params(&["api.example"]);
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    for (leaf, words) in [
        (signed(params(&["api.example"]), &authority("x")), "add the CA that signed it"),
        (signed(params(&[]), &ca), "subject alternative name"),
        (signed(for_clients, &ca), "serverAuth"),
    ] {
        let error = judge(&bundle, &leaf, "api.example").unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_same_material_makes_one_configuration_and_other_material_another() {
    let configs = TlsConfigs::default();
    let (one, two) = (authority("one"), authority("two"));
    let trust = |ca: &Signer| Trust::from_pem(ca.pem().as_bytes()).unwrap();
    let get = |trust: &Trust, protocol| configs.get(trust, None, protocol).unwrap();
    let first = get(&trust(&one), Protocol::Http1);
    assert!(Arc::ptr_eq(&first, &get(&trust(&one), Protocol::Http1)));
    assert!(!Arc::ptr_eq(&first, &get(&trust(&two), Protocol::Http1)));
    assert!(!Arc::ptr_eq(&first, &get(&trust(&one), Protocol::Negotiated)));
    assert!(!Arc::ptr_eq(&first, &get(&Trust::anybody(), Protocol::Http1)));

    let key = KeyPair::generate().unwrap();
    let own = params(&[]).signed_by(&key, &one).unwrap();
    let own = ClientCertificate::from_pem(own.pem().as_bytes(), key.serialize_pem().as_bytes());
    let with = configs.get(&trust(&one), Some(&own.unwrap()), Protocol::Http1).unwrap();
    assert!(!Arc::ptr_eq(&first, &with));
    assert!(!with.enable_early_data);

    // Who we are makes no difference to whom we trust.
    assert_eq!(configs.verifiers.len(), 3);

    drop((first, with));
    for _ in 0..100 {
        drop(get(&trust(&authority("other")), Protocol::Http1));
    }
    assert!(configs.configs.len() < 20, "unused configurations are forgotten");
}

/// Shakes hands to the end, which is after the server has given its tickets.
fn shake_hands(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> HandshakeKind {
    let name = ServerName::try_from("api.example").unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    while client.wants_write() || server.wants_write() {
        let (mut out, mut back) = (VecDeque::new(), VecDeque::new());
        client.write_tls(&mut out).unwrap();
        while !out.is_empty() {
            server.read_tls(&mut out).unwrap();
            server.process_new_packets().unwrap();
        }
        server.write_tls(&mut back).unwrap();
        while !back.is_empty() {
            client.read_tls(&mut back).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    client.handshake_kind().unwrap()
}

#[test]
fn a_second_connection_to_a_server_that_gives_tickets_makes_a_full_handshake() {
    let key = KeyPair::generate().unwrap();
    let own = params(&["api.example"]).self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let server = Arc::new(server);
    let ours = TlsConfigs::default().get(&Trust::anybody(), None, Protocol::Http1).unwrap();
    let ours = Arc::unwrap_or_clone(ours);
    let mut resuming = ours.clone();
    resuming.resumption = Resumption::in_memory_sessions(8);
    let kinds = |client| {
        let client = Arc::new(client);
        [shake_hands(&client, &server), shake_hands(&client, &server)]
    };
    assert_eq!(kinds(ours), [HandshakeKind::Full, HandshakeKind::Full]);
    assert_eq!(kinds(resuming), [HandshakeKind::Full, HandshakeKind::Resumed], "it gives tickets");
}

#[test]
fn a_namesake_of_the_authority_differs_from_a_stranger() {
    let (ours, namesake, stranger) = (authority("ca"), authority("ca"), authority("other"));
    let bundle = [ours.der().clone()];
    for (issuer, words) in [(namesake, "was replaced"), (stranger, "not in the configured")] {
        let leaf = signed(params(&["api.example"]), &issuer);
        let error = judge(&bundle, &leaf, "api.example").unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn without_any_authority_a_certificate_is_refused_when_it_is_shown_and_not_before() {
    let provider = rustls::crypto::ring::default_provider();
    let leaf = signed(params(&["api.example"]), &authority("ca"));
    let judge = |judge: Judge| {
        let verifier = ServerVerifier::new(judge, &provider);
        let name = ServerName::try_from("api.example").unwrap();
        let now = UnixTime::since_unix_epoch(Duration::ZERO);
        verifier.verify_server_cert(&leaf, &[], &name, &[], now)
    };
    assert!(judge(Judge::Anybody).is_ok());
    let error = judge(Judge::NoTrust("spec.caBundle")).unwrap_err().to_string();
    assert!(error.contains("configure a CA bundle"), "{error}");
}

#[test]
fn a_refusal_speaks_of_the_fields_that_its_user_has() {
    let ca = authority("ca");
    let namesake = authority("ca");
    let bundle = [ca.der().clone()];
    let own = Fields { ca: "spec.caBundle", other_name: ", or put X into spec.y" };
    let expired = {
        let mut params = params(&["api.example"]);
        params.not_after = date_time_ymd(2021, 1, 1);
        signed(params, &ca)
    };
    // (certificate, name, what a kubeconfig is told, what another user is told)
    let rows = [
        (
            signed(params(&["api.example"]), &authority("x")),
            "api.example",
            "certificate-authority",
            "spec.caBundle",
        ),
        (
            signed(params(&["api.example"]), &namesake),
            "api.example",
            "certificate-authority",
            "spec.caBundle",
        ),
        (
            authority_as_server(params(&["api.example"])),
            "api.example",
            "certificate-authority",
            "spec.caBundle",
        ),
        (
            signed(params(&["api.example"]), &ca),
            "other.example",
            "tls-server-name",
            "put X into spec.y",
        ),
        (expired, "api.example", "renew it", "renew it"),
    ];
    for (leaf, name, of_kubeconfig, of_another) in rows {
        let told = judge_speaking_of(Fields::default(), &bundle, &leaf, name);
        assert!(told.contains(of_kubeconfig), "{told}");
        let told = judge_speaking_of(own, &bundle, &leaf, name);
        assert!(told.contains(of_another), "{told}");
        for foreign in ["certificate-authority", "tls-server-name"] {
            assert!(!told.contains(foreign), "{told}");
        }
    }
}

#[test]
fn trust_that_speaks_of_other_fields_is_another_configuration() {
    let configs = TlsConfigs::default();
    let get = |trust: &Trust| configs.get(trust, None, Protocol::Slim).unwrap();
    let pem = authority("ca").pem();
    let trust = Trust::from_pem(pem.as_bytes()).unwrap();
    let own = Fields { ca: "spec.caBundle", ..Fields::default() };
    assert!(Arc::ptr_eq(&get(&trust), &get(&trust.clone().speaking_of(Fields::default()))));
    assert!(!Arc::ptr_eq(&get(&trust), &get(&trust.speaking_of(own))));
}
