//! [`Connections`]: how each cluster of a flavour is reached now, what that was resolved from, and
//! which clusters use which Secret and credential. [`SecretCache`]: the metadata of Secrets, which
//! shows when one of them changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::Metadata;
use parking_lot::Mutex;
use probe::{Client, Problem};
use tokio::time::{Instant, timeout};

use super::flavour::{MemberId, is_another};
use crate::secret_data::ReadError;

/// The connections of all clusters of a flavour, by the key of their object. An entry belongs to one
/// UID.
#[derive(Default)]
pub(crate) struct Connections(Mutex<State>);

#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    /// The clusters that use a Secret.
    users: HashMap<Arc<str>, HashSet<Arc<str>>>,
}

struct Entry {
    uid: Arc<str>,
    /// When this process first saw the cluster.
    first_seen: Instant,
    was_held_back: bool,
    connection: Option<Connection>,
    /// The addresses of the last connection that had any.
    addresses: Vec<Box<str>>,
    /// The credential object that the cluster names.
    reference: Option<Arc<str>>,
    secret: Option<Arc<str>>,
    /// How often another credential may have become the one of the cluster.
    invalidations: u64,
}

/// How a cluster is reached.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) resolved_from: ResolvedFrom,
    pub(crate) client: Result<Arc<Client>, Problem>,
    /// The number of invalidations when it was resolved; after another one it is resolved again.
    /// `None` when not all of it could be read.
    pub(crate) resolved_at: Option<u64>,
}

/// The objects that a connection was resolved from: while they are the same nothing is read again.
#[derive(Clone, PartialEq)]
pub(crate) struct ResolvedFrom {
    /// A hash of the fields of the object that the connection depends on.
    pub(crate) access: u64,
    pub(crate) credential: Option<ObjectVersion>,
    pub(crate) secret: Option<ObjectVersion>,
}

/// The version of an object: of a credential object the one that was read, of a Secret the one that
/// the metadata cache showed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) key: Arc<str>,
    /// `None` when there was no such object.
    pub(crate) version: Option<u64>,
}

impl Connections {
    /// Begins to resolve the connection of a cluster that names this credential object: returns the
    /// known one and the number of invalidations so far. A later invalidation makes the result
    /// outdated (`rule:what-changes-while-it-is-read-is-read-again`).
    pub(crate) fn begin_resolve(
        &self,
        cluster: &MemberId,
        reference: Option<Arc<str>>,
    ) -> (Option<Connection>, u64) {
        let mut state = self.0.lock();
        let entry = state.entry(cluster);
        entry.reference = reference;
        (entry.connection.clone(), entry.invalidations)
    }

    /// The cluster uses this Secret and no other. To be called before the Secret is looked at: a
    /// change from then on leads to the cluster
    /// (`rule:what-changes-while-it-is-read-is-read-again`).
    pub(crate) fn use_secret(&self, cluster: &MemberId, secret: Option<&Arc<str>>) {
        let mut state = self.0.lock();
        let before = std::mem::replace(&mut state.entry(cluster).secret, secret.cloned());
        if before.as_ref() == secret {
            return;
        }
        state.forget_user(&cluster.key, before.as_ref());
        if let Some(secret) = secret {
            let users = state.users.entry(Arc::clone(secret)).or_default();
            users.insert(Arc::clone(&cluster.key));
        }
    }

    /// Sets the connection. Whether it leads to another cluster than the one before.
    pub(crate) fn set(
        &self,
        cluster: &MemberId,
        connection: Connection,
        addresses: &[Box<str>],
    ) -> bool {
        let mut state = self.0.lock();
        let entry = state.entry(cluster);
        let is_another = is_another(&entry.addresses, addresses);
        if !addresses.is_empty() {
            entry.addresses = addresses.to_vec();
        }
        let before = entry.connection.replace(connection);
        drop(state);
        // Dropped outside of the lock: that closes connections and wipes a credential.
        drop(before);
        is_another
    }

    /// How much longer a cluster that is new to this process may be held back, out of `grace`, and
    /// whether it was held back before; `None` counts as not held back.
    pub(crate) fn hold_back(
        &self,
        cluster: &MemberId,
        grace: Option<Duration>,
    ) -> (Option<Duration>, bool) {
        let mut state = self.0.lock();
        let entry = state.entry(cluster);
        let left = grace.map(|grace| grace.saturating_sub(entry.first_seen.elapsed()));
        let left = left.filter(|left| !left.is_zero());
        let was_held_back = entry.was_held_back;
        entry.was_held_back |= left.is_some();
        (left, was_held_back)
    }

