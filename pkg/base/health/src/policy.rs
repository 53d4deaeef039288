//! [`Policy`]: how a cluster is watched over. One for a whole flavour, or changed for one object.

use std::time::Duration;

use crate::{Cadence, Damping, Thresholds};

/// The least time without a probe after which a cluster is called unknown.
const STALE_AT_LEAST: Duration = Duration::from_secs(40);
/// Time that a cluster which was never probed by anybody is given.
const FIRST_GRACE: Duration = Duration::from_secs(60);
/// Time beyond two rounds after which a task without a completed probe is taken for stuck.
const STUCK_MARGIN: Duration = Duration::from_secs(5);

/// How a cluster is watched over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// When it is probed.
    pub cadence: Cadence,
    /// How many probes it takes to change what is published.
    pub thresholds: Thresholds,
    /// What is done about flapping.
    pub damping: Damping,
    /// How long a cluster may go without a completed probe before it is published as unknown; zero
    /// has it computed.
    pub stale_after: Duration,
    /// Unchanged status is written this often; zero writes every probe.
    pub heartbeat: Duration,
}

impl Policy {
    /// How long a cluster may go without a completed probe before it is published as unknown.
    pub fn stale_after(&self) -> Duration {
        if self.stale_after.is_zero() {
            (4 * self.cadence.period).max(STALE_AT_LEAST)
        } else {
            self.stale_after
        }
    }

    /// The same for a cluster about which nothing was ever published.
    pub fn first_grace(&self) -> Duration {
        FIRST_GRACE.max(self.stale_after.min(self.stale_after()))
    }

    /// How long a task may go without a completed probe before it is started anew.
    pub fn stuck_after(&self) -> Duration {
        2 * self.cadence.period.max(self.cadence.timeout) + STUCK_MARGIN
    }

    /// A failure of an extra probe counts only this long after the last one that counted
    /// (`rule:events-do-not-hurry-failures`).
    pub(crate) fn failure_spacing(&self) -> Duration {
        self.cadence.confirming() / 2
    }

    /// The longest time for which one result can stand for the cluster.
    pub(crate) fn longest_gap(&self) -> Duration {
        2 * self.cadence.period.max(self.cadence.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn policy(period: u64, timeout: u64, stale_after: u64) -> Policy {
        Policy {
            cadence: Cadence {
                period: S(period),
                timeout: S(timeout),
                confirm: S(10),
                jitter: 0.1,
            },
            thresholds: Thresholds { failure: 3, success: 1 },
            damping: Damping { transitions: 6, window: S(600), min_success: 3 },
            stale_after: S(stale_after),
            heartbeat: S(300),
        }
    }

    #[test]
    fn limits_follow_period_and_timeout() {
        // (period, timeout, flag; stale after, stuck after)
        let rows =
            [(10, 3, 0, 40, 25), (5, 3, 0, 40, 15), (300, 5, 0, 1200, 605), (10, 30, 90, 90, 65)];
        for (period, timeout, flag, stale, stuck) in rows {
            let policy = policy(period, timeout, flag);
            assert_eq!((policy.stale_after(), policy.stuck_after()), (S(stale), S(stuck)));
        }
        assert_eq!(policy(300, 5, 0).first_grace(), S(60));
    }
}
