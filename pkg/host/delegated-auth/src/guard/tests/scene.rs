//! CAs, files, and a guard before an API server that is a function.

use super::*;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_server_double::ApiServer;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt as _;
use prometheus::proto::MetricFamily;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustls::pki_types::CertificateDer;
use serving::{Peer, PeerCertificate};

use crate::RequestHeaders;

/// A CA.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

pub(crate) type Chain = Vec<CertificateDer<'static>>;

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A chain for this client; at most one group.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Chain {
        self.sign(user, groups, ExtendedKeyUsagePurpose::ClientAuth)
    }

    pub(crate) fn server(&self, name: &str) -> Chain {
        self.sign(name, &[], ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn sign(&self, user: &str, groups: &[&str], usage: ExtendedKeyUsagePurpose) -> Chain {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()]
    }
}

/// A folder, gone with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("delegation-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The options without any flag.
pub(crate) fn options() -> DelegationOptions {
    let ttl = Duration::from_secs(10);
    DelegationOptions {
        client_ca_file: None,
        proxy_ca_file: None,
        proxy_headers: RequestHeaders {
            user: vec!["x-remote-user".into()],
            groups: vec!["x-remote-group".into()],
            ..RequestHeaders::default()
        },
        skip_lookup: false,
        tolerate_lookup_failure: false,
        token_ttl: ttl,
        allowed_ttl: ttl,
        denied_ttl: ttl,
        outage_grace: Duration::from_secs(300),
        always_allow_paths: ["/healthz", "/readyz", "/livez"].map(str::to_owned).into(),
        metrics_readers: Vec::new(),
    }
}

/// A guard, and the server that it asks.
pub(crate) struct Scene {
    pub(crate) server: ApiServer,
    guard: Delegation,
    registry: Registry,
}

impl Scene {
    /// Reviewers of tokens and access, both clients of this server.
    pub(crate) async fn new(options: &DelegationOptions, server: ApiServer) -> Self {
        let caller = Some(Caller::from(server.client()));
        let reviewers = Reviewers { authentication: caller.clone(), authorization: caller };
        Self::with(options, server, reviewers).await
    }

    pub(crate) async fn with(
        options: &DelegationOptions,
        server: ApiServer,
        reviewers: Reviewers,
    ) -> Self {
        let registry = Registry::new();
        let guard = Delegation::load(options, &reviewers, &registry).await.unwrap();
        Self { server, guard, registry }
    }

    /// The status of a request, 200 when the guard lets it pass; with the body of a refusal.
    pub(crate) async fn answer(&self, ask: &Ask) -> (u16, String) {
        let certificate = ask.chain.clone().map_or(PeerCertificate::Absent, |chain| {
            PeerCertificate::Shown(ShownChain::new(chain))
        });
        let peer = Peer::new([127, 0, 0, 1].into(), certificate);
        let Ask { method, path, headers, .. } = ask;
        match self.guard.judge(Visit { peer: &peer, method, path, headers }).await {
            Ok(()) => (200, String::new()),
            Err(refusal) => {
                let status = refusal.status().as_u16();
                let body = refusal.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8(body.to_vec()).unwrap())
            }
        }
    }

    pub(crate) async fn status(&self, ask: &Ask) -> u16 {
        self.answer(ask).await.0
    }

    pub(crate) fn metric(&self, name: &str, label: &str) -> u64 {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == name);
        let series = family.into_iter().flat_map(MetricFamily::get_metric);
        let of_label = series.filter(|series| series.get_label()[0].value() == label);
        let values = of_label.map(|series| series.get_counter().get_value().to_string());
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    }
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    method: Method,
    path: String,
    pub(crate) headers: HeaderMap,
    chain: Option<Chain>,
}

pub(crate) fn get(path: &str) -> Ask {
    Ask { method: Method::GET, path: path.to_owned(), headers: HeaderMap::new(), chain: None }
}

impl Ask {
    pub(crate) fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header(AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let name: http::HeaderName = name.parse().unwrap();
        self.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        self
    }

    pub(crate) fn chain(self, chain: Chain) -> Self {
        Self { chain: Some(chain), ..self }
    }
}
