//! [`Backlog`]: the Nodes of a list on their way into the queue.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use workqueue::WorkQueue;

/// At most so many keys wait in the queue while there are more: enough for all workers at any speed. A key
/// takes ten times as much room there as here, and at a start all Nodes of a cluster may
/// need work.
pub(crate) const IN_QUEUE: usize = 2048;

/// Names of Nodes, in the order of their list.
#[derive(Default)]
pub(crate) struct Backlog(Mutex<VecDeque<Arc<str>>>);

impl Backlog {
    /// Adds Nodes behind the others.
    pub(crate) fn add(&self, names: Vec<Arc<str>>) {
        let mut backlog = self.0.lock();
        if backlog.is_empty() {
            *backlog = names.into();
        } else {
            backlog.extend(names);
        }
    }

    /// Moves as many Nodes into the queue as it has room for. Called when there are more of them,
    /// and before each is handled.
    pub(crate) fn feed(&self, queue: &WorkQueue<Arc<str>>) {
        let mut backlog = self.0.lock();
        if backlog.is_empty() {
            return;
        }
        while queue.len() < IN_QUEUE
            && let Some(name) = backlog.pop_front()
        {
            queue.add(name);
        }
        if backlog.is_empty() {
            *backlog = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus::Registry;
    use workqueue::{Backoff, Jitter, QueueMetrics};

    use super::*;

    #[tokio::test]
    async fn nodes_of_a_later_list_come_behind_those_of_the_one_before() {
        let second = Duration::from_secs(1);
        let metrics = QueueMetrics::new(&Registry::new()).unwrap();
        let backoff = Backoff::doubling(second, second, Jitter::Around(0.0));
        let (queue, backlog) = (WorkQueue::new("test", backoff, &metrics), Backlog::default());
        backlog.add(vec!["b".into(), "a".into()]);
        backlog.add(vec!["c".into()]);
        assert!(queue.is_empty());
        backlog.feed(&queue);
        for name in ["b", "a", "c"] {
            assert_eq!(&**queue.next().await.unwrap(), name);
        }
    }
}
