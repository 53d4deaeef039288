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
        let (found, began) = polls.ask(asker, || self.clock(), |values| self.fetch(values)).await?;
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
