//! [`Permits`]: how many probes are under way at once. [`Job`]: one probe to make; [`CheckRun`]: one check. [`ClientProber`]: one
//! member cluster as the engine probes it, in any flavour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use health::{Check, CheckEvidence, Code, Load, Moment, Report, is_insufficient, probes_at_once};
use parking_lot::Mutex;
use probe::{Client, Inputs, Reread};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::flavour::{ClusterProber, Contact, MemberId};
use super::resolve::{CredentialSource, Resolve};
use crate::check_requests::examine;
use crate::secret_data::SecretData;

/// A cap that follows the number of clusters, or stays where the operator put it.
pub(crate) struct Permits {
    semaphore: Arc<Semaphore>,
    /// 0 when the cap is computed.
    configured: usize,
    cap: Mutex<Cap>,
}

struct Cap {
    size: usize,
    insufficient: bool,
}

impl Permits {
    pub(crate) fn new(configured: usize) -> Self {
        let size = if configured > 0 { configured } else { probes_at_once(&[]) };
        let size = size.min(Semaphore::MAX_PERMITS);
        let cap = Mutex::new(Cap { size, insufficient: false });
        Self { semaphore: Arc::new(Semaphore::new(size)), configured, cap }
    }

    /// Waits for its turn, in the order of arrival.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // Fails only when the semaphore is closed, and it never is.
        Arc::clone(&self.semaphore).acquire_owned().await.ok()
    }

    /// Follows the clusters there are. A computed cap only grows: permits in use cannot be taken
    /// back, and too many do no harm.
    pub(crate) fn follow(&self, loads: &[Load]) {
        let mut cap = self.cap.lock();
        if self.configured == 0 {
            let wanted = probes_at_once(loads).min(Semaphore::MAX_PERMITS);
            if wanted > cap.size {
                self.semaphore.add_permits(wanted - cap.size);
                cap.size = wanted;
            }
        }
        let insufficient = is_insufficient(cap.size, loads);
        if insufficient && !cap.insufficient {
            let (at_once, enough) = (cap.size, probes_at_once(loads));
            warn!(
                "--cluster-health-max-concurrent-probes={at_once} is too small: if no member answers, probes start later than their period; set it to {enough} or more, or to 0"
            );
        }
        cap.insufficient = insufficient;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.cap.lock().size.saturating_sub(self.semaphore.available_permits())
    }

    pub(crate) fn is_insufficient(&self) -> bool {
        self.cap.lock().insufficient
    }
}

/// One run of a check.
pub(crate) struct CheckRun {
    pub(crate) check: Arc<Check>,
    pub(crate) prober: Arc<dyn ClusterProber>,
    /// Since when it has waited for its turn.
    pub(crate) queued: Instant,
}

/// One probe to make.
pub(crate) struct Job {
    /// Cancelled when the task was replaced or what it probes has changed: what it finds is void.
    pub(crate) void: CancellationToken,
    pub(crate) prober: Arc<dyn ClusterProber>,
    pub(crate) timeout: Duration,
    pub(crate) started: Moment,
    /// How long after its time it starts.
    pub(crate) lag: Duration,
}

/// Reads what a client of one member is made of now; `None` when that cannot be read.
pub(crate) type ReadInputs = dyn Fn() -> BoxFuture<'static, Option<Inputs>> + Send + Sync;

/// Probes a member by the client of its connection.
struct ClientProber<R> {
    flavour: Arc<R>,
    cluster: MemberId,
    client: Arc<Client>,
    rotation: Option<Rotation>,
}

/// Finds a credential that was replaced before the watch showed the change.
struct Rotation {
    read: Box<ReadInputs>,
    /// The last probe was refused, and the credential was read since.
    was_read: AtomicBool,
    /// Made of what was read, until the watch brings another prober.
    renewed: Mutex<Option<Arc<Client>>>,
}

impl<R: Resolve> ClientProber<R> {
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
            let is_refused = probed.report.finding.code() == Some(Code::Unauthorized);
            if let (true, Some(plugins)) = (is_refused, members.plugins) {
                plugins.refused(&self.cluster.uid);
            }
            if let (false, Some(rotation)) = (is_refused, &self.rotation) {
                rotation.was_read.store(false, Ordering::Relaxed);
            }
            self.flavour.judge(&self.cluster, probed)
        })
    }

    fn examine<'a>(&'a self, check: &'a Check) -> BoxFuture<'a, CheckEvidence> {
        Box::pin(async move {
            // A list that was made since the last run will do.
            let nodes = self.flavour.nodes(&self.cluster, check.interval / 2);
            examine(self.flavour.members().prober, &self.client(), check, nodes).await
        })
    }

    fn close_connection(&self) {
        self.client().close_connection();
    }

    fn contact(&self) -> Contact {
        Contact::from(&*self.client())
    }
}

/// Makes the prober of a cluster that is reached by this client.
pub(crate) type MakeProber<R> =
    fn(Arc<R>, MemberId, Arc<Client>, Option<Box<ReadInputs>>) -> Arc<dyn ClusterProber>;

/// The prober of a cluster outside of tests, by `client`; `read` reads its inputs again when its
/// credential is refused.
pub(crate) fn client_prober<R: Resolve>(
    flavour: Arc<R>,
    cluster: MemberId,
    client: Arc<Client>,
    read: Option<Box<ReadInputs>>,
) -> Arc<dyn ClusterProber> {
    let rotation =
        |read| Rotation { read, was_read: AtomicBool::new(false), renewed: Mutex::default() };
    Arc::new(ClientProber { flavour, cluster, client, rotation: read.map(rotation) })
}

/// Secrets of refused credentials that are read at the same time: a mass of members that refuse
/// their credentials must not be a mass of reads.
const REREADS: usize = 16;

/// Bounds the Secrets that are read again at the same time.
#[derive(Clone)]
pub(crate) struct Rereads(Arc<Semaphore>);

impl Default for Rereads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REREADS)))
    }
}

/// Reads the Secret of a member as its object names it by then.
pub(crate) fn reread<R: Resolve>(
    flavour: &Arc<R>,
    api: kube::Client,
    Rereads(turns): Rereads,
    cluster: MemberId,
) -> Box<ReadInputs> {
    let flavour = Arc::downgrade(flavour);
    Box::new(move || {
        let (flavour, cluster) = (flavour.clone(), cluster.clone());
        let (api, turns) = (api.clone(), Arc::clone(&turns));
        let read = async move {
            let flavour = flavour.upgrade()?;
            let object = flavour.members().objects.get(&cluster)?;
            let _turn = turns.try_acquire().ok()?;
            let source = flavour.source(&object, None).ok()?;
            let CredentialSource::Secret { key, entry } = source else { return None };
            let secret = SecretData::read(&api, &key, entry.as_deref()).await.ok()??;
            flavour.inputs(&object, None, Some(secret)).ok()
        };
        read.boxed()
    })
}
