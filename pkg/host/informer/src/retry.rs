//! How long the reflector waits after a failure: 0.1 s, doubled each time, with jitter, at most 30
//! s, and at most 2 s before the first list; from the shortest again when none was needed for two
//! minutes (rule:first-retry-comes-soon).

use std::time::Duration;

use resilience::{Backoff, Jitter, Series};

const FIRST: Duration = Duration::from_millis(100);
/// Half of the longest wait, since jitter can double it.
const LAST: Duration = Duration::from_secs(15);
/// The longest wait after an outage while there is no list yet: until then a leader does nothing.
pub(crate) const FIRST_LIST: Duration = Duration::from_secs(2);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

pub(crate) fn after_failures() -> Series {
    let doubling = Backoff::doubling(FIRST, LAST, Jitter::Above(1.0));
    Series::new(doubling).forget_after(FORGOTTEN_AFTER)
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn waits_double_with_jitter_and_stay_under_thirty_seconds() {
        let mut failures = after_failures();
        for low in [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0] {
            let wait = failures.fail(Instant::now()).as_secs_f64();
            assert!((low..low * 2.0).contains(&wait), "{wait} is not in {low}..{}", low * 2.0);
        }
    }
}
