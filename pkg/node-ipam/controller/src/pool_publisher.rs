//! [`PoolPublisher`]: writes the record of the pools (`pool_record`) while this process leads.
//!
//! A change is written at once, but no more often than every five seconds. Every 30 seconds the record is
//! read, and written again where it differs: somebody deleted or edited it, or the use of a pool changed
//! by less than one percent. A record that is right is not written again: its `leader` is the holder of
//! the Lease exactly while it is up to date, and each write would wake all watches of ConfigMaps.

use std::sync::Arc;
use std::time::Duration;

use informer::MANAGED_BY;
use manager::Failure;
use objects::{Draft, Error, Merge, ObjectClient, Outcome, Part, Why};
use parking_lot::Mutex;
use resilience::wall_now;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::PRODUCT;
use crate::allocator::Allocator;
use crate::pool_record::{
    ConfigMap, ConfigMapBody, POOL_RECORD, RecordedPool, data, is_news, is_ours, is_same,
};

/// How often the pools are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The shortest time between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// How often the record is compared with what the API server has.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// The pause after a refusal that only an operator can end.
const AGAIN_AFTER_REFUSAL: Duration = Duration::from_secs(300);

/// Why the record was not written.
#[derive(Debug, thiserror::Error)]
enum Unwritten {
    /// The ConfigMap of this name is not ours.
    #[error(
        "the ConfigMap exists and does not have the label {MANAGED_BY}={PRODUCT}; rename or delete it"
    )]
    NotOurs,
    /// A right is missing; or a quota, a webhook or the end of the namespace forbids it.
    #[error(
        "{0}; if the right is missing, apply config/rbac/node-ipam-records.yaml, after you \
         have set the subject and the namespace of the Lease in it"
    )]
    Forbidden(Error),
    /// The server refuses it again until something changes, as for an immutable ConfigMap or a
    /// credential that is not valid.
    #[error(transparent)]
    Refused(Error),
    /// A later attempt may succeed.
    #[error(transparent)]
    NotNow(Error),
}

impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        match &error.why {
            _ if error.is_forbidden() => Self::Forbidden(error),
            // An outage of a read is refused as well, with 5xx.
            Why::Refused { status, .. } if status.is_client_error() => Self::Refused(error),
            Why::Decode(_) | Why::Unreadable(_) => Self::Refused(error),
            _ => Self::NotNow(error),
        }
    }
}

/// Writes the record.
pub(crate) struct PoolPublisher {
    client: ObjectClient<ConfigMap>,
    /// Namespace and name of the ConfigMap.
    key: String,
    /// Identity of this process.
    leader: Arc<str>,
}

/// What was compared with the API server last.
#[derive(Default)]
struct Progress {
    /// The pools that the record has; `None` until it was written.
    recorded: Option<Vec<RecordedPool>>,
    /// No earlier than then it is written, and then it is compared.
    next: Option<(Instant, Instant)>,
    /// Whether the operator was warned.
    warned: bool,
}

impl PoolPublisher {
    /// Writes the record into this namespace.
    pub(crate) fn new(client: ObjectClient<ConfigMap>, namespace: &str, leader: Arc<str>) -> Self {
        Self { client, key: format!("{namespace}/{POOL_RECORD}"), leader }
    }

    /// Publishes the pools until the stop. Without the right, or over a ConfigMap of another program, it
    /// warns once and tries again every five minutes.
    pub(crate) async fn publish(
        &self,
        allocator: &Mutex<Allocator>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let mut progress = Progress::default();
        while stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
            let Some(pools) = due(allocator, &progress, Instant::now()) else { continue };
            let began = Instant::now();
            let written = self.write(&pools, stop).await;
            progress.take(written, pools, began, &self.key);
        }
        Ok(())
    }

    /// Makes the record say this. Sends nothing where it does, and one write at most: the stop ends a
    /// read, but a write that was begun is awaited, and a retry of it could exceed
    /// `--controller-shutdown-timeout` (`rule:no-release-with-open-writes`).
    async fn write(
        &self,
        pools: &[RecordedPool],
        stop: &CancellationToken,
    ) -> Result<(), Unwritten> {
        let data = data(&self.leader, wall_now(), pools);
        let read = stop.run_until_cancelled(self.client.read(&self.key)).await;
        let Some(read) = read else { return Ok(()) };
        let Some(there) = read? else {
            let mut draft = Draft::new(ConfigMapBody { data });
            draft.metadata.labels.insert(MANAGED_BY.to_owned(), PRODUCT.to_owned());
            self.client.create(&self.key, &draft).await?;
            return Ok(());
        };
        if !is_ours(&there.metadata.labels) {
            return Err(Unwritten::NotOurs);
        }
        if is_same(&there.body.data, &data) {
            return Ok(());
        }
        let removed = there.body.data.keys().filter(|key| !data.contains_key(*key));
        let removed = removed.map(|key| (key.clone(), Value::Null));
        let set = data.iter().map(|(key, text)| (key.clone(), Value::from(&**text)));
        let fields = json!({"data": set.chain(removed).collect::<Map<_, _>>()});
        let merge = Merge { fields, over: there.whole(), part: Part::Main };
        Ok(self.client.merge(&self.key, &merge).await?)
    }
}

/// The pools when they have to be written, or compared with the record. `None` also while the state at
/// the start is not known yet, and where there is nothing to publish.
fn due(
    allocator: &Mutex<Allocator>,
    progress: &Progress,
    now: Instant,
) -> Option<Vec<RecordedPool>> {
    let (may_write, compare) = progress.next.unwrap_or((now, now));
    if now < may_write {
        return None;
    }
    // Under the lock nothing is formatted: each Node that joins waits for it.
    let (pools, resting) = allocator.lock().pools_since_start()?;
    let pools: Vec<_> = pools.iter().map(|it| RecordedPool::new(it, &resting)).collect();
    let is_due = match &progress.recorded {
        None => !pools.is_empty(),
        Some(recorded) => now >= compare || is_news(recorded, &pools),
    };
    is_due.then_some(pools)
}

impl Progress {
    fn take(
        &mut self,
        written: Result<(), Unwritten>,
        pools: Vec<RecordedPool>,
        began: Instant,
        key: &str,
    ) {
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.warned) {
                    info!(configmap = key, "Writing the record of the pools again");
                }
                self.recorded = Some(pools);
                self.next = Some((began + WRITE_EVERY, began + COMPARE_EVERY));
            }
            Err(Unwritten::NotNow(error)) => {
                debug!(configmap = key, err = %error, "Cannot write the record of the pools; trying again");
                // An attempt of unknown outcome may have been the write of these five seconds.
                let pause = error.retry_after().unwrap_or_default().max(WRITE_EVERY);
                if error.outcome() == Outcome::Unknown {
                    self.recorded = None;
                }
                self.next = Some((began + pause, began + pause));
            }
            Err(unwritten) => {
                if !std::mem::replace(&mut self.warned, true) {
                    warn!(
                        "Cannot write ConfigMap {key}: {unwritten}; pod CIDRs are still assigned. \
                         Set --publish-pools=false if no record is wanted"
                    );
                }
                self.next = Some((began + AGAIN_AFTER_REFUSAL, began + AGAIN_AFTER_REFUSAL));
            }
        }
    }
}

#[cfg(test)]
mod tests;
