//! [`Reloader`]: loads the certificate files of a listener at start, reads them again until it stops, and
//! chooses the pair for the name that a client asks for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use resilience::wall_now;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use crate::certificate::{Current, Pair, Paths, generate, is_due};
use crate::guard::ClientCa;
use crate::{CertificateSource, NamedCertificate, ServeError};

/// How often files are read again and the age of our own pair is checked.
const RELOAD_EVERY: Duration = Duration::from_secs(60);

enum Source {
    Files(Paths),
    Directory(Paths),
    Memory,
    /// The owner of the listener renews the pair.
    Supplied,
}

/// Owner of the serving pair.
pub(crate) struct Reloader {
    source: Source,
    bind: Vec<IpAddr>,
    pair: Pair,
    current: Arc<Current>,
    named: Vec<Arc<Named>>,
    client_ca: Option<Arc<ClientCa>>,
}

impl Reloader {
    /// Reads or makes the pair. Any failure is fatal here; later ones keep the pair in use.
    pub(crate) async fn load(
        source: &CertificateSource,
        named: &[NamedCertificate],
        bind: Vec<IpAddr>,
        client_ca: Option<Arc<ClientCa>>,
    ) -> Result<Self, ServeError> {
        let supplied = match source {
            CertificateSource::Supplied(supplied) => Some(supplied.current()),
            _ => None,
        };
        let source = Source::of(source);
        let (pair, current) = match supplied {
            Some(current) => (Pair { chain: Vec::new(), key: Vec::new() }, current),
            None => {
                let (pair, key) = first(&source, &bind).await?;
                (pair, Current::new(key))
            }
        };
        let mut loaded = Vec::new();
        for one in named {
            loaded.push(Arc::new(Named::load(one).await?));
        }
        Ok(Self { source, bind, pair, current, named: loaded, client_ca })
    }

    /// The resolver of handshakes.
    pub(crate) fn certificates(&self) -> Arc<Certificates> {
        let (standard, named) = (self.current.clone(), self.named.clone());
        Arc::new(Certificates { standard, named })
    }

    /// Reads the files again every minute. A pair that cannot be used is
    /// logged and the one in use stays: half of a renewal must not take the port down. The server drops the
    /// future on stop.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(RELOAD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            report("Serving certificate", self.reload(wall_now().into()).await);
            for named in &self.named {
                report("Certificate for single names", named.reload().await);
            }
            if let Some(ca) = &self.client_ca {
                report("Client CA", ca.reload().await);
            }
        }
    }

    /// Takes over a pair that changed on disk, or makes a new one when ours grows old. Returns
    /// whether the pair shown changed; an error leaves it as it was.
    pub(crate) async fn reload(&mut self, now: SystemTime) -> Result<bool, ServeError> {
        let (pair, key) = match &self.source {
            Source::Files(paths) => from_files(paths).await?,
            Source::Directory(paths) => from_folder(paths, &self.bind, now).await?,
            Source::Memory => {
                if !is_due(&self.current.current(), now) {
                    return Ok(false);
                }
                make(&self.bind, now)?
            }
            Source::Supplied => return Ok(false),
        };
        if pair == self.pair {
            return Ok(false);
        }
        self.pair = pair;
        self.current.replace(key);
        Ok(true)
    }
}

impl Source {
    fn of(source: &CertificateSource) -> Self {
        match source {
            CertificateSource::Files { certificate, key } => {
                Self::Files(Paths { cert: certificate.clone(), key: key.clone() })
            }
            CertificateSource::Directory { folder, name } => {
                let file = |extension| folder.join(format!("{name}.{extension}"));
                Self::Directory(Paths { cert: file("crt"), key: file("key") })
            }
            CertificateSource::Supplied(_) => Self::Supplied,
            CertificateSource::Memory => Self::Memory,
        }
    }
}

fn report(what: &str, outcome: Result<bool, ServeError>) {
    match outcome {
        Ok(true) => info!(logger = "serving", "{what} replaced"),
        Ok(false) => {}
        Err(err) => {
            warn!(logger = "serving", %err, "Cannot reload, the previous one stays in use: {what}");
        }
    }
}

/// Whether the files of an operator can be used.
pub(crate) async fn readable(
    source: &CertificateSource,
    named: &[NamedCertificate],
) -> Result<(), ServeError> {
    match Source::of(source) {
        Source::Files(paths) => drop(from_files(&paths).await?),
        Source::Directory(paths) if paths.exist().await => drop(from_files(&paths).await?),
        Source::Directory(_) | Source::Memory | Source::Supplied => {}
    }
    for one in named {
        Named::load(one).await?;
    }
    Ok(())
}

/// The certificates at the start of a listener.
async fn first(source: &Source, bind: &[IpAddr]) -> Result<(Pair, CertifiedKey), ServeError> {
    let now = wall_now().into();
    match source {
        Source::Files(paths) => from_files(paths).await,
        Source::Directory(paths) => from_folder(paths, bind, now).await,
        Source::Memory | Source::Supplied => {
            let made = make(bind, now)?;
            info!(logger = "serving", "Generated self-signed cert in-memory");
            Ok(made)
        }
    }
}

async fn from_files(paths: &Paths) -> Result<(Pair, CertifiedKey), ServeError> {
    let pair = Pair::read(paths).await?;
    let key = pair.certified_key(&paths.cert.to_string_lossy())?;
    Ok((pair, key))
}

/// Reuses the pair in the folder. Writes a new one when it is absent or ours is due.
async fn from_folder(
    paths: &Paths,
    bind: &[IpAddr],
    now: SystemTime,
) -> Result<(Pair, CertifiedKey), ServeError> {
    if paths.exist().await {
        let (pair, key) = from_files(paths).await?;
        if !is_due(&key, now) {
            return Ok((pair, key));
        }
    }
    let (pair, key) = make(bind, now)?;
    if let Some(folder) = paths.cert.parent() {
        let failed = |why| ServeError::WritePair { path: folder.to_owned(), why };
        tokio::fs::create_dir_all(folder).await.map_err(failed)?;
    }
    pair.write(paths).await?;
    info!(logger = "serving", file = ?paths.cert, "Generated self-signed cert");
    Ok((pair, key))
}

fn make(bind: &[IpAddr], now: SystemTime) -> Result<(Pair, CertifiedKey), ServeError> {
    let pair = generate(bind, now)?;
    let key = pair.certified_key("self-signed")?;
    Ok((pair, key))
}

/// The resolver of handshakes.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) standard: Arc<Current>,
    pub(crate) named: Vec<Arc<Named>>,
}

/// A pair and the names that it is for.
pub(crate) struct Named {
    paths: Paths,
    /// Names from the operator; without any, the names in the certificate count.
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

/// Prints no key.
impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Named").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Named {
    pub(crate) async fn load(of: &NamedCertificate) -> Result<Self, ServeError> {
        let paths = Paths { cert: of.certificate.clone(), key: of.key.clone() };
        let given: Vec<_> = of.names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let state = RwLock::new(State::read(&paths, &given).await?);
        Ok(Self { paths, given, state })
    }

    /// Takes over a pair that changed on disk; an error leaves the old one.
    pub(crate) async fn reload(&self) -> Result<bool, ServeError> {
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