    /// The client of the newest inputs.
    pub(crate) fn client(&self, cluster: &MemberId) -> Option<Arc<Client>> {
        let state = self.0.lock();
        let entry = state.entries.get(&cluster.key).filter(|entry| entry.uid == cluster.uid)?;
        entry.connection.as_ref()?.client.as_ref().ok().cloned()
    }

    /// The clusters that have a client.
    pub(crate) fn reachable(&self) -> Vec<MemberId> {
        let state = self.0.lock();
        let has_client = |entry: &Entry| {
            entry.connection.as_ref().is_some_and(|connection| connection.client.is_ok())
        };
        let reachable = state.entries.iter().filter(|(_, entry)| has_client(entry));
        let cluster = |(key, entry): (&Arc<str>, &Entry)| MemberId {
            uid: Arc::clone(&entry.uid),
            key: Arc::clone(key),
        };
        reachable.map(cluster).collect()
    }

    /// Drops everything about a cluster, its credential included.
    pub(crate) fn remove(&self, cluster: &MemberId) {
        let mut state = self.0.lock();
        if state.entries.get(&cluster.key).is_none_or(|entry| entry.uid != cluster.uid) {
            return;
        }
        let removed = state.entries.remove(&cluster.key);
        let secret = removed.as_ref().and_then(|removed| removed.secret.as_ref());
        state.forget_user(&cluster.key, secret);
        drop(state);
        drop(removed);
    }

    /// Whether a connection is kept for a cluster, or is being resolved.
    pub(crate) fn knows(&self, cluster: &MemberId) -> bool {
        self.0.lock().entries.get(&cluster.key).is_some_and(|entry| entry.uid == cluster.uid)
    }

    /// Has the credential of the cluster with this key looked up again.
    pub(crate) fn invalidate(&self, key: &str) {
        if let Some(entry) = self.0.lock().entries.get_mut(key) {
            entry.invalidations += 1;
        }
    }

    /// The keys of the clusters that use this Secret.
    pub(crate) fn users_of_secret(&self, secret: &str) -> Vec<Arc<str>> {
        self.0.lock().users.get(secret).into_iter().flatten().cloned().collect()
    }

    /// The keys of the clusters that use this credential object, or name it.
    pub(crate) fn users_of_credential(&self, name: &str) -> Vec<Arc<str>> {
        let state = self.0.lock();
        let uses = |entry: &Entry| {
            let used =
                entry.connection.as_ref().and_then(|it| it.resolved_from.credential.as_ref());
            used.is_some_and(|used| &*used.key == name) || entry.reference.as_deref() == Some(name)
        };
        let users = state.entries.iter().filter(|(_, entry)| uses(entry));
        users.map(|(key, _)| Arc::clone(key)).collect()
    }
}

impl State {
    /// The entry of a cluster; one that is new, or another under a known key, begins with nothing.
    fn entry(&mut self, cluster: &MemberId) -> &mut Entry {
        let is_another = |entry: &Entry| entry.uid != cluster.uid;
        if self.entries.get(&cluster.key).is_some_and(is_another)
            && let Some(before) = self.entries.remove(&cluster.key)
        {
            self.forget_user(&cluster.key, before.secret.as_ref());
        }
        self.entries.entry(Arc::clone(&cluster.key)).or_insert_with(|| Entry {
            uid: Arc::clone(&cluster.uid),
            first_seen: Instant::now(),
            was_held_back: false,
            connection: None,
            addresses: Vec::new(),
            reference: None,
            secret: None,
            invalidations: 0,
        })
    }

    fn forget_user(&mut self, cluster: &str, secret: Option<&Arc<str>>) {
        let Some(secret) = secret else { return };
        if let Some(users) = self.users.get_mut(secret) {
            users.remove(cluster);
            if users.is_empty() {
                self.users.remove(secret);
            }
        }
    }
}

/// How long a worker waits for the first list.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// The metadata of Secrets, watched from when the first of them is needed.
pub(crate) struct SecretCache {
    begin: Begin,
    changed: Arc<dyn Fn(&str) + Send + Sync>,
    /// Each namespace has a watch of its own, which takes no right to the Secrets of others.
    is_by_namespace: bool,
    caches: Mutex<HashMap<Box<str>, Watch>>,
}

