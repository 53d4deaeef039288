//! [`Polls`]: what clusters of a region wait for, or look at while they rest, read for all of them at
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_network::Timestamp;
use futures::{StreamExt as _, stream};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use crate::call::AwsError;

/// Seconds for which a round that failed serves clusters at rest: each would repeat it.
const FAILS_FOR: u64 = 60;

/// Calls of a round at once.
const IN_FLIGHT: usize = 6;

/// How the clusters ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Seconds for which a round serves everybody: less than a cluster waits between two looks.
    pub(crate) serves_for: u64,
    /// Seconds without a question after which an asker is forgotten.
    pub(crate) waits_for: u64,
    /// Values in one call. AWS takes up to 200 in a filter.
    pub(crate) values: usize,
}

impl Terms {
    /// For what clusters wait for.
    pub(crate) const AWAITED: Self = Self { serves_for: 8, waits_for: 60, values: 200 };
}

/// One who waits for something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asker {
    /// The tag of its cluster.
    pub(crate) cluster_tag: String,
    /// The value of the filter that it asks about.
    pub(crate) value: String,
}

/// One kind of resource. `T` is what AWS describes.
#[derive(Debug)]
pub(crate) struct Polls<T> {
    terms: Terms,
    /// The askers, and when each asked last.
    askers: SyncMutex<BTreeMap<Asker, Timestamp>>,
    /// When clusters last wrote, by tag.
    written: SyncMutex<BTreeMap<String, Timestamp>>,
    /// One round at a time: who comes meanwhile is served by the next.
    last: Mutex<Option<Round<T>>>,
}

/// One read for all askers.
#[derive(Debug)]
struct Round<T> {
    began: Timestamp,
    values: BTreeSet<String>,
    outcome: Result<Arc<Vec<T>>, AwsError>,
}

/// The resources of a round, and when it began.
pub(crate) type Found<T> = (Arc<Vec<T>>, Timestamp);

impl<T> Round<T> {
    fn answer(&self) -> Result<Found<T>, AwsError> {
        self.outcome.clone().map(|found| (found, self.began))
    }

    /// Whether it is at most so many seconds old. One of the future began before the clock was set back.
    fn lasts(&self, now: Timestamp, seconds: u64) -> bool {
        self.began <= now && self.began.age(now) <= seconds
    }
}

impl<T> Polls<T> {
    pub(crate) fn new(terms: Terms) -> Self {
        let (askers, written, last) =
            (SyncMutex::default(), SyncMutex::default(), Mutex::default());
        Self { terms, askers, written, last }
    }

    /// Has the next round serve an asker.
    pub(crate) fn note(&self, asker: Asker, now: Timestamp) {
        let mut askers = self.askers.lock();
        askers.retain(|_, asked| asked.age(now) <= self.terms.waits_for);
        askers.insert(asker, now);
    }

    /// Number of askers.
    pub(crate) fn askers(&self) -> usize {
        self.askers.lock().len()
    }

    /// A cluster has written something: it is not served by what was read before.
    pub(crate) fn wrote(&self, cluster_tag: &str, now: Timestamp) {
        let mut written = self.written.lock();
        written.retain(|_, at| at.age(now) <= self.terms.waits_for);
        written.insert(cluster_tag.to_owned(), now);
    }

    /// Resources for a value and for the values of other askers, and when the read began. `fetch`
    /// reads for some values.
    ///
    /// # Errors
    /// The read has failed, for all who waited for it.
    pub(crate) async fn ask<F>(
        &self,
        asker: Asker,
        clock: impl Fn() -> Timestamp,
        fetch: impl Fn(Vec<String>) -> F,
    ) -> Result<Found<T>, AwsError>
    where
        F: Future<Output = Result<Vec<T>, AwsError>>,
    {
        let asked = clock();
        self.note(asker.clone(), asked);
        let mut last = self.last.lock().await;
        if let Some(round) =
            last.as_ref().filter(|round| self.serves(round, &asker, asked, clock()))
        {
            return round.answer();
        }
        last.insert(self.round(clock(), fetch).await).answer()
    }

    /// Like [`ask`](Self::ask), for a cluster at rest, whose last write is older than any round that
    /// serves. `None` where the cluster needs a read of its own: the round that serves the others
    /// began before the cluster asked for the first time.
    ///
    /// # Errors
    /// The read has failed, for all clusters at rest.
    pub(crate) async fn share<F>(
        &self,
        asker: Asker,
        clock: impl Fn() -> Timestamp,
        fetch: impl Fn(Vec<String>) -> F,
    ) -> Result<Option<Found<T>>, AwsError>
    where
        F: Future<Output = Result<Vec<T>, AwsError>>,
    {
        self.note(asker.clone(), clock());
        let mut last = self.last.lock().await;
        let (now, serves_for) = (clock(), self.terms.serves_for);
        let lasts = |round: &Round<T>| match round.outcome {
            Ok(_) => serves_for,
            Err(_) => serves_for.min(FAILS_FOR),
        };
        let round = match last.take().filter(|round| round.lasts(now, lasts(round))) {
            Some(round) => round,
            None => self.round(now, fetch).await,
        };
        let round = last.insert(round);
        let is_known = round.values.contains(&asker.value);
        round.answer().map(|found| is_known.then_some(found))
    }

