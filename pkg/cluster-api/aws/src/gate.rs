//! [`WriteGate`]: the last thing that a write passes on its way out (`rule:the-fence-is-asked-last`). It
//! stands between the SDK and its connections, behind credentials, signing and every wait.
//! `requests.rs` makes one for each request. [`Simulated`]: AWS in a simulation, behind the same gate.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_network::{Action, Answer, FoundZone, Query, Reply};
use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorFuture, SharedHttpClient,
};
use aws_smithy_runtime_api::client::result::ConnectorError;
use futures::future::BoxFuture;
use resilience::{Fence, Fenced};
use tokio::time::Instant;

use crate::call::AwsError;
use crate::connections::interposed;

/// The answer of a simulated AWS, when it comes.
pub type Simulating<'a, T> = BoxFuture<'a, Result<T, AwsError>>;

/// AWS in a simulation. Each method is one request, which may be sent again as a real one is.
pub trait Simulated: Send + Sync {
    /// The account of the credentials.
    fn caller(&self) -> Simulating<'_, String>;

    /// The zones of the region.
    fn zones(&self) -> Simulating<'_, Vec<FoundZone>>;

    /// Answers a query of the cluster with this tag.
    fn read<'a>(&'a self, cluster_tag: &'a str, query: &'a Query) -> Simulating<'a, Reply>;

    /// Carries out a write that this fence has let pass.
    fn write<'a>(&'a self, fence: &'a Fence, action: &'a Action) -> Simulating<'a, Answer>;
}

thread_local! {
    static SIMULATED: RefCell<Option<Arc<dyn Simulated>>> = const { RefCell::new(None) };
}

/// From now on the calls of this thread lead to `cloud`, without credentials and connections, except those of the scan
/// for leaks and of roles. Sweeps of clusters at rest and rounds for NAT gateways are left out: each cluster reads for
/// itself.
pub fn simulate(cloud: Option<Arc<dyn Simulated>>) {
    SIMULATED.set(cloud);
}

/// AWS in the simulation of this thread.
pub(crate) fn simulated() -> Option<Arc<dyn Simulated>> {
    SIMULATED.with_borrow(Clone::clone)
}

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

    /// Lets a request to a simulated AWS pass.
    pub(crate) fn pass_simulated(&self) -> Result<(), AwsError> {
        self.pass().map_err(|held| AwsError::NotSent { reason: held.to_string() })
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
