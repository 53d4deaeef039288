//! [`Source`]: the half of a flavour that follows its objects.

use std::sync::Arc;

use futures::future::BoxFuture;
use manager::{Context, Failure};

use super::flavour::Flavour;
use super::registry::Registry;

/// A flavour with the objects that it follows.
pub trait Source: Flavour {
    /// Follows the objects, and tells `registry` of them and of the moment at which they are all
    /// known ([`Registry::filled`]), until `context.stop` is cancelled. While the kind is not
    /// served, or not for us, its informer is dormant and there is nothing to do.
    ///
    /// # Errors
    /// Something that only a fresh start of the controller can mend.
    fn watch(
        self: Arc<Self>,
        context: Context,
        registry: Registry,
    ) -> BoxFuture<'static, Result<(), Failure>>;
}