    /// A failure serves those who have waited for that very round, who would only wait for the same
    /// failure one by one.
    fn serves(&self, round: &Round<T>, asker: &Asker, asked: Timestamp, now: Timestamp) -> bool {
        let wrote = self.written.lock().get(&asker.cluster_tag).copied();
        let is_known = round.values.contains(&asker.value);
        let is_recent = match round.outcome {
            Ok(_) => {
                round.lasts(now, self.terms.serves_for) && wrote.is_none_or(|at| at < round.began)
            }
            Err(_) => asked <= round.began,
        };
        is_known && is_recent
    }

    async fn round<F>(&self, began: Timestamp, fetch: impl Fn(Vec<String>) -> F) -> Round<T>
    where
        F: Future<Output = Result<Vec<T>, AwsError>>,
    {
        let values: BTreeSet<String> = {
            let mut askers = self.askers.lock();
            askers.retain(|_, asked| asked.age(began) <= self.terms.waits_for);
            askers.keys().map(|asker| asker.value.clone()).collect()
        };
        let all: Vec<_> = values.iter().cloned().collect();
        let parts = all.chunks(self.terms.values).map(<[_]>::to_vec);
        let calls: Vec<_> = parts.map(fetch).collect();
        let parts: Vec<_> = stream::iter(calls).buffer_unordered(IN_FLIGHT).collect().await;
        let parts: Result<Vec<_>, _> = parts.into_iter().collect();
        let outcome = parts.map(|parts| Arc::new(parts.into_iter().flatten().collect()));
        Round { began, values, outcome }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::future::join_all;

    use super::*;

    /// Answers with what it was asked for, and counts. Others come to ask while it reads.
    #[derive(Default)]
    struct Aws {
        calls: SyncMutex<Vec<usize>>,
        now: AtomicU64,
        is_down: std::sync::atomic::AtomicBool,
    }

    impl Aws {
        fn clock(&self) -> Timestamp {
            Timestamp(self.now.load(Ordering::Relaxed))
        }

        fn at(&self, now: u64) {
            self.now.store(now, Ordering::Relaxed);
        }

        async fn fetch(&self, values: Vec<String>) -> Result<Vec<String>, AwsError> {
            self.calls.lock().push(values.len());
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            if self.is_down.load(Ordering::Relaxed) {
                return Err(AwsError::without("answer"));
            }
            Ok(values)
        }

        async fn ask(&self, polls: &Polls<String>, cluster: usize) -> Result<Timestamp, AwsError> {
            let (cluster_tag, value) = (format!("cluster-{cluster}"), format!("vpc-{cluster}"));
            let asker = Asker { cluster_tag, value: value.clone() };
            let (found, began) =
                polls.ask(asker, || self.clock(), |values| self.fetch(values)).await?;
            assert!(found.contains(&value), "{value} of {found:?}");
            Ok(began)
        }

        fn calls(&self) -> Vec<usize> {
            std::mem::take(&mut self.calls.lock())
        }
    }

    #[tokio::test]
    async fn two_hundred_clusters_that_wait_are_one_call_every_ten_seconds() {
        let (aws, polls) = (Aws::default(), Polls::new(Terms::AWAITED));
        join_all((0..200).map(|cluster| aws.ask(&polls, cluster))).await;
        assert!(aws.calls().len() <= 2, "the first asks for itself, or for all who came at once");
        for now in [10, 20, 30] {
            aws.at(now);
            for cluster in 0..200 {
                assert_eq!(aws.ask(&polls, cluster).await.unwrap(), Timestamp(now));
            }
            assert_eq!(aws.calls(), [200]);
        }
    }

    #[tokio::test]
    async fn more_than_fit_in_a_filter_are_more_calls() {
        let (aws, polls) = (Aws::default(), Polls::new(Terms::AWAITED));
        join_all((0..450).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.calls();
        aws.at(10);
        aws.ask(&polls, 1).await.unwrap();
        assert_eq!(aws.calls(), [200, 200, 50]);
    }

    #[tokio::test]
    async fn what_was_read_before_a_write_does_not_serve_the_one_who_wrote() {
        let (aws, polls) = (Aws::default(), Polls::new(Terms::AWAITED));
        join_all((0..2).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.at(2);
        aws.ask(&polls, 1).await.unwrap();
        aws.calls();
        polls.wrote("cluster-0", Timestamp(2));
        aws.at(3);
        assert_eq!(aws.ask(&polls, 0).await.unwrap(), Timestamp(3), "its own write is in it");
        assert_eq!((aws.calls(), aws.ask(&polls, 1).await.unwrap()), (vec![2], Timestamp(3)));
        assert_eq!(aws.calls(), Vec::<usize>::new());
    }

    #[tokio::test]
    async fn who_has_not_asked_for_a_minute_is_not_asked_for() {
        let (aws, polls) = (Aws::default(), Polls::new(Terms::AWAITED));
        join_all((0..3).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.at(61);
        aws.calls();
        aws.ask(&polls, 0).await.unwrap();
        assert_eq!(aws.calls(), [1]);
    }

    #[tokio::test]
    async fn a_failure_is_returned_to_all_waiting_callers_and_no_others() {
        let (aws, polls) = (Aws::default(), Polls::new(Terms::AWAITED));
        join_all((0..50).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.at(20);
        aws.calls();
        aws.is_down.store(true, Ordering::Relaxed);
        let all = join_all((0..50).map(|cluster| aws.ask(&polls, cluster))).await;
        assert!(all.iter().all(Result::is_err));
        assert_eq!(aws.calls(), [50], "not one after the other");
        aws.is_down.store(false, Ordering::Relaxed);
        aws.at(21);
        assert_eq!(aws.ask(&polls, 7).await.unwrap(), Timestamp(21));
    }

    async fn share(
        aws: &Aws,
        polls: &Polls<String>,
        cluster: usize,
    ) -> Result<Option<Timestamp>, ()> {
        let (cluster_tag, value) = (format!("cluster-{cluster}"), format!("vpc-{cluster}"));
        let asker = Asker { cluster_tag, value: value.clone() };
        let shared = polls.share(asker, || aws.clock(), |values| aws.fetch(values)).await;
        let found = shared.map_err(|_| ())?;
        Ok(found.map(|(found, began)| {
            assert!(found.contains(&value), "{value} of {found:?}");
            began
        }))
    }

    #[tokio::test]
    async fn one_round_serves_clusters_at_rest_that_asked_before_it() {
        let terms = Terms { serves_for: 300, waits_for: 1200, values: 2 };
        let (aws, polls) = (Aws::default(), Polls::new(terms));
        for cluster in 0..4 {
            let asker = Asker {
                cluster_tag: format!("cluster-{cluster}"),
                value: format!("vpc-{cluster}"),
            };
            polls.note(asker, aws.clock());
        }
        aws.at(600);
        let all = join_all((0..4).map(|cluster| share(&aws, &polls, cluster))).await;
        assert_eq!(all, [Ok(Some(Timestamp(600))); 4]);
        assert_eq!(aws.calls(), [2, 2]);
        aws.at(900);
        assert_eq!(share(&aws, &polls, 4).await, Ok(None), "a new one reads for itself");
        assert_eq!(share(&aws, &polls, 0).await, Ok(Some(Timestamp(600))));
        aws.at(901);
        assert_eq!(share(&aws, &polls, 4).await, Ok(Some(Timestamp(901))), "a new round is due");
        assert_eq!(aws.calls(), [2, 2, 1]);
        aws.at(2000);
        assert_eq!(share(&aws, &polls, 0).await, Ok(Some(Timestamp(2000))));
        assert_eq!(aws.calls(), [2], "those that were not heard of for long are forgotten");
    }

    #[tokio::test]
    async fn a_round_before_the_clock_was_set_back_serves_nobody() {
        let terms = Terms { serves_for: 300, waits_for: 1200, values: 2 };
        let (aws, polls) = (Aws::default(), Polls::new(terms));
        aws.at(7200);
        assert_eq!(share(&aws, &polls, 0).await, Ok(Some(Timestamp(7200))));
        aws.at(3600);
        assert_eq!(share(&aws, &polls, 0).await, Ok(Some(Timestamp(3600))));
    }

    #[tokio::test]
    async fn a_round_that_failed_serves_clusters_at_rest_for_a_minute() {
        let terms = Terms { serves_for: 300, waits_for: 1200, values: 100 };
        let (aws, polls) = (Aws::default(), Polls::new(terms));
        aws.is_down.store(true, Ordering::Relaxed);
        for now in [0, 30, 60] {
            aws.at(now);
            assert_eq!(share(&aws, &polls, 1).await, Err(()));
        }
        assert_eq!(aws.calls(), [1]);
        aws.is_down.store(false, Ordering::Relaxed);
        aws.at(61);
        assert_eq!(share(&aws, &polls, 1).await, Ok(Some(Timestamp(61))));
    }
}
