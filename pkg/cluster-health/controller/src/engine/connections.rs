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
use tokio_util::sync::{CancellationToken, DropGuard};

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
        let mut users: Vec<_> =
            self.0.lock().users.get(secret).into_iter().flatten().cloned().collect();
        users.sort_unstable();
        users
    }

    /// The namespaces with a Secret that a cluster uses.
    fn secret_namespaces(&self) -> HashSet<Box<str>> {
        self.0.lock().users.keys().map(|secret| namespace_of(secret).into()).collect()
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
        let mut users: Vec<_> = users.map(|(key, _)| Arc::clone(key)).collect();
        users.sort_unstable();
        users
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
type Begin = Box<dyn Fn(&str, CancellationToken) -> Informer<Metadata> + Send + Sync>;
type Watch = (Informer<Metadata>, Subscription<Metadata>, DropGuard);

fn namespace_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

impl SecretCache {
    /// `begin` starts the watch; `changed` is called with the key of each Secret that changes.
    pub(crate) fn new(
        begin: impl Fn() -> Informer<Metadata> + Send + Sync + 'static,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { is_by_namespace: false, ..Self::by_namespace(move |_, _| begin(), changed) }
    }

    /// Like [`Self::new`], with a watch for each namespace that has a Secret in use; its token is cancelled when there is
    /// none any more.
    pub(crate) fn by_namespace(
        begin: impl Fn(&str, CancellationToken) -> Informer<Metadata> + Send + Sync + 'static,
        changed: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (begin, changed) = (Box::new(begin), Arc::new(changed));
        Self { begin, changed, is_by_namespace: true, caches: Mutex::default() }
    }

    /// The version of a Secret; `None` when it does not exist. Waits a moment for the first list, and no
    /// longer: clusters that need no Secret must not wait for Secrets that cannot be listed.
    pub(crate) async fn version(&self, key: &str) -> Result<Option<u64>, ReadError> {
        let cache = self.cache(if self.is_by_namespace { namespace_of(key) } else { "" });
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

    /// Ends the watches of namespaces without a Secret that a cluster uses. Those that are deleted take the right to their
    /// Secrets with them: their watches would be refused for ever.
    pub(crate) fn end_unused(&self, connections: &Connections) {
        if !self.is_by_namespace {
            return;
        }
        let mut caches = self.caches.lock();
        let used = connections.secret_namespaces();
        let unused: Vec<_> = caches.extract_if(|namespace, _| !used.contains(namespace)).collect();
        drop(caches);
        drop(unused);
    }

    fn cache(&self, namespace: &str) -> Informer<Metadata> {
        let mut caches = self.caches.lock();
        let (informer, ..) = caches.entry(namespace.into()).or_insert_with(|| {
            let end = CancellationToken::new();
            let informer = (self.begin)(namespace, end.clone());
            let changed = Arc::clone(&self.changed);
            let subscription = informer.subscribe(move |delta| match delta {
                Delta::Added(secret)
                | Delta::Deleted(secret)
                | Delta::Updated { new: secret, .. } => changed(&secret.key),
                Delta::ListStarts | Delta::ListEnds => {}
            });
            (informer, subscription, end.drop_guard())
        });
        informer.clone()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::secret_data::SECRETS;
    use crate::testing::informer;

    fn cluster(key: &str, uid: &str) -> MemberId {
        MemberId { key: key.into(), uid: uid.into() }
    }

    /// rule:nothing-outlives-its-object
    #[tokio::test]
    async fn the_watch_of_a_namespace_ends_with_the_last_cluster_that_uses_a_secret_in_it() {
        let (_, told) = unbounded_channel();
        let informer = informer::<Metadata>(&SECRETS, vec![], told).await;
        let begun = Arc::<Mutex<Vec<(String, CancellationToken)>>>::default();
        let watches = Arc::clone(&begun);
        let begin = move |namespace: &str, end| {
            watches.lock().push((namespace.to_owned(), end));
            informer.clone()
        };
        let (secrets, connections) =
            (SecretCache::by_namespace(begin, |_| {}), Connections::default());
        let (a, b) = (cluster("a/x", "1"), cluster("b/x", "2"));
        for (it, key) in [(&a, "a/s"), (&b, "b/s")] {
            connections.use_secret(it, Some(&Arc::from(key)));
            assert_eq!(secrets.version(key).await.unwrap(), None);
        }
        let ended = || {
            let begun = begun.lock();
            begun.iter().map(|(name, end)| (name.clone(), end.is_cancelled())).collect::<Vec<_>>()
        };
        secrets.end_unused(&connections);
        connections.remove(&b);
        assert_eq!(ended(), [("a".to_owned(), false), ("b".to_owned(), false)]);
        secrets.end_unused(&connections);
        assert_eq!(ended(), [("a".to_owned(), false), ("b".to_owned(), true)]);
        for key in ["a/s", "b/s"] {
            secrets.version(key).await.unwrap();
        }
        assert_eq!(ended().len(), 3, "one of them begins again");
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
