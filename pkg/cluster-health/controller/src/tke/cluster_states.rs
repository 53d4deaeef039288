//! [`ClusterStates`]: the connection and the facts of each Cluster that this process has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use health::Status;
use parking_lot::Mutex;
use probe::{Address, Client, Problem};
use tokio::time::Instant;

use super::facts::Facts;
use super::summary::NodeTotals;
use crate::api::tke::ResourceSummary;
use crate::engine::{Cluster, Contact, is_another};

/// A summary at first. One that is not complete by then gets twice as long the next time, up to
/// [`SUMMARY_LIMIT_MAX`]: 150,000 Pods are 300 pages, and slow members must not hold all workers.
const SUMMARY_LIMIT: Duration = Duration::from_secs(60);
pub(crate) const SUMMARY_LIMIT_MAX: Duration = Duration::from_secs(300);

/// All Clusters, by name. An entry belongs to one UID.
#[derive(Default)]
pub(crate) struct ClusterStates {
    entries: Mutex<HashMap<Arc<str>, ClusterState>>,
}

/// The newest list of Nodes: when it was begun, and its sums. Locked while one is under way.
pub(crate) type LatestNodes = Arc<tokio::sync::Mutex<Option<(Instant, Arc<NodeTotals>)>>>;

/// The state of one Cluster.
pub(crate) struct ClusterState {
    uid: Arc<str>,
    /// When it was first seen by this process.
    pub(crate) first_seen: Instant,
    /// The Cluster was held back: it had no credential.
    pub(crate) was_held_back: bool,
    pub(crate) connection: Option<Connection>,
    /// The addresses of the last connection that had any.
    addresses: Vec<Address>,
    /// The ClusterCredential that its object names.
    reference: Option<Arc<str>>,
    /// How often another ClusterCredential may have become the one for it.
    invalidations: u64,
    pub(crate) facts: Facts,
    /// The API server of the Cluster answered the last probe with `ok`.
    pub(crate) answers: bool,
    /// When its version was asked for.
    pub(crate) version_asked: Option<Instant>,
    /// When its addresses were asked that probes do not ask.
    pub(crate) looked_around: Option<Instant>,
    /// A summary is queued or under way.
    pub(crate) summary_planned: bool,
    /// How long its next summary may take.
    pub(crate) summary_limit: Duration,
    /// The newest list of its Nodes.
    pub(crate) nodes: LatestNodes,
    /// What was published of it when its Machines were last looked at.
    pub(crate) machines_saw: Option<Status>,
}

impl ClusterState {
    /// Begins to resolve the connection: returns the known one and the number of invalidations so
    /// far. A later invalidation makes the result outdated
    /// (`rule:what-changes-while-it-is-read-is-read-again`).
    pub(crate) fn begin_resolve(
        &mut self,
        reference: Option<Arc<str>>,
    ) -> (Option<Connection>, u64) {
        self.reference = reference;
        (self.connection.clone(), self.invalidations)
    }

    /// Sets the connection. If it leads to another cluster, the facts of the one before are dropped
    /// (`rule:another-target-has-no-address-in-common`).
    pub(crate) fn set_connection(&mut self, connection: Connection) {
        if let Ok(addresses) = &connection.resolved_from.addresses {
            if is_another(&self.addresses, addresses) {
                (self.facts, self.nodes) = (Facts::default(), LatestNodes::default());
                (self.version_asked, self.looked_around) = (None, None);
            }
            self.addresses.clone_from(addresses);
        }
        self.connection = Some(connection);
    }

    /// Doubles the time limit of the next summary: this one was not complete in time.
    pub(crate) fn summary_timed_out(&mut self) {
        self.summary_limit = (self.summary_limit * 2).min(SUMMARY_LIMIT_MAX);
    }

    /// The credentials, certificates and addresses of its connection, if it has one.
    pub(crate) fn contact(&self) -> Option<Contact> {
        let client = self.connection.as_ref()?.client.as_ref().ok()?;
        Some(Contact::from(&**client))
    }
}

/// How a Cluster is reached.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) resolved_from: ResolvedFrom,
    pub(crate) client: Result<Arc<Client>, Problem>,
    /// The number of invalidations when it was resolved; after another one it is resolved again.
    /// `None` when not all of it could be read.
    pub(crate) resolved_at: Option<u64>,
}

/// The objects that a connection was resolved from: while they are the same nothing is read again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedFrom {
    pub(crate) addresses: Result<Vec<Address>, Problem>,
    /// The tenant in the spec.
    pub(crate) tenant: Arc<str>,
    /// The name in the spec.
    pub(crate) reference: Option<Arc<str>>,
    pub(crate) credential: Option<ObjectVersion>,
    pub(crate) secret: Option<ObjectVersion>,
}

