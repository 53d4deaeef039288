//! The three calls on one Lease, and their implementation on the API server.
//!
//! Used by [`crate::elector`] and [`crate::replica_leases`]; tests drive the elector through a
//! store of their own. GET, POST and PUT only, for the leader's Lease (rule:lease-verbs).

use std::future::Future;

use client::{Clients, ConfigError, Profile};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use transport::ErrorChain;

/// Why a call on the Lease failed. Every failure leads to another try; of a conflict alone it is
/// certain that nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The Lease changed since it was read, or was created by someone else.
    #[error("the lease was changed by someone else")]
    Conflict,
    /// No answer in time; a write may have happened.
    #[error("the API server gave no answer in time")]
    Timeout,
    /// There is no such Lease; nothing was written.
    #[error("{0}")]
    Missing(String),
    /// There is no right to it; nothing was read or written.
    #[error("{0}")]
    Denied(String),
    /// Refused by the server, or failed on the way; a write may have happened.
    #[error("{0}")]
    Failed(String),
    /// There is no Lease, and nobody could say whether a leader believes in one.
    #[error("cannot find out whether the cluster had a leader before: {0}")]
    Predecessor(String),
}

/// Where the Lease lives. A dropped call leaves open whether its write happens.
pub(crate) trait LeaseStore: Send + Sync + 'static {
    /// Reads the Lease; `None` when it does not exist.
    fn get(&self) -> impl Future<Output = Result<Option<Lease>, StoreError>> + Send;
    /// Creates the Lease; a conflict when it exists.
    fn create(&self, lease: Lease) -> impl Future<Output = Result<Lease, StoreError>> + Send;
    /// Replaces the Lease if it still has the resourceVersion of the given one.
    fn replace(&self, lease: Lease) -> impl Future<Output = Result<Lease, StoreError>> + Send;
}

/// The Lease on the API server, over a connection nobody else uses and which ends with every
/// call that fails or is dropped.
pub(crate) struct KubeLease {
    api: Api<Lease>,
    name: String,
}

impl KubeLease {
    /// Must be called inside the runtime that will make the calls: the client starts a task there.
    pub(crate) fn new(clients: &Clients, namespace: &str, name: &str) -> Result<Self, ConfigError> {
        // No throttle, no retry, nothing shared (rule:lease-never-behind-work); no fence, since
        // renewing is what opens it.
        let client =
            clients.build(Profile { own_connection: true, ..Profile::root("leader-election") })?;
        Ok(Self::of(Api::namespaced(client, namespace), name))
    }

    /// The Lease of this name, through a client that is for nothing else.
    pub(crate) fn of(api: Api<Lease>, name: &str) -> Self {
        Self { api, name: name.to_owned() }
    }
}

impl LeaseStore for KubeLease {
    async fn get(&self) -> Result<Option<Lease>, StoreError> {
        self.api.get_opt(&self.name).await.map_err(classify)
    }

    async fn create(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.api.create(&PostParams::default(), &lease).await.map_err(classify)
    }

    async fn replace(&self, lease: Lease) -> Result<Lease, StoreError> {
        self.api.replace(&self.name, &PostParams::default(), &lease).await.map_err(classify)
    }
}

/// 409 answers both a stale PUT and a POST of what exists; either way nothing was written.
pub(crate) fn classify(error: kube::Error) -> StoreError {
    match error {
        kube::Error::Api(status) if status.code == 409 => StoreError::Conflict,
        kube::Error::Api(status) if status.code == 404 => StoreError::Missing(status.to_string()),
        kube::Error::Api(status) if status.code == 403 => StoreError::Denied(status.to_string()),
        kube::Error::Api(status) => StoreError::Failed(status.to_string()),
        other => StoreError::Failed(ErrorChain(&other).to_string()),
    }
}
