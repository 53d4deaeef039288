//! [`Polls`]: what clusters of a region wait for, read for all of them at once.

use std::collections::{BTreeMap, BTreeSet};

use aws_network::Timestamp;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use crate::call::AwsError;

/// For so many seconds a round serves everybody: for less than anybody waits between two looks.
const SERVES_FOR: u64 = 8;

/// Seconds without a question after which an asker is forgotten.
const WAITS_FOR: u64 = 60;

/// Values that fit in a filter.
const VALUES: usize = 200;

/// One who waits for something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asker {
    /// The tag of its cluster.
    pub(crate) cluster_tag: String,
    /// The value of the filter that it asks about.
    pub(crate) value: String,
}

/// One kind of resource that is waited for. `T` is what AWS describes.
#[derive(Debug)]
pub(crate) struct Polls<T> {
    /// The askers, and when each asked last.
    askers: SyncMutex<BTreeMap<Asker, Timestamp>>,
    /// When clusters last wrote, by tag.
    written: SyncMutex<BTreeMap<String, Timestamp>>,
    /// One round at a time: who comes meanwhile is served by the next.
    last: Mutex<Option<Round<T>>>,
}

/// One read for all who wait.
#[derive(Clone, Debug)]
struct Round<T> {
    began: Timestamp,
    values: BTreeSet<String>,
    outcome: Result<Vec<T>, AwsError>,
}

impl<T> Default for Polls<T> {
    fn default() -> Self {
        Self { askers: SyncMutex::default(), written: SyncMutex::default(), last: Mutex::default() }
    }
}

impl<T: Clone> Polls<T> {
    /// A cluster has written something: it is not served by what was read before.
    pub(crate) fn wrote(&self, cluster_tag: &str, now: Timestamp) {
        let mut written = self.written.lock();
        written.retain(|_, at| at.age(now) <= WAITS_FOR);
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
    ) -> Result<(Vec<T>, Timestamp), AwsError>
    where
        F: Future<Output = Result<Vec<T>, AwsError>>,
    {
        let asked = clock();
        self.askers.lock().insert(asker.clone(), asked);
        let mut last = self.last.lock().await;
        if let Some(round) =
            last.as_ref().filter(|round| self.serves(round, &asker, asked, clock()))
        {
            return round.outcome.clone().map(|found| (found, round.began));
        }
        let round = self.round(clock(), fetch).await;
        let answer = round.outcome.clone().map(|found| (found, round.began));
        *last = Some(round);
        answer
    }

    /// A failure serves those who have waited for that very round, who would only wait for the same
    /// failure one by one.
    fn serves(&self, round: &Round<T>, asker: &Asker, asked: Timestamp, now: Timestamp) -> bool {
        let wrote = self.written.lock().get(&asker.cluster_tag).copied();
        let is_known = round.values.contains(&asker.value);
        let is_recent = match round.outcome {
            Ok(_) => round.began.age(now) <= SERVES_FOR && wrote.is_none_or(|at| at < round.began),
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
            askers.retain(|_, asked| asked.age(began) <= WAITS_FOR);
            askers.keys().map(|asker| asker.value.clone()).collect()
        };
        let all: Vec<_> = values.iter().cloned().collect();
        let mut outcome = Ok(Vec::new());
        for some in all.chunks(VALUES) {
            match (fetch(some.to_vec()).await, &mut outcome) {
                (Ok(found), Ok(before)) => before.extend(found),
                (Err(error), _) => outcome = Err(error),
                (Ok(_), Err(_)) => {}
            }
        }
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
        let (aws, polls) = (Aws::default(), Polls::default());
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
        let (aws, polls) = (Aws::default(), Polls::default());
        join_all((0..450).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.calls();
        aws.at(10);
        aws.ask(&polls, 1).await.unwrap();
        assert_eq!(aws.calls(), [200, 200, 50]);
    }

    #[tokio::test]
    async fn what_was_read_before_a_write_does_not_serve_the_one_who_wrote() {
        let (aws, polls) = (Aws::default(), Polls::default());
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
        let (aws, polls) = (Aws::default(), Polls::default());
        join_all((0..3).map(|cluster| aws.ask(&polls, cluster))).await;
        aws.at(61);
        aws.calls();
        aws.ask(&polls, 0).await.unwrap();
        assert_eq!(aws.calls(), [1]);
    }

    #[tokio::test]
    async fn a_failure_is_returned_to_all_waiting_callers_and_no_others() {
        let (aws, polls) = (Aws::default(), Polls::default());
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
}
