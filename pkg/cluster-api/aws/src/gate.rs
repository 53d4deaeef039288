//! [`WriteGate`]: the last thing that a write passes on its way out (`rule:the-fence-is-asked-last`). It
//! stands between the SDK and its connections, behind credentials, signing and every wait.
//! `requests.rs` makes one for each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorFuture, SharedHttpClient,
};
use aws_smithy_runtime_api::client::result::ConnectorError;
use resilience::{Fence, Fenced};
use tokio::time::Instant;

use crate::connections::interposed;

/// Why a write was held back.
#[derive(Debug, thiserror::Error)]
enum Held {
    #[error(transparent)]
    Fenced(Fenced),
    #[error("cannot send the write: its plan has expired; it is planned again")]
    TooLate,
}

/// Lets one request of a write pass, or not. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct WriteGate {
    fence: Fence,
    leaves_by: Instant,
    passed: Arc<AtomicBool>,
}

impl WriteGate {
    /// A gate that closes with the fence, and for good at `leaves_by`.
    pub(crate) fn new(fence: &Fence, leaves_by: Instant) -> Self {
        Self { fence: fence.clone(), leaves_by, passed: Arc::default() }
    }

    /// Whether anything has left.
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.load(Ordering::Acquire)
    }

    /// Puts the gate before a client, whose connections stay the same.
    pub(crate) fn before(&self, client: SharedHttpClient) -> SharedHttpClient {
        let gate = self.clone();
        interposed(client, move |request, connector| match gate.pass() {
            Ok(()) => connector.call(request),
            Err(held) => HttpConnectorFuture::ready(Err(ConnectorError::other(held.into(), None))),
        })
    }

    fn pass(&self) -> Result<(), Held> {
        if Instant::now() > self.leaves_by {
            return Err(Held::TooLate);
        }
        self.fence.check().map_err(Held::Fenced)?;
        self.passed.store(true, Ordering::Release);
        Ok(())
    }
}
