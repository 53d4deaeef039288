//! [`ClientProber`]: one member cluster as the engine probes it, in any flavour.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::Report;
use parking_lot::Mutex;

use crate::engine::{self, Contact};

/// What probes call themselves.
pub(crate) const USER_AGENT: &str = "infra-controller-manager/cluster-health";

/// The client of the newest inputs of one cluster, shared by all that were made for it: a probe
/// that is refused looks here whether the credential was replaced meanwhile.
#[derive(Clone, Default)]
pub(crate) struct Newest(Arc<Mutex<Option<Arc<probe::Client>>>>);

impl Newest {
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

/// How a member is probed.
pub(crate) struct ClientProber {
    prober: Arc<probe::Prober>,
    client: Arc<probe::Client>,
    newest: Newest,
    /// Whether a healthy answer is followed by an authenticated read.
    authenticated_read: bool,
    /// Between two probes, as it is now.
    period: Box<dyn Fn() -> Duration + Send + Sync>,
    /// Told of the attempts of each probe.
    tried: Box<Tried>,
}

impl ClientProber {
    /// Probes by `client`, which is the newest one from now on.
    pub(crate) fn new(
        prober: Arc<probe::Prober>,
        client: probe::Client,
        newest: Newest,
        authenticated_read: bool,
        period: impl Fn() -> Duration + Send + Sync + 'static,
        tried: impl Fn(&[probe::Trace]) + Send + Sync + 'static,
    ) -> Self {
        let client = Arc::new(client);
        *newest.0.lock() = Some(Arc::clone(&client));
        Self {
            prober,
            client,
            newest,
            authenticated_read,
            period: Box::new(period),
            tried: Box::new(tried),
        }
    }
}

impl engine::ClusterProber for ClientProber {
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let order = probe::Order {
                budget,
                authenticated_read: self.authenticated_read,
                next_in: (self.period)(),
                newest: &|| self.newest.client(),
            };
            let probed = self.prober.probe(&self.client, &order).await;
            (self.tried)(&probed.attempts);
            probed.report
        })
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client)
    }
}
