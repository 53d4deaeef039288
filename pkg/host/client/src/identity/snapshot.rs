//! One reading of a configuration and of everything that it names: all that a request needs to
//! reach the server and be known there. Never changes; `credentials` replaces it as a whole.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rustls::pki_types::ServerName;
use transport::{ClientCertificate, Endpoint, Protocol, Proxy, TlsConfigs, TlsError, Trust};
use zeroize::Zeroizing;

use crate::config::kubeconfig::bearer;
use crate::config::settings::{Material, Pem, Settings, TrustSource, User};
use crate::error::KubeconfigError;
use crate::identity::plugin::{Issued, PluginError};

/// The credentials that a connection may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The root identity's certificate, if there is one.
    Certificate,
    /// None: the requests bring a service account's token.
    Nothing,
}

/// One reading.
#[derive(Clone)]
pub(crate) struct Snapshot {
    /// Grows with every reading that differs from the one before.
    pub(crate) generation: u64,
    /// How often the server's address had changed by then.
    pub(crate) moves: u64,
    pub(crate) server: Uri,
    trust: Trust,
    certificate: Option<ClientCertificate>,
    server_name: Option<ServerName<'static>>,
    proxy: Option<Proxy>,
    authorization: Option<HeaderValue>,
    impersonation: Vec<(HeaderName, HeaderValue)>,
    /// Why there are no credentials yet.
    waiting_for: Option<PluginError>,
}

impl Snapshot {
    /// Reads the files that `settings` name; `issued` is what the plugin gave, if there is one.
    pub(crate) fn read(
        settings: Settings,
        issued: Option<Result<Issued, PluginError>>,
        tls: &TlsConfigs,
    ) -> Result<Self, KubeconfigError> {
        let (trust_field, trust) = trust(&settings.trust)?;
        let User { certificate, authorization, token_file, impersonation, .. } = settings.user;
        let mut snapshot = Self {
            generation: 0,
            moves: 0,
            server: settings.server,
            trust,
            certificate: certificate.map(|(chain, key)| pair(&chain, &key)).transpose()?,
            server_name: settings.server_name,
            proxy: settings.proxy,
            authorization,
            impersonation,
            waiting_for: None,
        };
        if let Some(path) = token_file {
            snapshot.authorization = Some(token(&path)?);
        }
        let certificate_field = match issued {
            Some(Ok(issued)) => {
                snapshot.accept(issued);
                "exec"
            }
            Some(Err(error)) => {
                snapshot.waiting_for = Some(error);
                "exec"
            }
            None => "client-certificate",
        };
        snapshot.check(tls, trust_field, certificate_field)?;
        Ok(snapshot)
    }

    /// Credentials in the file win over those of the plugin, as in client-go.
    fn accept(&mut self, issued: Issued) {
        self.authorization = self.authorization.take().or(issued.authorization);
        self.certificate = self.certificate.take().or(issued.certificate);
    }

    /// Finds out now what would fail with the first connection.
    fn check(
        &self,
        tls: &TlsConfigs,
        trust_field: &'static str,
        certificate_field: &'static str,
    ) -> Result<(), KubeconfigError> {
        for (shown, field) in
            [(Shown::Nothing, trust_field), (Shown::Certificate, certificate_field)]
        {
            self.endpoint(tls, shown, Protocol::Negotiated)
                .map_err(|source| KubeconfigError::Tls { field, source })?;
        }
        Ok(())
    }

    /// Takes the place of the reading before it.
    pub(crate) fn following(mut self, before: &Self) -> Self {
        self.generation = before.generation + 1;
        self.moves = before.moves + u64::from(self.server != before.server);
        self
    }

    /// The server's address before the path of a request; `None` cannot happen with addresses that
    /// were parsed.
    pub(crate) fn address(&self, target: &Uri) -> Option<Uri> {
        join(&self.server, target)
    }

    /// How connections that show `shown` are made.
    pub(crate) fn endpoint(
        &self,
        tls: &TlsConfigs,
        shown: Shown,
        protocol: Protocol,
    ) -> Result<Endpoint, TlsError> {
        let certificate = self.certificate.as_ref().filter(|_| shown == Shown::Certificate);
        let endpoint = Endpoint::new(tls, &self.trust, certificate, protocol)?;
        let endpoint = endpoint.named(self.server_name.clone());
        match &self.proxy {
            Some(proxy) => endpoint.through(proxy.clone(), tls, &self.trust),
            None => Ok(endpoint),
        }
    }

