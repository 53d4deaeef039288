//! The Leases on the API server: the one of leadership ([`KubeLease`]), and those of replicas that share
//! their work.

use std::future::Future;
use std::time::Duration;

use client::{Clients, ConfigError, Profile};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use parking_lot::Mutex;
use resilience::wall_now;
use tokio::time::timeout;
use transport::ErrorChain;

use crate::record::LeaseRecord;

/// Why a call on the Lease failed. Every failure leads to another try; of a conflict alone it is
/// certain that nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The Lease changed since it was read, or another process created it.
    #[error("another process changed the lease")]
    Conflict,
    /// The call was not answered in time; a write may have happened.
    #[error("the API server gave no answer in time")]
    Timeout,
    /// The Lease does not exist; nothing was written.
    #[error("{0}")]
    Missing(String),
    /// The right is missing; nothing was read or written.
    #[error("{0}")]
    Denied(String),
    /// Refused by the server, or failed on the way; a write may have happened.
    #[error("{0}")]
    Failed(String),
    /// The Lease does not exist, and it is unknown whether another instance still leads.
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

/// The Lease on the API server, over a connection of its own, which ends with every call that
/// fails or is dropped.
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

/// The replicas that belong together, and the form of their leases.
#[derive(Clone, Debug)]
pub struct ReplicaGroup {
    /// Namespace of the leases.
    pub namespace: String,
    /// Label of the leases of this group; its value is the group.
    pub label: (&'static str, &'static str),
    /// Annotation in which each replica says something to the others.
    pub annotation: &'static str,
    /// How long after a renewal a lease runs out.
    pub term: Duration,
    /// Limit of one request.
    pub request_timeout: Duration,
}

/// The leases of a group, as one of its replicas sees them.
pub struct ReplicaLeases {
    group: ReplicaGroup,
    identity: String,
    name: String,
    api: Api<Lease>,
    own: KubeLease,
    /// Our Lease after our last write, while its version is not in doubt.
    written: Mutex<Option<Lease>>,
}

/// The lease of one replica.
#[derive(Clone, Debug)]
pub struct ReplicaLease {
    /// Identity of the holder; empty after a release.
    pub identity: String,
    /// Resource version, which every renewal changes.
    pub renewal: u64,
    /// Data for the other replicas.
    pub says: String,
    lease: Lease,
}

impl ReplicaLeases {
    /// The leases that the replica `identity` sees; its own is called `name`. `client` is for nothing
    /// else and has no fence, since renewing is what opens that.
    pub fn new(client: kube::Client, group: ReplicaGroup, identity: String, name: String) -> Self {
        let api: Api<Lease> = Api::namespaced(client, &group.namespace);
        let own = KubeLease::of(api.clone(), &name);
        Self { group, identity, name, api, own, written: Mutex::default() }
    }

    /// All leases of the group, released ones included, by a consistent read.
    pub async fn list(&self) -> Result<Vec<ReplicaLease>, StoreError> {
        let (label, group) = self.group.label;
        let params = ListParams::default().labels(&format!("{label}={group}"));
        let listed = self.bounded(async { self.api.list(&params).await.map_err(classify) }).await?;
        Ok(listed.items.into_iter().map(|lease| self.read(lease)).collect())
    }

    /// Renews or creates the lease of this replica, one call at a time; `says` is the text for the other replicas. A
    /// write whose outcome is unknown is not carried out after the next one that succeeds.
    ///
    /// # Errors
    /// It may have been written nevertheless, unless it is a conflict.
    pub async fn renew(&self, says: &str) -> Result<(), StoreError> {
        let current = self.current().await?;
        let previous = current.as_ref().map(LeaseRecord::of);
        let seconds = i32::try_from(self.group.term.as_secs()).unwrap_or(i32::MAX);
        let now = wall_now();
        let record = LeaseRecord::claim(previous.as_ref(), &self.identity, seconds, now);
        let exists = current.is_some();
        let mut lease = record.into_lease(current.unwrap_or_else(|| self.new_lease()));
        // Without it the others do not find the lease, and neither do we.
        let (label, group) = self.group.label;
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(label.to_owned(), group.to_owned());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(self.group.annotation.to_owned(), says.to_owned());
        let write = async {
            if exists { self.own.replace(lease).await } else { self.own.create(lease).await }
        };
        let written = self.bounded(write).await?;
        *self.written.lock() = Some(written);
        Ok(())
    }

    /// Our lease as we wrote it last, or as it is read when that is in doubt.
    async fn current(&self) -> Result<Option<Lease>, StoreError> {
        let written = self.written.lock().take();
        match written {
            Some(written) => Ok(Some(written)),
            None => self.bounded(self.own.get()).await,
        }
    }

    /// Releases the lease of this replica, which has ended its work; `says` is its last text for the other replicas.
    /// They may begin at once, and delete the lease when all of them have seen it
    /// (`rule:each-replica-writes-its-own-lease`).
    ///
    /// # Errors
    /// It may have been released nevertheless, else it is left to run out.
    pub async fn release(&self, says: &str) -> Result<(), StoreError> {
        let Some(lease) = self.current().await? else { return Ok(()) };
        self.bounded(self.own.replace(self.released(lease, says))).await.map(drop)
    }

    /// Releases a lease that has run out, for its replica, if it is as it was read: others may have
    /// begun to look at it later, and need not wait it out.
    ///
    /// # Errors
    /// It may have been released nevertheless, unless it is a conflict.
    pub async fn release_for(&self, other: &ReplicaLease, says: &str) -> Result<(), StoreError> {
        let lease = self.released(other.lease.clone(), says);
        let name = lease.metadata.name.clone().unwrap_or_default();
        let params = PostParams::default();
        let put = async { self.api.replace(&name, &params, &lease).await.map_err(classify) };
        self.bounded(put).await.map(drop)
    }

    fn released(&self, lease: Lease, says: &str) -> Lease {
        let record = LeaseRecord::of(&lease).release(wall_now());
        let mut lease = record.into_lease(lease);
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(self.group.annotation.to_owned(), says.to_owned());
        lease
    }

    /// Deletes a lease that was released if it is as it was read. One that is gone
    /// is no failure.
    ///
    /// # Errors
    /// It may have been deleted nevertheless, unless it is a conflict.
    pub async fn remove(&self, lease: &ReplicaLease) -> Result<(), StoreError> {
        let ObjectMeta { name, resource_version, uid, .. } = lease.lease.metadata.clone();
        let preconditions = Some(Preconditions { resource_version, uid });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let name = name.unwrap_or_default();
        let delete = async { self.api.delete(&name, &params).await.map_err(classify) };
        match self.bounded(delete).await {
            Ok(_) | Err(StoreError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(&self, lease: Lease) -> ReplicaLease {
        let record = LeaseRecord::of(&lease);
        let says = lease.metadata.annotations.as_ref();
        let says = says.and_then(|all| all.get(self.group.annotation)).cloned();
        let renewed = record.renewed.map(Timestamp::as_microsecond).unwrap_or_default();
        ReplicaLease {
            identity: record.holder,
            renewal: renewed.unsigned_abs(),
            says: says.unwrap_or_default(),
            lease,
        }
    }

    fn new_lease(&self) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.group.namespace.clone()),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: None }
    }

    async fn bounded<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.group.request_timeout;
        timeout(limit, call).await.unwrap_or(Err(StoreError::Timeout))
    }
}

#[cfg(test)]
mod tests;
