//! [`Informer`], the handle that controllers hold, and the [`Subscription`] of a handler.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube_api::{Cached, OwnWrite, Resource, StaticKind};
use tokio::time::{Instant, timeout_at};

use crate::cache::Cache;
use crate::history::{self, LISTS_APART};
use crate::intake::Intake;
use crate::metrics::InformerMetrics;
use crate::progress::Progress;
use crate::request::{Collection, Format};
use crate::source::{Server, Source};
use crate::store::Objects;
use crate::subscribers::{Delta, Membership, Session};

/// A shared copy of all objects of one source; clones share it. See the crate for its promises.
pub struct Informer<T: Cached> {
    pub(crate) cache: Arc<Cache<T>>,
    session: Session,
    /// Lists begun before are too old for this user.
    since: Option<Instant>,
    keep: Option<Arc<dyn Send + Sync>>,
}

impl<T: Cached> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self {
            cache: Arc::clone(&self.cache),
            session: self.session.clone(),
            since: self.since,
            keep: self.keep.clone(),
        }
    }
}

impl<T: Cached> Informer<T> {
    /// An empty informer that does nothing until [`Informer::run`].
    ///
    /// Its requests must not wait behind others: a watch that is not answered within 30 s counts
    /// as failed, and the time in a throttle counts too.
    pub fn new(source: Source, metrics: &InformerMetrics, format: Format) -> Self {
        let cache = Cache::new(source, metrics, format);
        Self { cache, session: Session::new(), since: None, keep: None }
    }

    /// An informer of all objects of a type on the process's own API server.
    pub fn of_all(client: Client, metrics: &InformerMetrics) -> Self
    where
        T: StaticKind,
    {
        let source = Source::new(Server::own(client), T::KIND);
        Self::new(source, metrics, Format::default())
    }

    /// This informer for another user, whose `session` ends when its knowledge is void.
    #[must_use]
    pub fn in_session(&self, session: Session) -> Self {
        Self { session, ..self.clone() }
    }

    /// This informer for a user that keeps `keep` alive as long as one of its handles or
    /// subscriptions lives.
    #[must_use]
    pub fn keeping(&self, keep: Arc<dyn Send + Sync>) -> Self {
        Self { keep: Some(keep), ..self.clone() }
    }

    /// This informer for a user that must see at least the state of `since`: it is synced when a
    /// consistent list that was begun later has been delivered. Requests such a list if necessary.
    #[must_use]
    pub fn not_older_than(&self, since: Instant) -> Self {
        self.cache.shared.demand_list(since);
        Self { since: Some(since), ..self.clone() }
    }

    /// Calls the handler for everything in the store, then for every change, in order, until the
    /// subscription is dropped.
    ///
    /// The handler runs in the informer's task while it delivers: it must return at once. It may
    /// call [`Informer::get`] and [`Informer::len`]; [`Informer::subscribe`] and
    /// [`Informer::frozen`] would wait for itself. A handler that panics is not called again, and
    /// the session of its user ends.
    pub fn subscribe(
        &self,
        handler: impl Fn(Delta<'_, T>) + Send + Sync + 'static,
    ) -> Subscription<T> {
        let membership = self.cache.store.subscribe(Box::new(handler), self.session.clone());
        Subscription::new(Arc::clone(&self.cache), membership, self.keep.clone())
    }

    /// Tells every handler of every object again, as [`Delta::Updated`] of an object into itself,
    /// and asks the server nothing.
    pub fn redeliver(&self) {
        self.cache.store.redeliver();
    }

    /// The newest known copy of an object, by name or `namespace/name`.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        self.cache.store.get(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.cache.store.len()
    }

    /// True when there is no object, or none is known yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the whole store while nothing changes and no delta is delivered: everything in it
    /// has been told to every handler, and nothing else has. Deliveries wait meanwhile.
    pub fn frozen<R>(&self, read: impl FnOnce(&Objects<T>) -> R) -> R {
        self.cache.store.frozen(read)
    }

    /// The first list that is young enough for this user has been delivered to every handler.
    /// Stays true from then on.
    pub fn is_synced(&self) -> bool {
        self.cache.shared.progress.now().has_list(self.since)
    }

    /// Waits until [`Informer::is_synced`].
    pub async fn synced(&self) {
        self.cache.shared.listed(self.since).await;
    }

    /// Waits until [`Informer::is_synced`], or until the kind is found to be dormant: then there is
    /// nothing to wait for.
    pub async fn synced_or_dormant(&self) {
        let is_known = |progress: &Progress| progress.dormant || progress.has_list(self.since);
        self.cache.shared.progress.wait_for(is_known).await;
    }

    /// Waits as [`Informer::synced_or_dormant`], or until the server has refused to list for want of
    /// a right.
    pub async fn synced_or_denied(&self) {
        let is_settled = |progress: &Progress| {
            progress.dormant || progress.has_list(self.since) || self.denied().is_some()
        };
        self.cache.shared.progress.wait_for(is_settled).await;
    }

    /// Waits until the cache shows a write of ours to this key (rule:read-your-writes). Returns
    /// also when the server's history went back, since versions mean nothing then, and while the
    /// kind is dormant, since nothing would ever be heard of the write: it is void until a new
    /// list.
    ///
    /// A write that took an object out of the source's selection is known by its deletion; one of
    /// an object that was never in it only by the next bookmark, in about a minute: wait with a
    /// limit.
    pub async fn shows(&self, key: &str, write: &OwnWrite) {
        let progress = &self.cache.shared.progress;
        let history = progress.now().history;
        let is_shown = |progress: &Progress| {
            progress.history != history || self.has_shown(progress, key, write)
        };
        progress.wait_for(is_shown).await;
    }