    /// The end of the client certificate, in seconds since 1970.
    pub(crate) fn certificate_end(&self) -> Option<u64> {
        Some(self.certificate.as_ref()?.validity()?.to)
    }

    /// Puts the root identity's headers on a request.
    pub(crate) fn authorize(&self, headers: &mut HeaderMap) -> Result<(), PluginError> {
        if let Some(error) = &self.waiting_for {
            return Err(error.clone());
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        for (name, value) in &self.impersonation {
            headers.append(name.clone(), value.clone());
        }
        Ok(())
    }

    /// Whether a request can be told which of the two it was made with.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        self.server == other.server
            && self.trust == other.trust
            && self.certificate == other.certificate
            && self.server_name == other.server_name
            && self.proxy == other.proxy
            && self.authorization == other.authorization
            && self.impersonation == other.impersonation
            && self.waiting_for.is_some() == other.waiting_for.is_some()
    }
}

/// `server` with the path and query of `target` after its own path.
fn join(server: &Uri, target: &Uri) -> Option<Uri> {
    let prefix = server.path().trim_end_matches('/');
    let rest = target.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut parts = server.clone().into_parts();
    parts.path_and_query = Some(if prefix.is_empty() {
        target.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"))
    } else {
        PathAndQuery::try_from(format!("{prefix}{rest}")).ok()?
    });
    Uri::from_parts(parts).ok()
}

fn trust(source: &TrustSource) -> Result<(&'static str, Trust), KubeconfigError> {
    match source {
        TrustSource::System => Ok(("certificate-authority", Trust::system())),
        TrustSource::Nothing => Ok(("insecure-skip-tls-verify", Trust::anybody())),
        TrustSource::Bundle(material) => {
            let (field, pem) = load(material)?;
            let trust = Trust::from_pem(&pem);
            Ok((field, trust.map_err(|source| KubeconfigError::Tls { field, source })?))
        }
    }
}

fn pair(chain: &Material, key: &Material) -> Result<ClientCertificate, KubeconfigError> {
    let (field, chain) = load(chain)?;
    let (_, key) = load(key)?;
    ClientCertificate::from_pem(&chain, &key)
        .map_err(|source| KubeconfigError::Tls { field, source })
}

fn load(material: &Material) -> Result<(&'static str, Arc<Pem>), KubeconfigError> {
    match material {
        Material::Data(field, bytes) => Ok((field, Arc::clone(bytes))),
        Material::File(field, path) => match fs::read(path) {
            Ok(bytes) => Ok((field, Arc::new(Zeroizing::new(bytes)))),
            Err(error) => Err(unreadable(field, path, &error)),
        },
    }
}

fn token(path: &Path) -> Result<HeaderValue, KubeconfigError> {
    let token = fs::read_to_string(path).map_err(|error| unreadable("tokenFile", path, &error))?;
    let token = Zeroizing::new(token);
    if token.trim().is_empty() {
        // It is being written, or was cleared.
        let path = path.display().to_string();
        let problem = format!("{path:?} of its tokenFile is empty; write a token into it");
        return Err(KubeconfigError::Invalid(problem));
    }
    bearer("tokenFile", &token)
}

fn unreadable(field: &str, path: &Path, error: &std::io::Error) -> KubeconfigError {
    let path = path.display().to_string();
    KubeconfigError::Invalid(format!("cannot read {path:?} of its {field}: {error}"))
}

#[cfg(test)]
mod tests {
    use memory_search::Mark;

    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn the_token_of_a_file_is_nowhere_in_memory_when_its_header_was_dropped() {
        let mark = Mark::random();
        let file = TempFile::new("");
        fs::write(file.path(), mark.secret().as_bytes()).unwrap();
        let header = token(file.path()).unwrap();
        assert!(header.is_sensitive() && mark.is_in_memory(), "it was read");
        drop(header);
        assert!(!mark.is_in_memory());
    }

    #[test]
    fn a_server_below_a_path_keeps_it() {
        for (server, target, expected) in [
            ("https://a:6443", "/api/v1/nodes?limit=1", "https://a:6443/api/v1/nodes?limit=1"),
            ("https://a:6443/", "/api", "https://a:6443/api"),
            ("https://a/k8s/clusters/c-1/", "/api?x=1", "https://a/k8s/clusters/c-1/api?x=1"),
            ("https://a/k8s", "http://other/api", "https://a/k8s/api"),
        ] {
            let joined = join(&server.parse().unwrap(), &target.parse().unwrap());
            assert_eq!(joined.unwrap().to_string(), expected);
        }
    }
}
