//! [`ClientProber`]: one member cluster as the engine probes it, in any flavour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Code, Report};
use parking_lot::Mutex;
use probe::{Inputs, Reread};

use crate::engine::{self, Contact};

/// What probes call themselves.
pub(crate) const USER_AGENT: &str = "infra-controller-manager/cluster-health";

/// The client of the newest inputs of one cluster, shared by all that were made for it: a probe
/// that is refused looks here whether the credential was replaced meanwhile.
#[derive(Clone, Default)]
pub(crate) struct NewestClient(Arc<Mutex<Option<Arc<probe::Client>>>>);

impl NewestClient {
    /// Of a member that is reached by this client.
    #[cfg(test)]
    pub(crate) fn of(client: probe::Client) -> Self {
        Self(Arc::new(Mutex::new(Some(Arc::new(client)))))
    }

    /// The client, once there is one.
    pub(crate) fn client(&self) -> Option<Arc<probe::Client>> {
        self.0.lock().clone()
    }

    /// There is no client any more: what it holds goes with the last probe that uses it
    /// (`rule:a-lost-credential-ends-its-client`).
    pub(crate) fn clear(&self) {
        // Dropped outside of the lock: that closes a connection.
        let _gone = self.0.lock().take();
    }
}

type Tried = dyn Fn(&[probe::Trace]) + Send + Sync;

/// Reads what a client of one member is made of now; `None` when that cannot be read.
pub(crate) type ReadInputs = dyn Fn() -> BoxFuture<'static, Option<Inputs>> + Send + Sync;

/// How a member is probed.
pub(crate) struct ClientProber {
    prober: Arc<probe::Prober>,
    client: Arc<probe::Client>,
    newest: NewestClient,
    rotation: Rotation,
    /// Between two probes, as it is now.
    period: Box<dyn Fn() -> Duration + Send + Sync>,
    /// Told of the attempts of each probe.
    tried: Box<Tried>,
}

/// Finds a credential that was replaced before the watch told of it
/// (`rule:a-refused-credential-is-read-once`).
struct Rotation {
    read: Box<ReadInputs>,
    /// The last probe was refused, and the credential was read since.
    was_read: AtomicBool,
    /// Made of what was read, until the watch brings another prober.
    renewed: Mutex<Option<Arc<probe::Client>>>,
}

impl ClientProber {
    /// Probes by `client`, which is the newest one from now on; `read` reads its inputs again when
    /// its credential is refused.
    pub(crate) fn new(
        prober: Arc<probe::Prober>,
        client: probe::Client,
        newest: NewestClient,
        read: Box<ReadInputs>,
        period: impl Fn() -> Duration + Send + Sync + 'static,
        tried: impl Fn(&[probe::Trace]) + Send + Sync + 'static,
    ) -> Self {
        let client = Arc::new(client);
        *newest.0.lock() = Some(Arc::clone(&client));
        let rotation =
            Rotation { read, was_read: AtomicBool::new(false), renewed: Mutex::default() };
        Self { prober, client, newest, rotation, period: Box::new(period), tried: Box::new(tried) }
    }

    fn client(&self) -> Arc<probe::Client> {
        let renewed = self.rotation.renewed.lock().clone();
        renewed.unwrap_or_else(|| Arc::clone(&self.client))
    }
}

impl Reread for ClientProber {
    fn reread(&self) -> BoxFuture<'_, Option<Arc<probe::Client>>> {
        Box::pin(async move {
            if self.rotation.was_read.swap(true, Ordering::Relaxed) {
                return None;
            }
            let inputs = (self.rotation.read)().await?;
            let used = self.client();
            if inputs.fingerprint() == used.fingerprint() {
                return None;
            }
            let client = Arc::new(self.prober.client(&inputs).ok()?);
            client.learn_from(&used);
            *self.rotation.renewed.lock() = Some(Arc::clone(&client));
            Some(client)
        })
    }
}

impl engine::ClusterProber for ClientProber {
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            // The one that this prober was made with is not newer than one that was read since.
            let own = self.client.fingerprint();
            let order = probe::Order {
                budget,
                authenticated_read: false,
                next_in: (self.period)(),
                newest: &|| self.newest.client().filter(|newest| newest.fingerprint() != own),
                reread: Some(self),
            };
            let probed = self.prober.probe(&self.client(), &order).await;
            if probed.report.finding.code() != Some(Code::Unauthorized) {
                self.rotation.was_read.store(false, Ordering::Relaxed);
            }
            (self.tried)(&probed.attempts);
            probed.report
        })
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client())
    }
}
