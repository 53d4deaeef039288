//! The current credentials of one server, and the task that keeps them current.
//!
//! Requests take the last reading and never wait for the next: the lease least of all. The follower
//! reads everything again every few seconds, at once after a 401, and runs the exec plugin when its
//! time comes. A reading that fails leaves the last good one in place.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use resilience::LogGate;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};
use transport::TlsConfigs;

use crate::config::settings::{Settings, TrustSource};
use crate::config::{Environment, Source};
use crate::error::{ConfigError, KubeconfigError};
use crate::identity::metrics::{CertificateEnd, CertificateMetrics, PluginMetrics};
use crate::identity::plugin::{PluginError, PluginRuns};
use crate::identity::snapshot::Snapshot;

/// How often everything is read again.
const POLL: Duration = Duration::from_secs(5);
/// The server's refusals, and a plugin that is due, make everything be read at most this often.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);
/// A process that starts waits this long for the first run of its plugin.
const FIRST_RUN: Duration = Duration::from_secs(10);
/// The credentials of one server, shared by all clients of it.
pub(crate) struct Credentials {
    source: Source,
    environment: Environment<'static>,
    pub(crate) tls: Arc<TlsConfigs>,
    current: Mutex<Arc<Snapshot>>,
    refused: Arc<Notify>,
    unreadable: LogGate,
    plugins: PluginMetrics,
    /// The metric of the process's own certificate; `None` for credentials from an object.
    certificate_end: Option<CertificateEnd>,
}

impl Credentials {
    /// Reads `source` for the first time, and follows it from then on on the current runtime.
    pub(crate) async fn load(
        source: Source,
        environment: Environment<'static>,
        tls: Arc<TlsConfigs>,
        plugins: PluginMetrics,
        certificates: &CertificateMetrics,
    ) -> Result<Arc<Self>, ConfigError> {
        let settings = read_settings(&source, environment).await?;
        let mut plugin = None;
        if let Some(spec) = &settings.user.plugin {
            let mut first = PluginRuns::new(spec.clone(), &plugins);
            // One that takes longer is run again by the follower.
            timeout(FIRST_RUN, first.run()).await.ok();
            if let Some(error @ PluginError::Start { .. }) = first.failure() {
                return Err(source.blame(error.clone().into()));
            }
            plugin = Some(first);
        }
        let snapshot = read_snapshot(settings, plugin.as_ref(), &tls).await;
        let snapshot = snapshot.map_err(|problem| source.blame(problem))?;
        let follow = source.may_change();
        let certificate_end = follow.then(|| certificates.follow());
        if let Some(end) = &certificate_end {
            end.set(snapshot.certificate_end());
        }
        let credentials = Arc::new(Self {
            source,
            environment,
            tls,
            current: Mutex::new(Arc::new(snapshot)),
            refused: Arc::default(),
            unreadable: LogGate::new(Duration::from_secs(60)),
            plugins,
            certificate_end,
        });
        if follow {
            let refused = Arc::clone(&credentials.refused);
            tokio::spawn(follow_source(Arc::downgrade(&credentials), refused, plugin));
        }
        Ok(credentials)
    }

    /// Credentials that consist of an address and never change.
    pub(crate) fn of_address(
        address: &str,
        tls: Arc<TlsConfigs>,
        plugins: PluginMetrics,
    ) -> Result<Arc<Self>, ConfigError> {
        let source = Source::Address(address.to_owned());
        let nothing: Environment<'static> = &|_| None;
        let settings = Settings { trust: TrustSource::Nothing, ..source.read(nothing)? };
        let snapshot = Snapshot::read(settings, None, &tls);
        let snapshot = snapshot.map_err(|problem| source.blame(problem))?;
        Ok(Arc::new(Self {
            source,
            environment: nothing,
            tls,
            current: Mutex::new(Arc::new(snapshot)),
            refused: Arc::default(),
            unreadable: LogGate::new(Duration::from_secs(60)),
            plugins,
            certificate_end: None,
        }))
    }

