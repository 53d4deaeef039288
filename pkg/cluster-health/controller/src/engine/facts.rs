//! [`FactStore`]: facts about clusters in addition to their health, such as a version, and when each is read again.
//! [`read_facts`] reads them apart from all probing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flavour::MemberId;
use super::flavour_registry::FlavourRegistry;

/// Between two rounds of [`read_facts`].
const ROUND: Duration = Duration::from_secs(1);

/// A fact about each cluster of a flavour, by the UID of its object.
pub(crate) struct FactStore<T> {
    every: Duration,
    retry: Duration,
    facts: Mutex<HashMap<Arc<str>, Fact<T>>>,
}

#[derive(Default)]
struct Fact<T> {
    value: T,
    /// When it is read again; at once without it.
    next: Option<Instant>,
}

impl<T: Default> FactStore<T> {
    /// A fact that is read again after `every`, and after `retry` when a read gave nothing; give or take a tenth.
    pub(crate) fn new(every: Duration, retry: Duration) -> Self {
        Self { every, retry, facts: Mutex::default() }
    }

    /// The fact about a cluster, or a part of it; `None` when nothing was read yet.
    pub(crate) fn get<R>(&self, uid: &str, part: impl FnOnce(&T) -> Option<R>) -> Option<R> {
        part(&self.facts.lock().get(uid)?.value)
    }

    /// Whether a read is due; if so, the next one is due soon, unless this one gives something.
    pub(crate) fn begin(&self, uid: &Arc<str>) -> bool {
        let (mut facts, now) = (self.facts.lock(), Instant::now());
        let fact = facts.entry(Arc::clone(uid)).or_default();
        let is_due = fact.next.is_none_or(|next| next <= now);
        if is_due {
            fact.next = Some(now + spread(self.retry));
        }
        is_due
    }

    /// Takes in what was read of a cluster; `None` when the cluster is not known any more.
    pub(crate) fn take<R>(&self, uid: &str, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut facts = self.facts.lock();
        let fact = facts.get_mut(uid)?;
        fact.next = Some(Instant::now() + spread(self.every));
        Some(change(&mut fact.value))
    }

    /// What was read is about another cluster: the next read is due.
    pub(crate) fn expire(&self, uid: &str) {
        if let Some(fact) = self.facts.lock().get_mut(uid) {
            fact.next = None;
        }
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.facts.lock().remove(uid);
    }
}

fn spread(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * resilience::draw())
}

/// Reads facts of the clusters that are `due`, each second and `at_once` at the same time, apart from all probing, until
/// `stop`. A read ends with its cluster (`rule:nothing-outlives-its-object`).
pub(crate) async fn read_facts<F: Future<Output = Option<()>> + Send + 'static>(
    registry: &FlavourRegistry,
    stop: &CancellationToken,
    at_once: usize,
    due: impl Fn() -> Vec<MemberId>,
    read: impl Fn(MemberId) -> F,
) {
    let (slots, under_way) = (Arc::new(Semaphore::new(at_once)), TaskTracker::new());
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(rounds.tick()).await.is_some() {
        for cluster in due() {
            let Some(life) = registry.life(&cluster) else { continue };
            let (slots, read) = (Arc::clone(&slots), read(cluster));
            under_way.spawn(resilience::task(async move {
                let turn = async {
                    let _slot = slots.acquire().await;
                    read.await
                };
                life.run_until_cancelled(turn).await
            }));
        }
    }
    under_way.close();
    under_way.wait().await;
}

/// `gitVersion` of an answer of `/version`.
pub(crate) fn git_version(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        git_version: String,
    }
    serde_json::from_slice(body).ok().map(|Version { git_version }| git_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_that_failed_is_repeated_within_a_minute_and_others_after_ten() {
        let (every, retry) = (Duration::from_secs(600), Duration::from_secs(30));
        let (facts, uid) = (FactStore::<Option<u8>>::new(every, retry), Arc::from("u"));
        assert!(facts.begin(&uid) && !facts.begin(&uid));
        tokio::time::advance(retry * 2).await;
        assert!(facts.begin(&uid), "the first one failed");
        facts.take("u", |fact| *fact = Some(7)).unwrap();
        tokio::time::advance(retry * 2).await;
        assert!(!facts.begin(&uid));
        tokio::time::advance(every * 2).await;
        assert!(facts.begin(&uid));
        assert_eq!(facts.get("u", |fact| *fact), Some(7));
        facts.expire("u");
        assert!(facts.begin(&uid), "what was read is about another cluster");
        facts.forget("u");
        assert!(facts.take("u", |fact| *fact = Some(8)).is_none(), "it is gone");
        assert_eq!(facts.get("u", |fact| *fact), None);
    }
}
