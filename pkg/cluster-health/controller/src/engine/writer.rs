//! [`Writer`]: brings what is published to the API server, apart from all probing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use events::{EventType, Recorder};
use health::{Urgency, WriteQueue, WriteWindow, Written};
use kube_api::Resource;
use objects::{Apply, Dynamic, Error, Merge, ObjectClient, Part, Why};
use parking_lot::Mutex;
use resilience::panics::contain;
use resilience::{KeyedLogGate, TokenBucket, draw, task};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use super::field_owners::FieldOwners;
use super::flavour::{Flavour, MemberId, Pending, StatusWrite, now};
use super::metrics::Counters;
use super::ownership::Ownership;

/// Writes under way at once while the server refuses none, the only limit of ours by default: a server
/// that answers in 100 ms takes 640 in a second, and a change that comes now waits for one of them.
const AT_ONCE: u32 = 64;
/// The wait after a 429 that names none.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Applies in a row of one shared status: one that is refused, and one without what others own.
const SHARE_ATTEMPTS: u32 = 2;
/// Between lines about failed writes of one flavour.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// The clients of all kinds.
pub(crate) type Clients = HashMap<KindKey, ObjectClient<Dynamic>>;

/// Group, version and plural of a kind: `clusters` exist in several groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KindKey([&'static str; 3]);

impl From<&'static Resource> for KindKey {
    fn from(kind: &'static Resource) -> Self {
        Self([&kind.group, &kind.version, &kind.plural])
    }
}

type Entry = (Arc<str>, Arc<dyn Pending>);

/// Pending writes. What is written is the state at the time of writing, so an entry needs no
/// contents but the object.
pub(crate) struct Writer {
    queue: Mutex<WriteQueue<Arc<str>, Arc<dyn Pending>>>,
    /// `None` while the API server alone limits the writes.
    pace: Option<Mutex<TokenBucket>>,
    ownership: Ownership,
    /// Writes that wait for their answers.
    window: Mutex<WriteWindow>,
    /// Writes that are being sent, by the cluster that they belong to.
    under_way: Mutex<HashMap<Arc<str>, usize>>,
    /// Something was submitted, or has ended.
    changed: Notify,
    clients: Clients,
    owners: FieldOwners,
    recorder: Recorder,
    log: KeyedLogGate<&'static str>,
}

impl Writer {
    pub(crate) fn new(
        clients: Clients,
        pace: Option<TokenBucket>,
        ownership: Ownership,
        recorder: Recorder,
    ) -> Self {
        Self {
            queue: Mutex::default(),
            pace: pace.map(Mutex::new),
            ownership,
            window: Mutex::new(WriteWindow::new(AT_ONCE)),
            under_way: Mutex::default(),
            changed: Notify::new(),
            clients,
            owners: FieldOwners::default(),
            recorder,
            log: KeyedLogGate::new(LINE_EVERY),
        }
    }

    pub(crate) fn submit(&self, pending: Arc<dyn Pending>, urgency: Urgency, now: Instant) {
        let uid = Arc::clone(&pending.object().uid);
        self.queue.lock().submit(uid, pending, urgency, now);
        self.changed.notify_one();
    }

    pub(crate) fn forget(&self, uid: &Arc<str>) {
        self.queue.lock().forget(uid);
        self.owners.forget(uid);
    }

    /// Whether what its object says may change yet by a write of ours.
    pub(crate) fn is_writing(&self, uid: &Arc<str>) -> bool {
        self.queue.lock().is_writing(uid)
    }

    /// The clusters with a write under way.
    pub(crate) fn writing(&self) -> Vec<Arc<str>> {
        self.under_way.lock().keys().cloned().collect()
    }

    /// The version of a cluster's object by a read that shows all that was written before; `None`
    /// when it is gone.
    pub(crate) async fn version(
        &self,
        flavour: &dyn Flavour,
        cluster: &MemberId,
    ) -> Result<Option<u64>, Error> {
        let Some(client) = self.clients.get(&flavour.resource().into()) else { return Ok(None) };
        let object = client.read(&cluster.key).await?;
        let same = object.filter(|object| object.metadata.uid == cluster.uid);
        Ok(same.map(|object| object.metadata.resource_version))
    }