/// The version of an object: of a ClusterCredential the one that was read, of a Secret the one that
/// the metadata cache showed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) key: Arc<str>,
    /// `None` when there was none.
    pub(crate) version: Option<u64>,
}

impl ClusterStates {
    /// Reads or changes what is known of a Cluster; one that is new, or another under a known name,
    /// begins with nothing.
    pub(crate) fn with<R>(
        &self,
        cluster: &Cluster,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> R {
        let mut entries = self.entries.lock();
        let fresh = || ClusterState {
            uid: Arc::clone(&cluster.uid),
            first_seen: Instant::now(),
            was_held_back: false,
            connection: None,
            addresses: Vec::new(),
            reference: None,
            invalidations: 0,
            facts: Facts::default(),
            answers: false,
            version_asked: None,
            looked_around: None,
            summary_planned: false,
            summary_limit: SUMMARY_LIMIT,
            nodes: LatestNodes::default(),
            machines_saw: None,
        };
        let entry = entries.entry(Arc::clone(&cluster.key)).or_insert_with(fresh);
        if entry.uid != cluster.uid {
            *entry = fresh();
        }
        edit(entry)
    }

    /// Reads or changes what is known of a Cluster, if it is known.
    pub(crate) fn known<R>(
        &self,
        cluster: &Cluster,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> Option<R> {
        let mut entries = self.entries.lock();
        entries.get_mut(&cluster.key).filter(|entry| entry.uid == cluster.uid).map(edit)
    }

    /// The client of the newest inputs.
    pub(crate) fn client(&self, cluster: &Cluster) -> Option<Arc<Client>> {
        self.known(cluster, |entry| entry.connection.as_ref()?.client.as_ref().ok().cloned())
            .flatten()
    }

    /// The name of each Cluster that has a summary, with what `read` returns for it.
    pub(crate) fn summaries<R>(&self, read: impl Fn(&ResourceSummary) -> R) -> Vec<(Arc<str>, R)> {
        let entries = self.entries.lock();
        let summaries = entries.iter().filter_map(|(name, entry)| {
            Some((Arc::clone(name), read(entry.facts.summary.as_ref()?)))
        });
        summaries.collect()
    }

    /// Like [`Self::known`], unless the Cluster is another target than the one `latest` belongs to.
    pub(crate) fn still<R>(
        &self,
        cluster: &Cluster,
        latest: &LatestNodes,
        edit: impl FnOnce(&mut ClusterState) -> R,
    ) -> Option<R> {
        let edited =
            self.known(cluster, |entry| Arc::ptr_eq(&entry.nodes, latest).then(|| edit(entry)));
        edited.flatten()
    }

    /// The client of the newest inputs, and where the lists of that target go.
    pub(crate) fn target(&self, cluster: &Cluster) -> Option<(Arc<Client>, LatestNodes)> {
        let target = |entry: &mut ClusterState| {
            let client = entry.connection.as_ref()?.client.as_ref().ok()?;
            Some((Arc::clone(client), Arc::clone(&entry.nodes)))
        };
        self.known(cluster, target).flatten()
    }

    /// Drops all that is known, credentials with it.
    pub(crate) fn remove(&self, cluster: &Cluster) {
        let mut entries = self.entries.lock();
        if entries.get(&cluster.key).is_some_and(|entry| entry.uid == cluster.uid) {
            entries.remove(&cluster.key);
        }
    }

    /// Has the credential of this Cluster looked up again.
    pub(crate) fn invalidate_connection(&self, name: &str) {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get_mut(name) {
            entry.invalidations += 1;
        }
    }

    /// The names of Clusters that use this ClusterCredential, or name it.
    pub(crate) fn users_of_credential(&self, name: &str) -> Vec<Arc<str>> {
        self.users(|entry| {
            let resolved_from =
                entry.connection.as_ref().map(|connection| &connection.resolved_from);
            let used = resolved_from.and_then(|resolved_from| resolved_from.credential.as_ref());
            used.is_some_and(|seen| &*seen.key == name) || entry.reference.as_deref() == Some(name)
        })
    }

    /// The names of Clusters that use this Secret.
    pub(crate) fn users_of_secret(&self, key: &str) -> Vec<Arc<str>> {
        self.users(|entry| {
            let used = entry
                .connection
                .as_ref()
                .and_then(|connection| connection.resolved_from.secret.as_ref());
            used.is_some_and(|seen| &*seen.key == key)
        })
    }

    fn users(&self, uses: impl Fn(&ClusterState) -> bool) -> Vec<Arc<str>> {
        let entries = self.entries.lock();
        entries.iter().filter(|(_, entry)| uses(entry)).map(|(name, _)| Arc::clone(name)).collect()
    }
}
