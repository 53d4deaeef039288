//! [`Subscription`]: a handler's place among the subscribers; dropped, the handler is no longer
//! told.

use std::sync::Arc;

use kube_api::Cached;

use crate::cache::Cache;
use crate::subscribers::Membership;

/// Keeps a handler subscribed, and its informer running. A delivery that is under way on another
/// thread may still end after the drop.
#[must_use = "dropped, the handler is no longer told of changes"]
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
