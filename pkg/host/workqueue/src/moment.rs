//! [`Moment`]: an instant in half of its room. Every key that waits holds two, and at a start all
//! keys of a cluster wait.

use std::time::Duration;

use tokio::time::Instant;

/// An instant as nanoseconds after the epoch of its queue, or before it. 292 years each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

/// What the moments of one queue are counted from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn moment(self, at: Instant) -> Moment {
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Moment(match at.checked_duration_since(self.0) {
            Some(after) => nanos(after),
            None => -nanos(self.0.duration_since(at)),
        })
    }

    pub(crate) fn instant(self, moment: Moment) -> Instant {
        let span = Duration::from_nanos(moment.0.unsigned_abs());
        let at = if moment.0 < 0 { self.0.checked_sub(span) } else { self.0.checked_add(span) };
        at.unwrap_or(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_ordered_as_their_instants_and_lead_back_to_them() {
        let epoch = Epoch::now();
        let offset = Duration::from_nanos(1_500_000_001);
        let instants = [epoch.0.checked_sub(offset).unwrap(), epoch.0, epoch.0 + offset];
        let moments = instants.map(|at| epoch.moment(at));
        assert!(moments.is_sorted_by(|a, b| a < b));
        assert_eq!(moments.map(|moment| epoch.instant(moment)), instants);
    }
}