/// Starts the watch of a namespace.
type Begin = Box<dyn Fn(&str) -> Informer<Metadata> + Send + Sync>;
type Watch = (Informer<Metadata>, Subscription<Metadata>);

impl SecretCache {
    /// `begin` starts the watch; `changed` is called with the key of each Secret that changes.
    pub(crate) fn new(
        begin: impl Fn() -> Informer<Metadata> + Send + Sync + 'static,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { is_by_namespace: false, ..Self::by_namespace(move |_| begin(), changed) }
    }

    /// Like [`Self::new`], with a watch for each namespace that has a Secret in use.
    pub(crate) fn by_namespace(
        begin: impl Fn(&str) -> Informer<Metadata> + Send + Sync + 'static,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (begin, changed) = (Box::new(begin), Arc::new(changed));
        Self { begin, changed, is_by_namespace: true, caches: Mutex::default() }
    }

    /// The version of a Secret; `None` when it does not exist. Waits a moment for the first list, and no
    /// longer: clusters that need no Secret must not wait for Secrets that cannot be listed.
    pub(crate) async fn version(&self, key: &str) -> Result<Option<u64>, ReadError> {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        let cache = self.cache(if self.is_by_namespace { namespace } else { "" });
        if !cache.is_synced() {
            let denied = cache.denied();
            let listed = match denied {
                None => timeout(LISTED_WITHIN, cache.synced()).await.is_ok(),
                Some(_) => false,
            };
            if !listed {
                let why = denied.or_else(|| cache.denied());
                let why = why.unwrap_or_else(|| "they are not listed yet".to_owned());
                return Err(ReadError::Unlisted(why));
            }
        }
        Ok(cache.get(key).map(|secret| secret.resource_version))
    }

    /// The one cache of all Secrets, whose watch begins now at the latest; `None` when each namespace has its own.
    pub(crate) fn whole(&self) -> Option<Informer<Metadata>> {
        (!self.is_by_namespace).then(|| self.cache(""))
    }

    fn cache(&self, namespace: &str) -> Informer<Metadata> {
        let mut caches = self.caches.lock();
        let (informer, _) = caches.entry(namespace.into()).or_insert_with(|| {
            let informer = (self.begin)(namespace);
            let changed = Arc::clone(&self.changed);
            let subscription = informer.subscribe(move |delta| match delta {
                Delta::Added(secret)
                | Delta::Deleted(secret)
                | Delta::Updated { new: secret, .. } => changed(&secret.key),
                Delta::ListStarts | Delta::ListEnds => {}
            });
            (informer, subscription)
        });
        informer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(key: &str, uid: &str) -> MemberId {
        MemberId { key: key.into(), uid: uid.into() }
    }

    #[test]
    fn a_secret_leads_to_the_clusters_that_use_it_and_to_no_others() {
        let (connections, secret) = (Connections::default(), |name: &str| Arc::from(name));
        let users = |secret: &str| {
            let mut users = connections.users_of_secret(secret);
            users.sort();
            users.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (a, b) = (cluster("ns/a", "1"), cluster("ns/b", "2"));
        connections.use_secret(&a, Some(&secret("ns/s")));
        connections.use_secret(&b, Some(&secret("ns/s")));
        connections.use_secret(&b, Some(&secret("ns/s")));
        assert_eq!(users("ns/s"), ["ns/a", "ns/b"]);
        connections.use_secret(&b, Some(&secret("ns/t")));
        assert_eq!((users("ns/s"), users("ns/t")), (vec!["ns/a".into()], vec!["ns/b".into()]));
        connections.use_secret(&b, None);
        assert_eq!(users("ns/t"), [""; 0]);
        // Another object of the same name uses nothing yet.
        connections.begin_resolve(&cluster("ns/a", "3"), None);
        assert_eq!(users("ns/s"), [""; 0]);
        connections.use_secret(&cluster("ns/a", "3"), Some(&secret("ns/s")));
        connections.remove(&a);
        assert_eq!(users("ns/s"), ["ns/a"], "the one before it is removed late");
        connections.remove(&cluster("ns/a", "3"));
        assert_eq!(users("ns/s"), [""; 0]);
        assert!(connections.0.lock().users.is_empty());
    }
}
