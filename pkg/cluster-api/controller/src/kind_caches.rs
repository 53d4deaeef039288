//! [`KindCaches`]: caches of kinds that are learnt at run time, one for each group and kind. Those
//! that an author of Clusters names are bounded (`rule:only-kinds-of-the-contract-are-cached`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use kube_api::{Kind, Metadata, Resource};
use manager::Context;
use objects::{Object, ObjectClient, Schema};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a reconciliation waits for the first list of a kind that it is the first to name.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// CRDs of kinds that keep a contract of Cluster API have a label that begins so.
const CONTRACT_LABEL: &str = "cluster.x-k8s.io/v";

/// All kinds so far; clones are the same.
pub(crate) struct KindCaches<S: Schema>(Arc<Inner<S>>);

struct Inner<S: Schema> {
    context: Context,
    /// `None` for all.
    namespace: Option<Arc<str>>,
    /// By group and kind.
    kinds: Mutex<BTreeMap<(String, String), Watched<S>>>,
    /// The CRDs of the server, since a Cluster named a kind first.
    crds: Mutex<Option<Informer<Metadata>>>,
    on_change: OnChange<S>,
}

/// Hears of every object that comes, changes or goes, with its group and kind. Must return at once.
type OnChange<S> = Box<dyn Fn(&str, &str, &Object<S>) + Send + Sync>;

struct Watched<S: Schema> {
    kind: KindCache<S>,
    asked: Instant,
    _subscription: Subscription<Object<S>>,
}

pub(crate) struct KindCache<S: Schema> {
    pub(crate) objects: Informer<Object<S>>,
    /// Writes objects of the kind; `None` while it is not served.
    pub(crate) client: Option<ObjectClient<S>>,
}

/// State of the cache of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Listed,
    NotServed,
    /// Nothing yet, for this reason.
    Nothing(String),
}

