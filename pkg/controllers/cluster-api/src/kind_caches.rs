//! [`KindCaches`]: caches of kinds that are learnt from the objects that name them, one for each
//! group and kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer::{Delta, Informer, Subscription};
use manager::Context;
use model::Kind;
use objects::{Object, ObjectClient, Schema};
use parking_lot::Mutex;

/// How long a pass waits for the first list of a kind that it is the first to name.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// All kinds so far; clones are the same.
pub(crate) struct KindCaches<S: Schema>(Arc<Inner<S>>);

struct Inner<S: Schema> {
    context: Context,
    /// `None` for all.
    namespace: Option<Arc<str>>,
    /// By group and kind.
    kinds: Mutex<BTreeMap<(String, String), Watched<S>>>,
    tell: Tell<S>,
}

/// Hears of every object that comes, changes or goes, with its group and kind. Must return at once.
type Tell<S> = Box<dyn Fn(&str, &str, &Object<S>) + Send + Sync>;

struct Watched<S: Schema> {
    kind: KindCache<S>,
    _told: Subscription<Object<S>>,
}

/// The objects of one kind.
pub(crate) struct KindCache<S: Schema> {
    /// What there is.
    pub(crate) objects: Informer<Object<S>>,
    /// What writes it; `None` while the kind is not served.
    pub(crate) client: Option<ObjectClient<S>>,
}

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Its objects.
    Listed,
    /// It is not served.
    NotServed,
    /// Nothing yet, for this reason.
    Nothing(String),
}

impl<S: Schema> KindCaches<S> {
    pub(crate) fn new(
        context: &Context,
        namespace: Option<&str>,
        tell: impl Fn(&str, &str, &Object<S>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            context: context.clone(),
            namespace: namespace.map(Arc::from),
            kinds: Mutex::default(),
            tell: Box::new(tell),
        }))
    }

    /// The objects of a kind, watched from the first call on.
    pub(crate) fn get(&self, group: &str, kind: &str) -> KindCache<S> {
        let mut kinds = self.0.kinds.lock();
        let known = kinds.entry((group.to_owned(), kind.to_owned()));
        let kind_cache = &mut known.or_insert_with(|| self.watch(group, kind)).kind;
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
        let told = cache.subscribe(move |delta| {
            let Some(inner) = inner.upgrade() else { return };
            match delta {
                Delta::Added(object) | Delta::Deleted(object) => {
                    (inner.tell)(&group, &kind, object);
                }
                Delta::Updated { old, new } => {
                    (inner.tell)(&group, &kind, old);
                    (inner.tell)(&group, &kind, new);
                }
                Delta::ListStarts | Delta::ListEnds => {}
            }
        });
        Watched { kind: KindCache { objects: cache, client: None }, _told: told }
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
