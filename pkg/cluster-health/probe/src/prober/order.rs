//! [`Order`]: one probe to make.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::client::Client;

/// One probe to make.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Wall time for everything.
    pub budget: Duration,
    /// Whether a healthy answer is followed by an authenticated read.
    pub authenticated_read: bool,
    /// When the next probe is expected: a connection that will be too old by then is closed.
    pub next_in: Duration,
    /// The client of the newest inputs, asked when the server says that the credential is no good.
    pub newest: &'a (dyn Fn() -> Option<Arc<Client>> + Send + Sync),
    /// Reads the credential anew when it is refused and `newest` has no other one; `None` where it
    /// cannot be read. Half of the time that is left is for it.
    pub reread: Option<&'a dyn Reread>,
}

/// Reads a credential that was refused from its source.
pub trait Reread: Send + Sync {
    /// A client of what the source has now; `None` when it cannot be read or has not changed.
    fn reread(&self) -> BoxFuture<'_, Option<Arc<Client>>>;
}
