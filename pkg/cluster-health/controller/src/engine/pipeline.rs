//! [`Pipeline`]: from the object of a cluster to its [`Target`], the same for all flavours.
//!
//! | part | the flavour says | the pipeline does |
//! |---|---|---|
//! | Watch | [`ObjectModel::supervision`], [`ObjectModel::is_work`] | subscription, first list, ownership, deletion |
//! | Resolve | [`Resolve::resolve`]: object and credential become a [`Resolved`] | tells the engine, holds back, retries |
//! | Judge | [`ObjectModel::policy`], [`ObjectModel::seed`] | builds the [`Target`]; the engine decides |
//! | Status | [`ObjectModel::shown`], [`Flavour::fingerprint`], [`Flavour::write`] | compares with the status that the object shows |

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use health::{Code, Policy, Published};
use informer::{Delta, Informer, Subscription};
use jiff::Timestamp;
use objects::{Object, Schema};
use workqueue::{Next, Reconcile, Retry};

use super::flavour::ClusterProber;
use super::flavour::SchemaIsOurs;
use super::flavour::{Cluster, Flavour};
use super::flavour::{EndsTold, Target};
use super::registry::{Look, Registry};

/// Until a cluster is looked at again whose last write has not ended.
const LATER: Duration = Duration::from_millis(100);

/// The objects of a flavour: what it says of one without I/O.
pub(crate) trait ObjectModel: Flavour {
    /// The kind of its objects.
    type Schema: Schema<Status: PartialEq>;

    /// Whether the cluster is probed.
    fn supervision(&self, _object: &Object<Self::Schema>) -> Supervision {
        Supervision::Probed
    }

    /// Whether a change of the object may change its [`Target`].
    fn is_work(&self, _old: &Object<Self::Schema>, _new: &Object<Self::Schema>) -> bool {
        true
    }

    /// The policy of the cluster.
    fn policy(&self, object: &Object<Self::Schema>) -> Policy;

    /// What its status says: a new owner of the cluster goes on from there
    /// (`rule:a-restart-changes-nothing`).
    fn seed(&self, object: &Object<Self::Schema>, now: Timestamp) -> Seed;

    /// The fingerprint of what its status shows; `None` when it does not show all that is
    /// published.
    fn shown(&self, object: &Object<Self::Schema>) -> Option<u64>;
}

/// Reads the credential of a cluster and makes its client.
pub(crate) trait Resolve: Send + Sync + 'static {
    /// The flavour whose clusters it resolves.
    type Model: ObjectModel;

    /// Resolves the cluster. Of a cluster that is not probed nothing is read.
    ///
    /// # Errors
    /// The engine knows the cluster and keeps the client in use. The key is tried again.
    fn resolve(
        &self,
        cluster: &Cluster,
        object: &Arc<Object<SchemaOf<Self>>>,
        supervision: Supervision,
    ) -> impl Future<Output = Result<Resolved, Retry>> + Send;
}

/// The kind of the objects that a resolver reads.
pub(crate) type SchemaOf<R> = <<R as Resolve>::Model as ObjectModel>::Schema;

/// Whether a cluster is probed (`rule:only-live-clusters`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supervision {
    /// The cluster is probed, and its health is published.
    Probed,
    /// The cluster is not probed, and its status says that it is locked.
    Locked,
    /// The cluster is not probed, and nothing is written: another actor sets it up, deletes it or has put it
    /// aside.
    LeftAlone,
}

/// What the status of a cluster says before this process has probed it.
pub(crate) struct Seed {
    pub(crate) published: Option<Published>,
    pub(crate) ends_told: EndsTold,
}

/// How a cluster is reached.
pub(crate) struct Resolved {
    /// As in [`Target::addresses`].
    pub(crate) addresses: Vec<Box<str>>,
    /// As in [`Target::inputs`].
    pub(crate) inputs: u64,
    /// As in [`Target::prober`].
    pub(crate) prober: Box<dyn FnOnce() -> Arc<dyn ClusterProber> + Send>,
    /// Set for a new cluster that is not told to the engine yet.
    pub(crate) held_back: Option<HeldBack>,
    /// The cluster was held back before: it is probed at once and not in its turn of the first
    /// list (`rule:changed-inputs-are-probed-within-a-second`).
    pub(crate) was_held_back: bool,
    /// An error that no event announces the end of, as a missing right: the key is tried again.
    pub(crate) retry: Option<Retry>,
}

/// Why a new cluster is not told to the engine yet.
pub(crate) struct HeldBack {
    pub(crate) code: Code,
    /// No secret.
    pub(crate) why: String,
    /// How long it may be held back from now on.
    pub(crate) left: Duration,
}

/// The clusters of one flavour, from the cache of their objects to the engine.
pub(crate) struct Pipeline<R: Resolve> {
    pub(crate) flavour: Arc<R::Model>,
    pub(crate) resolver: R,
    pub(crate) registry: Registry,
    pub(crate) objects: Informer<Object<SchemaOf<R>>>,
    /// UIDs of the live clusters in the first list.
    first: OnceLock<HashSet<Arc<str>>>,
}

/// The cached objects of a flavour, and whether their schema is ours; set when a run begins.
pub(crate) struct Objects<S: Schema>(OnceLock<(Informer<Object<S>>, SchemaIsOurs)>);

