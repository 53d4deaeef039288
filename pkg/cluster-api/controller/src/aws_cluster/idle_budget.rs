//! [`IdleBudget`]: when AWS is read for clusters at rest. AWS throttles and bills the reads of all
//! clusters in a region of an account together, and reads at rest find nothing most of the time
//! (cluster-api-provider-aws#1275, #4192). Clusters get their turn in the order in which they became
//! due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The reads of this time may be sent at once, so that a few clusters, or the deep checks that are due
/// together, do not wait.
const BURST: Duration = Duration::from_secs(300);

/// The reads of clusters at rest, by account and region.
#[derive(Debug)]
pub(super) struct IdleBudget {
    per_second: f64,
    /// When all reserved reads are paid for, by account and region.
    paid: HashMap<Box<str>, Instant>,
    /// The account and region, and the reads, of passes that have not ended, by AWSCluster.
    reserved: HashMap<Arc<str>, (Box<str>, u32)>,
}

impl IdleBudget {
    pub(super) fn new(per_second: f64) -> Self {
        Self { per_second, paid: HashMap::new(), reserved: HashMap::new() }
    }

    /// Reserves the reads of a pass in an account and region. When the pass may begin.
    pub(super) fn reserve(&mut self, key: &Arc<str>, place: &str, reads: u32) -> Instant {
        self.settle(key, 0);
        let (now, cost) = (Instant::now(), self.cost(reads));
        let paid = self.paid.entry(place.into()).or_insert(now);
        let at = paid.checked_sub(BURST).unwrap_or(now).max(now);
        *paid = (*paid).max(now) + cost;
        self.reserved.insert(Arc::clone(key), (place.into(), reads));
        at
    }

    /// Counts the reads of a pass that has ended, in place of those that were reserved for it.
    pub(super) fn settle(&mut self, key: &str, reads: u32) {
        let Some((place, reserved)) = self.reserved.remove(key) else { return };
        let (spent, refund) = (self.cost(reads), self.cost(reserved));
        if let Some(paid) = self.paid.get_mut(&place) {
            *paid = (*paid + spent).checked_sub(refund).unwrap_or(*paid);
        }
    }

    fn cost(&self, reads: u32) -> Duration {
        Duration::from_secs_f64(f64::from(reads) / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(budget: &mut IdleBudget, key: &str, place: &str, reads: u32) -> u64 {
        let at = budget.reserve(&Arc::from(key), place, reads);
        at.saturating_duration_since(Instant::now()).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn reads_beyond_a_burst_wait_for_those_before_them_in_their_account_and_region_only() {
        let mut budget = IdleBudget::new(2.0);
        let found = ["a", "b", "c", "d"].map(|key| waits(&mut budget, key, "1/r", 400));
        assert_eq!(found, [0, 0, 100, 300]);
        assert_eq!(waits(&mut budget, "e", "2/r", 400), 0);
        for key in ["a", "b", "c", "d"] {
            budget.settle(key, 400);
        }
        tokio::time::advance(Duration::from_secs(10_000)).await;
        let found = ["a", "b", "c"].map(|key| waits(&mut budget, key, "1/r", 600));
        assert_eq!(found, [0, 0, 300], "a pause saves no more than a burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_pays_for_what_it_has_read() {
        let mut budget = IdleBudget::new(2.0);
        assert_eq!(waits(&mut budget, "a", "1/r", 1000), 0);
        budget.settle("a", 1400);
        assert_eq!(waits(&mut budget, "b", "1/r", 0), 400, "700 s for 1400 reads, less the burst");
        budget.settle("b", 0);
        assert_eq!(waits(&mut budget, "c", "1/r", 1000), 400);
        assert_eq!(waits(&mut budget, "c", "1/r", 1000), 400, "its first reservation is void");
        budget.settle("c", 0);
        assert_eq!(waits(&mut budget, "d", "1/r", 0), 400);
    }
}
