//! [`ClientProber`]: one member cluster as the engine probes it, in any flavour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use health::{Code, Report};
use parking_lot::Mutex;
use probe::{Client, Inputs, Reread};

use super::flavour::{Cluster, ClusterProber, Contact};
use super::resolve::Resolve;

/// Reads what a client of one member is made of now; `None` when that cannot be read.
pub(crate) type ReadInputs = dyn Fn() -> BoxFuture<'static, Option<Inputs>> + Send + Sync;

/// Probes a member by the client of its connection.
pub(crate) struct ClientProber<R> {
    flavour: Arc<R>,
    cluster: Cluster,
    client: Arc<Client>,
    rotation: Option<Rotation>,
}

/// Finds a credential that was replaced before the watch told of it
/// (`rule:a-refused-credential-is-read-once`).
struct Rotation {
    read: Box<ReadInputs>,
    /// The last probe was refused, and the credential was read since.
    was_read: AtomicBool,
    /// Made of what was read, until the watch brings another prober.
    renewed: Mutex<Option<Arc<Client>>>,
}

impl<R: Resolve> ClientProber<R> {
    /// Probes by `client`; `read` reads its inputs again when its credential is refused.
    pub(crate) fn new(
        flavour: Arc<R>,
        cluster: Cluster,
        client: Arc<Client>,
        read: Option<Box<ReadInputs>>,
    ) -> Self {
        let rotation =
            |read| Rotation { read, was_read: AtomicBool::new(false), renewed: Mutex::default() };
        Self { flavour, cluster, client, rotation: read.map(rotation) }
    }

    fn client(&self) -> Arc<Client> {
        let renewed = self.rotation.as_ref().and_then(|rotation| rotation.renewed.lock().clone());
        renewed.unwrap_or_else(|| Arc::clone(&self.client))
    }

    fn period(&self) -> Duration {
        let object = self.flavour.members().objects.get(&self.cluster);
        object.map(|object| self.flavour.policy(&object).cadence.period).unwrap_or_default()
    }
}

impl<R: Resolve> Reread for ClientProber<R> {
    fn reread(&self) -> BoxFuture<'_, Option<Arc<Client>>> {
        Box::pin(async move {
            let rotation = self.rotation.as_ref()?;
            if rotation.was_read.swap(true, Ordering::Relaxed) {
                return None;
            }
            let inputs = (rotation.read)().await?;
            let used = self.client();
            if inputs.fingerprint() == used.fingerprint() {
                return None;
            }
            let client = Arc::new(self.flavour.members().prober.client(&inputs).ok()?);
            client.learn_from(&used);
            *rotation.renewed.lock() = Some(Arc::clone(&client));
            Some(client)
        })
    }
}

impl<R: Resolve> ClusterProber for ClientProber<R> {
    fn probe(&self, budget: Duration) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let members = self.flavour.members();
            // The client of this prober is not newer than one that was read since.
            let own = self.client.fingerprint();
            let newest = || {
                let newest = members.connections.client(&self.cluster);
                newest.filter(|newest| newest.fingerprint() != own)
            };
            let order = probe::Order {
                budget,
                authenticated_read: R::AUTHENTICATED_READ,
                next_in: self.period(),
                newest: &newest,
                reread: self.rotation.as_ref().map(|_| self as &dyn Reread),
            };
            let probed = members.prober.probe(&self.client(), &order).await;
            if let Some(rotation) = &self.rotation
                && probed.report.finding.code() != Some(Code::Unauthorized)
            {
                rotation.was_read.store(false, Ordering::Relaxed);
            }
            self.flavour.judge(&self.cluster, probed)
        })
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client())
    }
}
