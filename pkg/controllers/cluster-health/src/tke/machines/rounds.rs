//! [`Rounds`]: looks at the Machines of each Cluster, period by period. The keys of its queue are
//! names of Clusters.

use std::sync::Arc;
use std::time::Duration;

use objects::Object;
use rand::RngExt as _;
use workqueue::{Next, Reconcile, Retry};

use super::host::Host;
use super::record::Want;
use super::standing::Cause;
use super::ward::Ward;
use crate::api::tke;
use crate::engine::{Registry, now};
use crate::tke::book::{Book, identity};
use crate::tke::node_lists::NodeLists;
use crate::tke::options::TkeOptions;

/// For a word that is said once and not again: longer than any process lives.
const ONCE: Duration = Duration::from_secs(1 << 32);

/// Reads a Cluster by its name.
pub(crate) type ClusterLookup =
    Box<dyn Fn(&str) -> Option<Arc<Object<tke::Cluster>>> + Send + Sync>;

/// Looks at Machines.
pub(crate) struct Rounds {
    pub(crate) clusters: ClusterLookup,
    pub(crate) book: Arc<Book>,
    pub(crate) registry: Registry,
    pub(crate) options: Arc<TkeOptions>,
    pub(crate) ward: Arc<Ward>,
    pub(crate) lists: Arc<NodeLists>,
}

impl Reconcile for Rounds {
    type Key = Arc<str>;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, Retry> {
        let cluster = (self.clusters)(name);
        let id = cluster.as_ref().map(|it| identity(it));
        let readiness = id.as_ref().and_then(|id| self.registry.readiness(id));
        let known = id.as_ref().is_some_and(|id| self.registry.knows(id));
        if let Some(id) = &id {
            self.book.known(id, |entry| entry.machines_saw = readiness);
        }
        let Some(want) = self.ward.want(name) else { return Ok(Next::Done) };
        match (Host::of(name, cluster.as_deref(), known, readiness), cluster) {
            (Host::Healthy, Some(cluster)) => self.list(&cluster, want).await,
            (Host::Healthy | Host::Silent, _) => self.ward.release(name),
            (Host::Unhealthy(why), _) => {
                let heartbeat = self.options.policy.heartbeat;
                self.ward.unknown(name, (Cause::ClusterUnhealthy, &why), heartbeat, now());
            }
            // rule:machines-without-a-cluster-have-one-replica
            (Host::Unwatched(..), _) if !self.registry.is_ours(name) => self.ward.release(name),
            (Host::Unwatched(cause, why), _) => {
                self.ward.unknown(name, (cause, &why), ONCE, now());
            }
        }
        Ok(self.next(name))
    }
}

impl Rounds {
    async fn list(&self, cluster: &Object<tke::Cluster>, want: Want) {
        let cluster = identity(cluster);
        let Some((client, target)) = self.book.target(&cluster) else { return };
        // One that was made for somebody else since the last round will do.
        let max_age = match want {
            Want::Anything => Duration::ZERO,
            Want::Confirmation => self.options.machine_confirm() / 2,
            Want::NothingNew => self.options.machine_period / 2,
        };
        // Why there is none was taken in with it.
        let _listed = self.lists.totals(&cluster, &client, target, max_age).await;
    }

    fn next(&self, name: &str) -> Next {
        let period = self.options.machine_period;
        let wait = match self.ward.want(name) {
            None => return Next::Done,
            Some(Want::Confirmation) => self.options.machine_confirm(),
            // What there was to learn was learnt now.
            Some(Want::NothingNew | Want::Anything) => period,
        };
        Next::After(wait.mul_f64(rand::rng().random_range(0.9..1.1)))
    }
}
