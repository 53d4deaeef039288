//! Pairs for single names: who asks for one of these is shown its pair, everybody else the one that
//! each listener has.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::Current;
use super::pair::{Pair, Paths};
use crate::{NamedCertificate, ServeError};

/// What handshakes ask for a pair.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(super) standard: Arc<Current>,
    pub(super) named: Vec<Arc<Named>>,
}

/// A pair and the names that it is for.
pub(super) struct Named {
    paths: Paths,
    /// Those that the operator gave; without any those in the certificate count.
    given: Vec<String>,
    state: RwLock<State>,
}

struct State {
    pair: Pair,
    names: Vec<String>,
    key: Arc<CertifiedKey>,
}

/// How well a pair is for a name; the greatest is taken, of equals the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// By a wildcard in the certificate.
    FoundWildcard,
    /// By a name in the certificate.
    Found,
    /// By a wildcard that was given.
    GivenWildcard,
    /// By a name that was given.
    Given,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match hello.server_name().and_then(|name| self.named_for(name)) {
            Some(named) => Some(named.state.read().key.clone()),
            None => self.standard.resolve(hello),
        }
    }
}

impl Certificates {
    fn named_for(&self, name: &str) -> Option<&Named> {
        let name = name.to_ascii_lowercase();
        let fitting = self.named.iter().rev().filter_map(|named| Some((named.fit(&name)?, named)));
        // Of equals `max_by_key` takes the last, which is the first that was given.
        fitting.max_by_key(|(fit, _)| *fit).map(|(_, named)| &**named)
    }
}

/// Its key is nobody's business.
impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Named").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Named {
    pub(super) async fn load(of: &NamedCertificate) -> Result<Self, ServeError> {
        let paths = Paths { cert: of.certificate.clone(), key: of.key.clone() };
        let given: Vec<_> = of.names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let state = RwLock::new(State::read(&paths, &given).await?);
        Ok(Self { paths, given, state })
    }

    /// Takes over a pair that changed on disk; an error leaves the old one (rule:bad-files-keep-the-old).
    pub(super) async fn reload(&self) -> Result<bool, ServeError> {
        let state = State::read(&self.paths, &self.given).await?;
        let changed = state.pair != self.state.read().pair;
        if changed {
            *self.state.write() = state;
        }
        Ok(changed)
    }

    /// `name` is in lower case.
    fn fit(&self, name: &str) -> Option<Fit> {
        let state = self.state.read();
        let exact = state.names.iter().any(|own| own == name);
        let wildcard = || state.names.iter().any(|own| is_below(name, own));
        match (self.given.is_empty(), exact) {
            (true, true) => Some(Fit::Found),
            (false, true) => Some(Fit::Given),
            (true, false) => wildcard().then_some(Fit::FoundWildcard),
            (false, false) => wildcard().then_some(Fit::GivenWildcard),
        }
    }
}

impl State {
    async fn read(paths: &Paths, given: &[String]) -> Result<Self, ServeError> {
        let pair = Pair::read(paths).await?;
        let file = paths.cert.to_string_lossy();
        let key = pair.certified_key(&file)?;
        let names = if given.is_empty() { names_of(&key) } else { given.to_vec() };
        if names.is_empty() {
            let reason = "it names no host; say for which names it is".to_owned();
            return Err(ServeError::BadPair { name: file.into_owned(), reason });
        }
        Ok(Self { pair, names, key: Arc::new(key) })
    }
}

/// Whether a pattern as `*.example.com` stands for `name`: for one label more.
fn is_below(name: &str, pattern: &str) -> bool {
    let suffix = pattern.strip_prefix('*').filter(|suffix| suffix.starts_with('.'));
    let label = suffix.and_then(|suffix| name.strip_suffix(suffix));
    label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
}

/// The names of hosts in a certificate, in lower case.
fn names_of(key: &CertifiedKey) -> Vec<String> {
    let Some(Ok((_, leaf))) = key.cert.first().map(|leaf| X509Certificate::from_der(leaf)) else {
        return Vec::new();
    };
    let Ok(Some(alternatives)) = leaf.subject_alternative_name() else { return Vec::new() };
    let names = alternatives.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests;
