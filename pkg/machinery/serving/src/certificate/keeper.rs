//! Loads the serving pair at start and keeps it fresh until the server stops.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::sign::CertifiedKey;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Shown;
use super::pair::{Pair, Paths};
use super::self_signed;
use crate::{ServeError, ServingOptions};

/// How often files are read again and the age is checked (host.md 5.1).
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Base name of the pair in `--cert-dir`.
const PAIR_NAME: &str = "infra-controller-manager";

enum Source {
    /// The operator's files: read, never written.
    Files(Paths),
    /// Ours in `--cert-dir`, unless the operator put a pair there.
    Directory(Paths),
    Memory,
}

/// Owner of the serving pair.
pub(crate) struct Keeper {
    source: Source,
    bind: IpAddr,
    pair: Pair,
    shown: Arc<Shown>,
}

impl Keeper {
    /// Reads or makes the pair. Any failure is fatal here; later ones keep the pair in use.
    pub(crate) async fn load(options: &ServingOptions) -> Result<Self, ServeError> {
        let source = match (options.certificate_files()?, &options.cert_dir) {
            (Some((cert, key)), _) => Source::Files(Paths { cert, key }),
            (None, Some(folder)) => Source::Directory(pair_in(folder)),
            (None, None) => Source::Memory,
        };
        let bind = options.bind_address;
        let (pair, key) = match &source {
            Source::Files(paths) => {
                let pair = Pair::read(paths).await?;
                let key = pair.certified_key(&paths.cert.to_string_lossy())?;
                (pair, key)
            }
            Source::Directory(paths) => from_folder(paths, bind, SystemTime::now()).await?,
            Source::Memory => {
                let made = make(bind, SystemTime::now())?;
                info!(logger = "serving", "Generated self-signed cert in-memory");
                made
            }
        };
        Ok(Self { source, bind, pair, shown: Shown::new(key) })
    }

    /// What handshakes ask for the pair.
    pub(crate) fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    /// Looks again every minute, for ever; the server drops it on stop.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            match self.look_again(SystemTime::now()).await {
                Ok(true) => info!(logger = "serving", "Serving certificate replaced"),
                Ok(false) => {}
                Err(err) => {
                    warn!(logger = "serving", %err, "Cannot renew serving certificate, keeping the old one");
                }
            }
        }
    }

    /// Takes over a pair that changed on disk, or makes a new one when ours grows old. Returns
    /// whether the pair shown changed; an error leaves it as it was.
    pub(super) async fn look_again(&mut self, now: SystemTime) -> Result<bool, ServeError> {
        let (pair, key) = match &self.source {
            Source::Files(paths) => {
                let pair = Pair::read(paths).await?;
                if pair == self.pair {
                    return Ok(false);
                }
                let key = pair.certified_key(&paths.cert.to_string_lossy())?;
                (pair, key)
            }
            Source::Directory(paths) => from_folder(paths, self.bind, now).await?,
            Source::Memory => {
                if !self_signed::is_due(&self.shown.0.read(), now) {
                    return Ok(false);
                }
                make(self.bind, now)?
            }
        };
        if pair == self.pair {
            return Ok(false);
        }
        self.pair = pair;
        self.shown.replace(key);
        Ok(true)
    }
}

fn pair_in(folder: &Path) -> Paths {
    Paths {
        cert: folder.join(format!("{PAIR_NAME}.crt")),
        key: folder.join(format!("{PAIR_NAME}.key")),
    }
}

/// Reuses what is in the folder. Writes a new pair when there is none, or when ours is due.
async fn from_folder(
    paths: &Paths,
    bind: IpAddr,
    now: SystemTime,
) -> Result<(Pair, CertifiedKey), ServeError> {
    if paths.exist().await {
        let pair = Pair::read(paths).await?;
        let key = pair.certified_key(&paths.cert.to_string_lossy())?;
        if !self_signed::is_due(&key, now) {
            return Ok((pair, key));
        }
    }
    let (pair, key) = make(bind, now)?;
    if let Some(folder) = paths.cert.parent() {
        let failed = |source| ServeError::WritePair { path: folder.to_owned(), source };
        tokio::fs::create_dir_all(folder).await.map_err(failed)?;
    }
    pair.write(paths).await?;
    info!(logger = "serving", file = ?paths.cert, "Generated self-signed cert");
    Ok((pair, key))
}

fn make(bind: IpAddr, now: SystemTime) -> Result<(Pair, CertifiedKey), ServeError> {
    let pair = self_signed::generate(bind, now)?;
    let key = pair.certified_key("self-signed")?;
    Ok((pair, key))
}
