//! [`ReplicaLeases`]: a Lease for each of several replicas that work side by side.
//!
//! Called by a controller that shares its work with the other replicas; what they tell each other
//! by their leases, and what a lease entitles to, is its affair. Here is how they are written and
//! read (`rule:each-replica-writes-its-own-lease`). Every call is bounded, and repeats nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::record::LeaseRecord;
use crate::store::{KubeLease, LeaseStore as _, StoreError, classify};

/// Which replicas belong together, and what their leases look like.
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
    /// Whose it is; empty when it was released.
    pub identity: String,
    /// Another number after each renewal.
    pub renewal: u64,
    /// What it says to the others.
    pub says: String,
    lease: Lease,
}

impl ReplicaLeases {
    /// Those that the replica `identity` sees; its own is called `name`. `client` is for nothing
    /// else and has no fence, since renewing is what opens that.
    pub fn new(client: kube::Client, group: ReplicaGroup, identity: String, name: String) -> Self {
        let api: Api<Lease> = Api::namespaced(client, &group.namespace);
        let own = KubeLease::of(api.clone(), &name);
        Self { group, identity, name, api, own, written: Mutex::default() }
    }

    /// All of them, by a consistent read; released ones too.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn list(&self) -> Result<Vec<ReplicaLease>, StoreError> {
        let (label, group) = self.group.label;
        let params = ListParams::default().labels(&format!("{label}={group}"));
        let listed = self.bounded(async { self.api.list(&params).await.map_err(classify) }).await?;
        Ok(listed.items.into_iter().map(|lease| self.read(lease)).collect())
    }

    /// Renews our lease, or makes it, one call at a time, with this word to the others. A write
    /// whose outcome is unknown is not carried out after the next one that succeeds.
    ///
    /// # Errors
    /// It may have been written nevertheless, unless it is a conflict.
    pub async fn renew(&self, says: &str) -> Result<(), StoreError> {
        let current = self.current().await?;
        let previous = current.as_ref().map(LeaseRecord::of);
        let seconds = i32::try_from(self.group.term.as_secs()).unwrap_or(i32::MAX);
        let now = Timestamp::now();
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

    /// Gives our lease back with a last word to the others: for a replica that has ended its work.
    /// They may begin at once, and delete it when all of them have seen it
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
        let record = LeaseRecord::of(&lease).release(Timestamp::now());
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