    /// For how long the oldest entry has waited.
    pub(crate) fn oldest(&self, now: Instant) -> Duration {
        self.queue.lock().oldest(now)
    }

    /// For how long `uid` has had something to write.
    pub(crate) fn age(&self, uid: &Arc<str>, now: Instant) -> Option<Duration> {
        self.queue.lock().age(uid, now)
    }

    /// Writes until `stop`, then waits for the writes under way. Those of unknown outcome the
    /// manager waits for.
    pub(crate) async fn run(self: Arc<Self>, counters: Counters, stop: CancellationToken) {
        let under_way = TaskTracker::new();
        while let Some((uid, pending)) = stop.run_until_cancelled(self.next()).await {
            let (writer, counters) = (Arc::clone(&self), counters.clone());
            let sent_at = now().monotonic;
            under_way.spawn(task(async move {
                *writer.under_way.lock().entry(Arc::clone(pending.shard())).or_default() += 1;
                let WriteResult { written, settled_at } =
                    writer.write_contained(&*pending, &counters).await;
                let answered_at = now().monotonic;
                // What is waited for from here on is this object's alone
                // (`rule:refused-writes-delay-no-others`).
                writer.window.lock().end(written, sent_at, answered_at);
                writer.changed.notify_one();
                if let Some(settled_at) = settled_at {
                    sleep_until(settled_at).await;
                }
                writer.ended(pending.shard());
                let longest = pending.period();
                writer.queue.lock().finish(&uid, written, answered_at, longest, draw());
                writer.changed.notify_one();
            }));
        }
        under_way.close();
        under_way.wait().await;
    }

    fn ended(&self, shard: &Arc<str>) {
        let mut under_way = self.under_way.lock();
        if let Some(count) = under_way.get_mut(shard) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(shard);
            }
        }
    }

    /// The next write whose turn has come, when the window has a place and the pace allows it.
    async fn next(&self) -> Entry {
        loop {
            let now = now().monotonic;
            let ready_at = self.queue.lock().next_at(now);
            if ready_at.is_none_or(|at| at > now) {
                self.until(ready_at).await;
                continue;
            }
            let begun = self.window.lock().begin(now);
            if let Err(open_at) = begun {
                self.until(open_at).await;
                continue;
            }
            self.wait_for_pace().await;
            let next = self.queue.lock().next(self::now().monotonic);
            match next {
                Some(entry) => return entry,
                None => self.window.lock().give_back(),
            }
        }
    }

    /// Until `at`, or until something is submitted or has ended.
    async fn until(&self, at: Option<Instant>) {
        let changed = self.changed.notified();
        match at {
            Some(at) => {
                tokio::select! {
                    biased;
                    () = sleep_until(at.into()) => {}
                    () = changed => {}
                }
            }
            None => changed.await,
        }
    }

    async fn wait_for_pace(&self) {
        let Some(pace) = &self.pace else { return };
        loop {
            let taken = pace.lock().take(now().monotonic);
            match taken {
                Ok(()) => return,
                Err(wait) => sleep(wait).await,
            }
        }
    }

    /// A panic of the flavour loses no write of another cluster, and this write is
    /// retried (`rule:panics-end-no-service`).
    async fn write_contained(&self, pending: &dyn Pending, counters: &Counters) -> WriteResult {
        contain(self.write(pending, counters)).await.unwrap_or_else(|panic| {
            let (flavour, object) = (pending.flavour(), &*pending.object().key);
            counters.wrote(flavour, "error");
            error!(object, %panic, "Writing a status panicked; retrying");
            Written::Failed.into()
        })
    }

    async fn write(&self, pending: &dyn Pending, counters: &Counters) -> WriteResult {
        let (flavour, object) = (pending.flavour(), pending.object());
        let Some(client) = self.clients.get(&pending.resource().into()) else {
            return Written::Gone.into();
        };
        // Checked after it counts as under way, so giving the cluster up waits for it.
        if !self.ownership.is_ours(pending.shard()) {
            return pending.given_up().into();
        }
        let Some(write) = pending.write(now()) else { return Written::Done.into() };
        let sent = match write {
            StatusWrite::Apply(fields) => {
                let uid = Some(object.uid.to_string());
                let apply = Apply { fields, uid, force: true, part: Part::Status };
                client.apply(&object.key, &apply).await.map(drop)
            }
            StatusWrite::Shared(fields) => self.share(pending, client, &fields, counters).await,
            StatusWrite::Merge { fields, over } => {
                let merge = Merge { fields, over, part: Part::Status };
                client.merge(&object.key, &merge).await
            }
        };
        let Err(error) = sent else {
            counters.wrote(flavour, "ok");
            return Written::Done.into();
        };
        let (written, outcome) = judge(&error);
        counters.wrote(flavour, outcome);
        if !matches!(error.why, Why::Conflict { .. })
            && let Some(suppressed) = self.log.pass(flavour, now().monotonic)
        {
            let resource = &*pending.resource().plural;
            warn!(resource, object = &*object.key, %error, suppressed, "Cannot write the status; retrying");
        }
        WriteResult { written, settled_at: error.settled_at() }
    }
}

