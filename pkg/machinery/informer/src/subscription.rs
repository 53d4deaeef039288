//! [`Subscription`]: a handler's place among the subscribers; dropped, the handler is no longer
//! told.

use std::sync::Arc;

use model::Cached;

use crate::shared::Shared;
use crate::subscribers::Membership;

/// Keeps a handler subscribed, and its informer running. A delivery that is under way on another
/// thread may still end after the drop.
#[must_use = "dropped, the handler is no longer told of changes"]
pub struct Subscription<T: Cached> {
    shared: Arc<Shared<T>>,
    membership: Membership,
    _keep: Option<Arc<dyn Send + Sync>>,
}

impl<T: Cached> Subscription<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        membership: Membership,
        keep: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        Self { shared, membership, _keep: keep }
    }
}

impl<T: Cached> Drop for Subscription<T> {
    fn drop(&mut self) {
        self.membership.leave();
        self.shared.store.sweep();
    }
}