    /// The last good reading.
    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.lock())
    }

    /// The server answered 401 to a request made with the reading `generation`: everything is read
    /// again at once, unless that has happened since.
    pub(crate) fn refused(&self, generation: u64) {
        if self.current().generation == generation {
            self.refused.notify_one();
        }
    }

    /// Reads everything again. `refused`: because the server did not know us.
    async fn refresh(&self, plugin: &mut Option<PluginRuns>, refused: bool) {
        if let Err(error) = self.read_again(plugin, refused).await {
            if let Some(more) = self.unreadable.pass(Instant::now()) {
                warn!(err = %error, more, "Cannot reload the client credentials, the previous \
                    ones stay in use");
            }
        } else {
            self.unreadable.reset();
        }
    }

    async fn read_again(
        &self,
        plugin: &mut Option<PluginRuns>,
        refused: bool,
    ) -> Result<(), ConfigError> {
        let settings = read_settings(&self.source, self.environment).await?;
        PluginRuns::adopt(plugin, settings.user.plugin.as_ref(), &self.plugins);
        if let Some(plugin) = plugin
            && plugin.is_due(refused)
        {
            plugin.run().await;
        }
        let snapshot = read_snapshot(settings, plugin.as_ref(), &self.tls).await;
        let snapshot = snapshot.map_err(|problem| self.source.blame(problem))?;
        let mut current = self.current.lock();
        if !snapshot.says_the_same_as(&current) {
            if let Some(end) = &self.certificate_end {
                end.set(snapshot.certificate_end());
            }
            *current = Arc::new(snapshot.following(&current));
            drop(current);
            info!("Client credentials have changed, new connections use the new ones");
        }
        // A run that fails does not take away what the last good one gave.
        match plugin.as_ref().and_then(PluginRuns::failure) {
            Some(error) => Err(self.source.blame(error.clone().into())),
            None => Ok(()),
        }
    }
}

async fn follow_source(
    credentials: Weak<Credentials>,
    refused: Arc<Notify>,
    mut plugin: Option<PluginRuns>,
) {
    loop {
        let now = Instant::now();
        let due = plugin.as_ref().and_then(|plugin| plugin.due_at(now));
        let due = due.map(|at| at.saturating_duration_since(now));
        // What is due stays due while the kubeconfig cannot be read.
        let pause = due.map_or(POLL, |due| due.clamp(REFUSAL_PAUSE, POLL));
        let was_refused = tokio::select! {
            () = sleep(pause) => false,
            () = refused.notified() => true,
        };
        let Some(credentials) = credentials.upgrade() else { return };
        credentials.refresh(&mut plugin, was_refused).await;
        drop(credentials);
        if was_refused {
            // Hundreds of requests may be refused before there is anything new to read.
            sleep(REFUSAL_PAUSE).await;
        }
    }
}

/// On a thread that may block: a file may lie on a slow disk.
async fn read_settings(
    source: &Source,
    environment: Environment<'static>,
) -> Result<Settings, ConfigError> {
    let source = source.clone();
    let reading = tokio::task::spawn_blocking(move || source.read(environment));
    reading.await.unwrap_or(Err(ConfigError::NoRuntime))
}

async fn read_snapshot(
    settings: Settings,
    plugin: Option<&PluginRuns>,
    tls: &Arc<TlsConfigs>,
) -> Result<Snapshot, KubeconfigError> {
    let (issued, tls) = (plugin.map(PluginRuns::issued), Arc::clone(tls));
    let reading = tokio::task::spawn_blocking(move || Snapshot::read(settings, issued, &tls));
    let stopped = || KubeconfigError::Read(Arc::new(io::Error::other("the process ends")));
    reading.await.unwrap_or_else(|_| Err(stopped()))
}

#[cfg(test)]
mod tests;