impl Writer {
    /// Applies fields without force. What another field manager owns is left out and told by an event; of it only
    /// what has our prefix is taken back (`rule:a-shared-status-is-shared`).
    async fn share(
        &self,
        pending: &dyn Pending,
        client: &ObjectClient<Dynamic>,
        fields: &Value,
        counters: &Counters,
    ) -> Result<(), Error> {
        let (object, mut force) = (pending.object(), false);
        let mut attempts = 0;
        loop {
            let (mut fields, sent) = (fields.clone(), now().monotonic);
            self.owners.strip(&object.uid, &mut fields, sent);
            let uid = Some(object.uid.to_string());
            let apply = Apply { fields, uid, force, part: Part::Status };
            attempts += 1;
            let Err(error) = client.apply(&object.key, &apply).await else {
                self.owners.accepted(&object.uid, sent);
                return Ok(());
            };
            let Why::Owned { fields: paths } = &error.why else { return Err(error) };
            let refused = self.owners.refused(&object.uid, paths, now().monotonic);
            if !refused.others.is_empty() {
                counters.wrote(pending.flavour(), "owned");
            }
            for element in &refused.new {
                let text = format!(
                    "{element} of the status belongs to another field manager and is not written for 10 minutes"
                );
                let reference = object.object_ref(pending.resource());
                self.recorder.event(reference, EventType::Warning, "ConditionOwnedByOther", text);
            }
            if attempts == SHARE_ATTEMPTS {
                return Err(error);
            }
            force = refused.is_ours;
        }
    }
}

/// The outcome of a write.
struct WriteResult {
    written: Written,
    /// Until then a later write, or one of another replica, could be undone by this one.
    settled_at: Option<tokio::time::Instant>,
}

impl From<Written> for WriteResult {
    fn from(written: Written) -> Self {
        Self { written, settled_at: None }
    }
}

/// The consequence of an error for the entry, and its label (`rule:writes-are-retried-until-done`).
fn judge(error: &Error) -> (Written, &'static str) {
    match &error.why {
        Why::Gone => (Written::Gone, "error"),
        Why::Conflict { .. } | Why::Owned { .. } => (Written::Conflict, "conflict"),
        Why::Throttled { retry_after } => {
            let retry_after = retry_after.unwrap_or(RETRY_AFTER);
            (Written::Throttled { retry_after }, "error")
        }
        Why::Refused { .. } | Why::Key | Why::Encode => (Written::Failed, "invalid"),
        // It is there; only the answer could not be read.
        Why::Unreadable(_) => (Written::Done, "ok"),
        _ => (Written::Failed, "error"),
    }
}

#[cfg(test)]
mod tests;