impl<S: Schema> KindCaches<S> {
    pub(crate) fn new(
        context: &Context,
        namespace: Option<&str>,
        on_change: impl Fn(&str, &str, &Object<S>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            context: context.clone(),
            namespace: namespace.map(Arc::from),
            kinds: Mutex::default(),
            crds: Mutex::default(),
            on_change: Box::new(on_change),
        }))
    }

    /// The objects of a kind, watched from the first call on.
    pub(crate) fn get(&self, group: &str, kind: &str) -> KindCache<S> {
        let mut kinds = self.0.kinds.lock();
        let known = kinds.entry((group.to_owned(), kind.to_owned()));
        let watched = known.or_insert_with(|| self.watch(group, kind));
        watched.asked = Instant::now();
        let kind_cache = &mut watched.kind;
        // The kind may come back in another version.
        let resource = kind_cache.objects.resource().filter(|it| it.namespaced);
        if kind_cache.client.as_ref().map(ObjectClient::resource) != resource.as_ref() {
            kind_cache.client = resource.map(|resource| self.0.context.objects(resource));
        }
        kind_cache.clone()
    }

    fn watch(&self, group: &str, kind: &str) -> Watched<S> {
        // Whose CRDs they are does not matter: they were named.
        let informers = self.0.context.informers.of_any_owner();
        let mut source = informers.source(Kind::named(group, kind));
        source.namespace.clone_from(&self.0.namespace);
        let cache = informers.get_from::<Object<S>>(source);
        let (inner, group, kind) = (Arc::downgrade(&self.0), group.to_owned(), kind.to_owned());
        let subscription = cache.subscribe(move |delta| {
            let Some(inner) = inner.upgrade() else { return };
            match delta {
                Delta::Added(object) | Delta::Deleted(object) => {
                    (inner.on_change)(&group, &kind, object);
                }
                Delta::Updated { old, new } => {
                    (inner.on_change)(&group, &kind, old);
                    (inner.on_change)(&group, &kind, new);
                }
                Delta::ListStarts | Delta::ListEnds => {}
            }
        });
        let kind = KindCache { objects: cache, client: None };
        Watched { kind, asked: Instant::now(), _subscription: subscription }
    }

    /// The objects of a kind that a Cluster names, and what writes them.
    ///
    /// # Errors
    /// It is not served, or does not keep a contract of Cluster API, or is not listed yet.
    pub(crate) async fn named(
        &self,
        group: &str,
        kind: &str,
    ) -> Result<(Informer<Object<S>>, ObjectClient<S>), Known> {
        self.keeps_contract(group, kind).await?;
        let (kind_cache, known) = self.known(group, kind).await;
        match (known, kind_cache.client) {
            (Known::Listed, Some(client)) => Ok((kind_cache.objects, client)),
            (Known::Listed, None) => Err(Known::Nothing("it is being listed".into())),
            (known, _) => Err(known),
        }
    }

    /// Drops the caches of kinds that were not asked for so long.
    pub(crate) fn drop_idle(&self, idle: Duration) {
        self.0.kinds.lock().retain(|_, watched| watched.asked.elapsed() < idle);
    }

    async fn keeps_contract(&self, group: &str, kind: &str) -> Result<(), Known> {
        let informers = self.0.context.informers.of_any_owner();
        let watch = || informers.get_from(informers.source(Kind::BuiltIn(Resource::CRDS)));
        let crds = self.0.crds.lock().get_or_insert_with(watch).clone();
        let listed = tokio::time::timeout(FIRST_LIST, crds.synced_or_dormant()).await;
        if listed.is_err() || !crds.is_synced() {
            let why = crds.denied().unwrap_or_else(|| "CRDs are being listed".into());
            return Err(Known::Nothing(why));
        }
        let Some(crd) = names_of_crd(group, kind).iter().find_map(|name| crds.get(name)) else {
            return Err(Known::NotServed);
        };
        if crd.labels.keys().any(|key| key.starts_with(CONTRACT_LABEL)) {
            return Ok(());
        }
        let why = format!("its CRD {} has no label {CONTRACT_LABEL}1beta1 or newer", crd.key);
        Err(Known::Nothing(why))
    }

    /// The objects of a kind, once it is known what there is of it.
    pub(crate) async fn known(&self, group: &str, kind: &str) -> (KindCache<S>, Known) {
        let kind_cache = self.get(group, kind);
        let filled = tokio::time::timeout(FIRST_LIST, kind_cache.objects.synced_or_dormant()).await;
        // Found meanwhile.
        let kind_cache = self.get(group, kind);
        let known = match filled {
            _ if kind_cache.objects.is_dormant() => Known::NotServed,
            Ok(()) if kind_cache.client.is_some() => Known::Listed,
            _ => Known::Nothing(
                kind_cache.objects.denied().unwrap_or_else(|| "it is being listed".into()),
            ),
        };
        (kind_cache, known)
    }
}

/// The names that the CRD of a kind may have: the contract calls for the plural of English.
fn names_of_crd(group: &str, kind: &str) -> Vec<String> {
    let word = kind.to_ascii_lowercase();
    let plurals = match word.strip_suffix('y') {
        Some(stem) => [format!("{stem}ies"), format!("{word}s")],
        None => [format!("{word}s"), format!("{word}es")],
    };
    plurals.into_iter().chain([word]).map(|plural| format!("{plural}.{group}")).collect()
}

impl<S: Schema> Clone for KindCaches<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Schema> Clone for KindCache<S> {
    fn clone(&self) -> Self {
        Self { objects: self.objects.clone(), client: self.client.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crd_is_looked_for_by_the_plurals_of_its_kind() {
        let names = |kind: &str| names_of_crd("g", kind);
        assert!(names("AWSCluster").contains(&"awsclusters.g".to_owned()));
        assert!(names("Proxy").contains(&"proxies.g".to_owned()));
        assert!(names("Mesh").contains(&"meshes.g".to_owned()));
        assert!(names("Chassis").contains(&"chassis.g".to_owned()));
    }
}
