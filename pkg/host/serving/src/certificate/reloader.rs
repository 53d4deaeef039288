//! Loads the files of a listener at start and looks at them again until it stops.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::sign::CertifiedKey;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Current;
use super::named::{Certificates, Named};
use super::pair::{Pair, Paths};
use super::self_signed;
use crate::client_ca::ClientCa;
use crate::{CertificateSource, NamedCertificate, ServeError};

/// How often files are read again and the age of our own pair is checked.
const RELOAD_EVERY: Duration = Duration::from_secs(60);

enum Source {
    Files(Paths),
    Directory(Paths),
    Memory,
    /// Its owner renews it.
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

    /// What handshakes ask for a pair.
    pub(crate) fn certificates(&self) -> Arc<Certificates> {
        let (standard, named) = (self.current.clone(), self.named.clone());
        Arc::new(Certificates { standard, named })
    }

    /// Looks again every minute, for ever (rule:bad-files-keep-the-old); the server drops it on
    /// stop.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(RELOAD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            report("Serving certificate", self.reload(SystemTime::now()).await);
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
    pub(super) async fn reload(&mut self, now: SystemTime) -> Result<bool, ServeError> {
        let (pair, key) = match &self.source {
            Source::Files(paths) => from_files(paths).await?,
            Source::Directory(paths) => from_folder(paths, &self.bind, now).await?,
            Source::Memory => {
                if !self_signed::is_due(&self.current.0.read(), now) {
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
        Err(err) => warn!(logger = "serving", %err, "Cannot renew, keeping the old one: {what}"),
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

/// What a listener begins with.
async fn first(source: &Source, bind: &[IpAddr]) -> Result<(Pair, CertifiedKey), ServeError> {
    let now = SystemTime::now();
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

/// Reuses what is in the folder. Writes a new pair when there is none, or when ours is due.
async fn from_folder(
    paths: &Paths,
    bind: &[IpAddr],
    now: SystemTime,
) -> Result<(Pair, CertifiedKey), ServeError> {
    if paths.exist().await {
        let (pair, key) = from_files(paths).await?;
        if !self_signed::is_due(&key, now) {
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
    let pair = self_signed::generate(bind, now)?;
    let key = pair.certified_key("self-signed")?;
    Ok((pair, key))
}