impl<S: Schema> Default for Objects<S> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<S: Schema> Objects<S> {
    /// Reads objects from this cache. Each run creates its flavours, so it is set once.
    pub(crate) fn set(&self, cache: &Informer<Object<S>>, schema_is_ours: SchemaIsOurs) {
        self.0.get_or_init(|| (cache.clone(), schema_is_ours));
    }

    /// The object of this cluster; `None` when it is gone or another object has its name.
    pub(crate) fn get(&self, cluster: &Cluster) -> Option<Arc<Object<S>>> {
        let object = self.0.get()?.0.get(&cluster.key)?;
        (object.metadata.uid == cluster.uid).then_some(object)
    }

    /// Whether the schema of the kind is ours at this moment.
    pub(crate) fn schema_is_ours(&self) -> bool {
        self.0.get().is_some_and(|(_, schema_is_ours)| schema_is_ours())
    }
}

/// UID and key of an object.
pub(crate) fn identity<S: Schema>(object: &Object<S>) -> Cluster {
    let (uid, key) = (Arc::clone(&object.metadata.uid), Arc::clone(&object.metadata.key));
    Cluster { uid, key }
}

/// Subscribes to the objects of a flavour. Deletions and foreign statuses are passed on at once
/// (`rule:nothing-outlives-its-object`, `rule:foreign-status-is-written-over`), everything else by
/// `add` through the queue.
pub(crate) fn subscribe<M: ObjectModel>(
    objects: &Informer<Object<M::Schema>>,
    registry: &Registry,
    flavour: &Arc<M>,
    add: impl Fn(&Arc<str>) + Send + Sync + 'static,
) -> Subscription<Object<M::Schema>> {
    let (registry, flavour) = (registry.clone(), Arc::clone(flavour));
    objects.subscribe(move |delta| match delta {
        Delta::Added(object) => add(&object.metadata.key),
        Delta::Updated { old, new } => {
            // Our own writes come back too, and are what was written last.
            if old.status != new.status {
                registry.shows(&identity(new), flavour.shown(new));
            }
            if flavour.is_work(old, new) {
                add(&new.metadata.key);
            }
        }
        Delta::Deleted(object) => registry.remove(&identity(object)),
        Delta::ListStarts | Delta::ListEnds => {}
    })
}

/// Tells the engine of the cluster with this key.
impl<R: Resolve> Reconcile for Pipeline<R> {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        match self.registry.look(&self.objects, key).await? {
            Look::At(object) => self.tell(&object, self.together(&object)).await,
            Look::Later => Ok(Next::After(LATER)),
            // The engine and the flavour know already.
            Look::Gone | Look::Elsewhere => Ok(Next::Done),
        }
    }
}

impl<R: Resolve> Pipeline<R> {
    pub(crate) fn new(
        flavour: Arc<R::Model>,
        resolver: R,
        registry: Registry,
        objects: Informer<Object<SchemaOf<R>>>,
    ) -> Self {
        Self { flavour, resolver, registry, objects, first: OnceLock::new() }
    }

    /// Tells the engine of a cluster that came with so many others.
    pub(crate) async fn tell(
        &self,
        object: &Arc<Object<SchemaOf<R>>>,
        together: usize,
    ) -> Result<Next, Retry> {
        let cluster = identity(object);
        let supervision = self.flavour.supervision(object);
        if supervision == Supervision::LeftAlone {
            self.registry.remove(&cluster);
            return Ok(Next::Done);
        }
        let resolved = self.resolver.resolve(&cluster, object, supervision).await;
        let next = resolved.and_then(|resolved| {
            let paused = supervision == Supervision::Locked;
            self.take_in(object, &cluster, resolved, paused, together)
        });
        // A deletion that was told while the credential was read came before its arrival
        // (`rule:nothing-outlives-its-object`).
        let is_there = |object: Arc<Object<SchemaOf<R>>>| object.metadata.uid == cluster.uid;
        if !self.objects.get(&cluster.key).is_some_and(is_there) {
            self.registry.remove(&cluster);
        }
        next
    }

    fn take_in(
        &self,
        object: &Object<SchemaOf<R>>,
        cluster: &Cluster,
        resolved: Resolved,
        paused: bool,
        together: usize,
    ) -> Result<Next, Retry> {
        let Resolved { addresses, inputs, prober, held_back, was_held_back, retry } = resolved;
        if let Some(HeldBack { code, why, left }) = held_back {
            self.registry.hold_back(cluster, code, &why);
            return retry.map_or(Ok(Next::After(left)), Err);
        }
        let Seed { published, ends_told } = self.flavour.seed(object, Timestamp::now());
        self.registry.upsert(Target {
            cluster: cluster.clone(),
            addresses,
            inputs,
            prober,
            policy: self.flavour.policy(object),
            paused,
            published,
            written: self.flavour.shown(object),
            ends_told,
            together: if was_held_back { 0 } else { together },
        });
        retry.map_or(Ok(Next::Done), Err)
    }

    /// How many clusters came with this one in the first list; 0 for one that was created, or
    /// became live, later.
    pub(crate) fn together(&self, object: &Object<SchemaOf<R>>) -> usize {
        let first = self.first.get_or_init(|| {
            self.objects.frozen(|all| {
                let live = |it: &&Arc<Object<SchemaOf<R>>>| {
                    self.flavour.supervision(it) != Supervision::LeftAlone
                };
                all.values().filter(live).map(|it| Arc::clone(&it.metadata.uid)).collect()
            })
        });
        if first.contains(&object.metadata.uid) { first.len() } else { 0 }
    }
}
