//! [`Difference`]: where our verdict and the object of a cluster differ, in an audit.

use std::time::{Duration, Instant};

use health::{Health, Policy, Status};

/// Where our verdict and the object of a cluster part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) ours: Health,
    /// `None` when the object shows no health.
    pub(crate) stored: Option<Health>,
    pub(crate) since: Instant,
    lasting: bool,
}

impl Difference {
    /// Whether the difference has lasted longer than two controllers with their own probe times can
    /// disagree.
    pub(crate) fn is_lasting(&self) -> bool {
        self.lasting
    }

    pub(crate) fn stored_label(&self) -> &'static str {
        self.stored.map_or("nothing", Health::label)
    }

    /// Computes the next difference from `before`, our verdict and the object.
    pub(crate) fn next(
        before: Option<Self>,
        ours: Option<Health>,
        stored: Option<Health>,
        tells_offline: bool,
        patience: Duration,
        now: Instant,
    ) -> Option<Self> {
        // Unknown is no verdict.
        let ours = ours.filter(|ours| ours.ready() != Status::Unknown)?;
        let same_readiness = |stored: Health| !tells_offline && ours.ready() == stored.ready();
        let agree = stored.is_some_and(|stored| ours == stored || same_readiness(stored));
        if agree {
            return None;
        }
        let same = before.filter(|before| (before.ours, before.stored) == (ours, stored));
        let since = same.map_or(now, |same| same.since);
        let lasting = now.saturating_duration_since(since) >= patience;
        Some(Self { ours, stored, since, lasting })
    }
}

/// How long a difference has to last: another controller has its own probe times and thresholds.
pub(crate) fn patience(policy: &Policy) -> Duration {
    2 * policy.cadence.period.max(policy.cadence.timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn a_difference_is_told_when_it_lasts_and_only_where_the_object_can_say_what_we_say() {
        use Health::{Malformed, NotReady, Ready, Unknown, Unreachable};
        // (ours, stored, whether the object tells unreachable from unhealthy; whether they differ)
        let rows = [
            (Some(Ready), Some(Ready), true, false),
            (Some(Unreachable), Some(NotReady), true, true),
            (Some(Unreachable), Some(NotReady), false, false),
            (Some(Malformed), Some(NotReady), false, false),
            (Some(Ready), Some(NotReady), false, true),
            (Some(Malformed), None, true, true),
            (Some(Unknown), Some(Ready), true, false),
            (Some(Ready), Some(Unknown), true, true),
            (None, Some(Ready), true, false),
        ];
        let start = Instant::now();
        for (ours, stored, offline, differs) in rows {
            let next =
                |before, at| Difference::next(before, ours, stored, offline, S(20), start + S(at));
            let first = next(None, 0);
            assert_eq!(first.is_some(), differs, "{ours:?} {stored:?} {offline}");
            assert!(!first.is_some_and(|it| it.is_lasting()));
            assert!(!next(first, 19).is_some_and(|it| it.is_lasting()));
            assert_eq!(next(first, 20).is_some_and(|it| it.is_lasting()), differs);
        }
    }

    #[test]
    fn another_difference_begins_anew() {
        let start = Instant::now();
        let next = |before, stored, at| {
            Difference::next(before, Some(Health::Ready), Some(stored), true, S(20), start + S(at))
        };
        let first = next(None, Health::NotReady, 0);
        let other = next(first, Health::Unreachable, 30);
        assert!(!other.unwrap().is_lasting());
        assert!(next(other, Health::Unreachable, 50).unwrap().is_lasting());
    }
}
