//! A second listener, as for admission webhooks: its own port, certificate, client CA and pages.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

use http::StatusCode;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use crate::{
    Access, CertificateSource, ClientCertificates, Page, PageRequest, PeerCertificate, Reply, reply,
};

/// A CA that signs for servers and clients.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key, PEM.
    fn sign(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// A client that shows a certificate of this CA.
    fn client(&self, usage: ExtendedKeyUsagePurpose) -> ClientConfig {
        let (certificate, key) = self.sign(usage);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        client(ring::default_provider(), rustls::DEFAULT_VERSIONS)
            .with_client_auth_cert(chain, key)
            .unwrap()
    }
}

/// The files of a webhook listener, gone with the test.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("webhook-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A listener with a certificate of `servers` that trusts clients of `clients`.
    fn options(&self, servers: &Authority, clients: &Authority) -> ListenerOptions {
        let (certificate, key) = servers.sign(ExtendedKeyUsagePurpose::ServerAuth);
        ListenerOptions {
            name: "webhook",
            port_flag: "--webhook-port",
            certificate: CertificateSource::Files {
                certificate: self.write("tls.crt", &certificate),
                key: self.write("tls.key", &key),
            },
            client_certificates: ClientCertificates::Of(self.write("clients.crt", &clients.pem)),
            ..loopback()
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Says what reached it.
async fn review(request: PageRequest) -> Reply {
    let certificate = match request.peer.certificate {
        PeerCertificate::Trusted(chain) => format!("trusted, {} long", chain.certificates().len()),
        other => format!("{other:?}"),
    };
    let kind = request.headers["content-type"].to_str().unwrap().to_owned();
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    reply::json(StatusCode::OK, format!("{} {kind} {body} {certificate}", request.method))
}

fn post(server: &Running, body: &str) -> Request<Full<Bytes>> {
    Request::post(format!("https://{}/validate?timeout=10s", server.address))
        .header("content-type", "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

/// Serves a webhook at `/validate` that only trusted clients may ask.
async fn webhook(options: &ListenerOptions) -> Running {
    let server = start(options).await;
    let page = Page::new("/validate", Access::TrustedCertificate, review).with_body_limit(64);
    server.pages.add(page);
    server
}

#[tokio::test]
async fn a_webhook_gets_method_headers_body_and_the_certificate_of_the_client() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let files = Files::new("whole");
    let server = webhook(&files.options(&servers, &clients)).await;
    for alpn in ["http/1.1", "h2"] {
        // The API server's way: it checks ours by a CA bundle and shows its own.
        let mut config = clients.client(ExtendedKeyUsagePurpose::ClientAuth);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(servers.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        config.dangerous().set_certificate_verifier(verifier.build().unwrap());
        config.alpn_protocols = vec![alpn.into()];
        let stream = server.connect_as(config).await.unwrap();
        let answer = send(stream, post(&server, "{\"kind\":\"AdmissionReview\"}")).await;
        assert_eq!(answer.status, 200, "{alpn}: {}", answer.body);
        let expected = "POST application/json {\"kind\":\"AdmissionReview\"} trusted, 1 long";
        assert_eq!(answer.body, expected, "{alpn}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_on_the_wire() {
    let authority = Authority::new();
    let files = Files::new("limit");
    let server = webhook(&files.options(&authority, &authority)).await;
    for alpn in ["http/1.1", "h2"] {
        let mut config = authority.client(ExtendedKeyUsagePurpose::ClientAuth);
        config.alpn_protocols = vec![alpn.into()];
        let stream = server.connect_as(config).await.unwrap();
        let answer = send(stream, post(&server, &"x".repeat(65))).await;
        assert_eq!(answer.status, 413, "{alpn}: {}", answer.body);
    }
}

#[tokio::test]
async fn clients_without_a_certificate_of_the_client_ca_get_401_from_http() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let files = Files::new("refused");
    let server = webhook(&files.options(&ours, &ours)).await;
    server
        .pages
        .add(Page::new("/open", Access::Authorized, async |_| reply::text(StatusCode::OK, "open")));
    let status = async |config: ClientConfig, path: &str| {
        let request = Request::get(format!("https://{}{path}", server.address));
        let request = request.header("host", "x").body(Full::default()).unwrap();
        send(server.connect_as(config).await.unwrap(), request).await.status
    };
    let foreign = || theirs.client(ExtendedKeyUsagePurpose::ClientAuth);
    let for_servers = || ours.client(ExtendedKeyUsagePurpose::ServerAuth);
    assert_eq!(status(client_config(&[]), "/validate").await, 401, "none");
    assert_eq!(status(foreign(), "/validate").await, 401, "of another CA");
    assert_eq!(status(for_servers(), "/validate").await, 401, "not for clients");
    assert_eq!(status(client_config(&[]), "/open").await, 200);
    assert_eq!(status(foreign(), "/open").await, 401);
}

#[tokio::test]
async fn a_listener_that_only_asks_leaves_the_judgement_to_its_guard() {
    let client_certificates = ClientCertificates::Asked;
    let server = start(&ListenerOptions { client_certificates, ..loopback() }).await;
    server.pages.add(Page::new("/who", Access::Authorized, async |request: PageRequest| {
        let length = match request.peer.certificate {
            PeerCertificate::Shown(chain) => chain.certificates().len(),
            _ => 0,
        };
        reply::text(StatusCode::OK, length.to_string())
    }));
    let client = Authority::new().client(ExtendedKeyUsagePurpose::ServerAuth);
    for (config, shown) in [(client, "1"), (client_config(&[]), "0")] {
        let request = Request::get("/who").header("host", "x").body(Full::default()).unwrap();
        let stream = server.connect_as(config).await.unwrap();
        assert_eq!(send(stream, request).await.body, shown);
    }
}

#[tokio::test]
async fn a_chain_of_too_many_certificates_ends_the_handshake_and_costs_no_judgement() {
    let authority = Authority::new();
    let files = Files::new("chains");
    let server = webhook(&files.options(&authority, &authority)).await;
    let request = || {
        let request = Request::get(format!("https://{}/validate", server.address));
        request.header("host", "x").body(Full::default()).unwrap()
    };
    for (length, is_answered) in [(1, true), (10, true), (11, false), (258, false)] {
        let (certificate, key) = authority.sign(ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let mut chain = vec![certificate];
        chain.resize(length, CertificateDer::from(vec![0; 40]));
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let client = client(ring::default_provider(), &[&rustls::version::TLS12]);
        let client = client.with_client_auth_cert(chain, key).unwrap();
        let connected = server.connect_as(client).await;
        assert_eq!(connected.is_ok(), is_answered, "{length} certificates");
        if let Ok(stream) = connected {
            assert_ne!(send(stream, request()).await.status, 401, "{length} certificates");
        }
    }
}

#[tokio::test]
async fn a_client_ca_that_changes_on_disk_is_taken_over_and_a_bad_one_is_not() {
    let (old, new) = (Authority::new(), Authority::new());
    let files = Files::new("changed");
    let path = files.write("clients.crt", &old.pem);
    let ca = crate::guard::ClientCa::load(&path).await.unwrap();
    let judge = async |authority: &Authority| {
        let (certificate, _) = authority.sign(ExtendedKeyUsagePurpose::ClientAuth);
        ca.judge(&[CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()]).await
    };
    assert!(matches!(judge(&old).await, PeerCertificate::Trusted(_)));
    assert_eq!(judge(&new).await, PeerCertificate::Untrusted);
    assert!(!ca.reload().await.unwrap());

    for bad in ["", "garbage"] {
        files.write("clients.crt", bad);
        let message = ca.reload().await.unwrap_err().to_string();
        assert!(message.contains("clients.crt"), "{message}");
        assert!(matches!(judge(&old).await, PeerCertificate::Trusted(_)), "the old one is kept");
    }
    files.write("clients.crt", &new.pem);
    assert!(ca.reload().await.unwrap());
    assert!(matches!(judge(&new).await, PeerCertificate::Trusted(_)));
    assert_eq!(judge(&old).await, PeerCertificate::Untrusted);
    let clients = crate::guard::Clients::Judged(ca.clone());
    assert_eq!(clients.state_of(&[]).await, PeerCertificate::Absent);
}

#[tokio::test]
async fn a_client_ca_file_that_cannot_be_used_ends_the_start() {
    let files = Files::new("start");
    for path in [files.write("empty.crt", ""), Path::new("/nowhere/ca.crt").to_owned()] {
        let client_certificates = ClientCertificates::Of(path.clone());
        let options = ListenerOptions { client_certificates, ..loopback() };
        let message = Server::bind(&options).await.err().unwrap().to_string();
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
}

#[tokio::test]
async fn two_listeners_of_a_process_have_pages_and_metrics_of_their_own() {
    let authority = Authority::new();
    let files = Files::new("webhook");
    let mut running = start(&loopback()).await;
    let server = Server::bind(&files.options(&authority, &authority)).await.unwrap();
    let (secure, webhook) = (running.address, server.local_addrs().next().unwrap());
    let pages = Pages::new();
    pages.add(Page::new("/validate", Access::Authorized, async |_| {
        reply::text(StatusCode::OK, "yes")
    }));
    let _second = spawn(server, pages, &running.metrics, &running.stop);
    assert_eq!(running.get(&["h2"], "/validate").await.status, 404);
    running.address = webhook;
    assert_eq!(running.get(&["h2"], "/validate").await.body, "yes");
    assert_eq!(running.get(&["h2"], "/livez").await.status, 404);
    let _silent = running.connect(&["h2"]).await;
    running.address = secure;
    let wanted = "icm_serving_connections{listener=\"webhook\"} ";
    let page = running.get(&["h2"], "/metrics").await.body;
    let open = page.lines().find_map(|line| line.strip_prefix(wanted)).unwrap();
    assert_ne!(open, "0", "{page}");
    assert!(page.contains("icm_serving_connections{listener=\"secure\"} "), "{page}");
}
