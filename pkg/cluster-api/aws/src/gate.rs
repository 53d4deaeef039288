//! [`Gate`]: the last thing that a write passes on its way out (`rule:the-fence-is-asked-last`). It
//! stands between the SDK and its connections, behind credentials, signing and every wait.
//! `attempts.rs` makes one for each attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use resilience::{Fence, Fenced};
use tokio::time::Instant;

/// Why a write was held back.
#[derive(Debug, thiserror::Error)]
enum Held {
    #[error(transparent)]
    Fenced(Fenced),
    #[error("cannot send the write: its plan has expired; it is planned again")]
    TooLate,
}

/// Lets one attempt of a write pass, or not. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    fence: Fence,
    leaves_by: Instant,
    passed: Arc<AtomicBool>,
}

impl Gate {
    /// A gate that closes with the fence, and for good at `leaves_by`.
    pub(crate) fn new(fence: &Fence, leaves_by: Instant) -> Self {
        Self { fence: fence.clone(), leaves_by, passed: Arc::default() }
    }

    /// Whether anything has left.
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.load(Ordering::Acquire)
    }

    /// Puts the gate before a client.
    pub(crate) fn before(&self, client: SharedHttpClient) -> GatedClient {
        GatedClient { gate: self.clone(), client }
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

/// A client behind a gate. The connections are those of the client.
#[derive(Debug)]
pub(crate) struct GatedClient {
    gate: Gate,
    client: SharedHttpClient,
}

impl HttpClient for GatedClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let connector = self.client.http_connector(settings, components);
        SharedHttpConnector::new(GatedConnector { gate: self.gate.clone(), connector })
    }
}

#[derive(Debug)]
struct GatedConnector {
    gate: Gate,
    connector: SharedHttpConnector,
}

impl HttpConnector for GatedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        match self.gate.pass() {
            Ok(()) => self.connector.call(request),
            Err(held) => HttpConnectorFuture::ready(Err(ConnectorError::other(held.into(), None))),
        }
    }
}