    /// Whether [`Informer::shows`] would return at once.
    pub fn has_now(&self, key: &str, write: &OwnWrite) -> bool {
        self.has_shown(&self.cache.shared.progress.now(), key, write)
    }

    fn has_shown(&self, progress: &Progress, key: &str, write: &OwnWrite) -> bool {
        let cached = self.get(key);
        let cached = cached.as_ref().map(|object| (object.uid(), object.resource_version()));
        progress.dormant || write.is_shown(cached, progress.version)
    }

    /// The kind is not served, or not for us: there is nothing to do until it is.
    pub fn is_dormant(&self) -> bool {
        self.cache.shared.progress.now().dormant
    }

    /// The object that cannot be read and that a strict collection waits for, with the cause.
    pub fn blocked(&self) -> Option<String> {
        self.cache.shared.blocked()
    }

    /// The message of the server when it last refused to list or watch because of a missing right: it
    /// names the user, the verb and the resource. `None` again once something worked.
    pub fn denied(&self) -> Option<String> {
        self.cache.shared.denied()
    }

    /// Time since the server last said anything that was believed: an event, a bookmark (about
    /// one a minute), or a list. Before the first of them, the age of the informer.
    pub fn silent_for(&self) -> Duration {
        self.cache.shared.silent_for()
    }

    /// Whether the server may have another history than the store shows: the connection was lost,
    /// and what has been heard since does not tell (rule:history-that-goes-back). A controller
    /// that gives out what others must not get sends nothing meanwhile.
    pub fn is_doubted(&self) -> bool {
        self.cache.shared.is_doubted()
    }

    /// How far the cache has got.
    pub fn position(&self) -> Position {
        Position::of(&self.cache.shared.progress.now())
    }

    /// Waits until the cache has got as far as that version, or its history is another one than that of
    /// `from`; how far it has got then.
    pub async fn reaches(&self, version: u64, from: Position) -> Position {
        let is_there =
            |progress: &Progress| progress.version >= version || progress.history != from.history;
        Position::of(&self.cache.shared.progress.wait_for(is_there).await)
    }

    /// Has the server tell how far the watch has got until it is as far as that version: a quiet watch
    /// says so once a minute. Zero ends this.
    pub fn seek(&self, version: u64) {
        self.cache.shared.seek(version);
    }

    /// The version of all kinds that the server has now, by a consistent read; `None` if it cannot be
    /// read.
    pub async fn newest_version(&self) -> Option<u64> {
        let shared = &self.cache.shared;
        let accept = self.cache.accept(shared.format);
        let collection = Collection::new(&shared.source, &self.resource()?, accept);
        history::newest_version(shared, collection).await.ok()
    }

    /// Lists again when the position is broken, for as long as this is awaited; not within five minutes of the
    /// last list, because a proxy that cuts idle connections must not cause a list each time.
    pub async fn keep_unbroken(&self) -> Infallible {
        let progress = &self.cache.shared.progress;
        loop {
            let is_broken = |it: &Progress| it.listed.is_some() && !it.is_unbroken();
            let Progress { broken, listed, .. } = progress.wait_for(is_broken).await;
            let due = listed.map_or_else(Instant::now, |listed| listed + LISTS_APART);
            let has_changed = |it: &Progress| it.is_unbroken() || it.listed != listed;
            if timeout_at(due, progress.wait_for(has_changed)).await.is_err() {
                self.cache.shared.demand_list(broken.unwrap_or_else(Instant::now));
                progress.wait_for(has_changed).await;
            }
        }
    }

    /// The kind, as in labels of metrics.
    pub fn name(&self) -> &str {
        &self.cache.shared.resource
    }

    /// Where the API server keeps the kind; `None` as long as it has not been found.
    pub fn resource(&self) -> Option<Resource> {
        self.cache.shared.served()
    }

    /// The task of this informer has panicked: ends the session of every user.
    pub fn panicked(&self, cause: &str) {
        self.cache.store.panicked(cause);
    }
}

/// How far a cache has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The cache shows each change of its objects up to this version.
    pub version: u64,
    /// Versions compare within one history of the server.
    pub history: u64,
    /// Since the last list, which was consistent, each watch was opened at the first try, and no
    /// connection was lost in silence: no other server with another history can have come between.
    pub is_unbroken: bool,
}

impl Position {
    fn of(progress: &Progress) -> Self {
        let Progress { version, history, .. } = *progress;
        Self { version, history, is_unbroken: progress.is_unbroken() }
    }
}

/// Keeps a handler subscribed, and its informer running. A delivery that is under way on another
/// thread may still end after the drop.
#[must_use = "dropped, the handler gets no more changes"]
pub struct Subscription<T: Cached> {
    cache: Arc<Cache<T>>,
    membership: Membership,
    _keep: Option<Arc<dyn Send + Sync>>,
}

impl<T: Cached> Subscription<T> {
    pub(crate) fn new(
        cache: Arc<Cache<T>>,
        membership: Membership,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        Self { cache, membership, _keep: keep }
    }
}

impl<T: Cached> Drop for Subscription<T> {
    fn drop(&mut self) {
        self.membership.leave();
        self.cache.store.sweep();
    }
}

#[cfg(test)]
mod tests;
