//! [`LeaseReads`]: how many Nodes of a cluster renew their Leases, by successive reads, without comparing the clocks of
//! the cluster with ours.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// One Lease, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenLease {
    /// Hash of its name, from [`crate::hash`].
    pub name: u64,
    /// `spec.renewTime`, by the clock of the Node; `None` when it was never renewed.
    pub renewed: Option<Timestamp>,
}

/// The Leases of the last read.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseReads(HashMap<u64, KnownLease>);

#[derive(Clone, Copy, Debug)]
struct KnownLease {
    renewed: Timestamp,
    /// When it was renewed at the latest, by our clock; `None` when that is longer ago than any age that is asked for.
    at: Option<Instant>,
}

/// How many Leases are fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freshness {
    pub(super) fresh: usize,
    /// Leases whose age is known.
    pub(super) total: usize,
}

impl LeaseReads {
    /// Takes in a read that was answered at `now`, with the `Date` of the answer. A Lease that was renewed since the read
    /// before is fresh. The age of one that is new to us is `Date` minus its renewal: both are clocks of the cluster.
    pub(super) fn read(
        &mut self,
        leases: &[SeenLease],
        date: Option<Timestamp>,
        max_age: Duration,
        now: Instant,
    ) -> Freshness {
        let mut counts = Freshness::default();
        let mut known = HashMap::with_capacity(leases.len());
        for lease in leases {
            let Some(renewed) = lease.renewed else {
                counts.total += 1;
                continue;
            };
            let at = match (self.0.get(&lease.name), date) {
                (Some(before), _) if before.renewed == renewed => before.at,
                (Some(_), _) => Some(now),
                (None, Some(date)) => {
                    let age = Duration::try_from(date.duration_since(renewed)).unwrap_or_default();
                    (age <= max_age).then(|| now.checked_sub(age)).flatten()
                }
                // Its age is unknown until it is read again.
                (None, None) => {
                    known.insert(lease.name, KnownLease { renewed, at: Some(now) });
                    continue;
                }
            };
            counts.total += 1;
            let is_fresh = at.is_some_and(|at| now.saturating_duration_since(at) <= max_age);
            counts.fresh += usize::from(is_fresh);
            known.insert(lease.name, KnownLease { renewed, at });
        }
        self.0 = known;
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_AGE: Duration = Duration::from_secs(40);
    const HOUR: i64 = 3600;

    /// Reads of three Leases by a cluster whose clock is `skew` seconds ahead of any other.
    struct Reads {
        known: LeaseReads,
        start: Instant,
        skew: i64,
    }

    impl Reads {
        fn new(skew: i64) -> Self {
            Self { known: LeaseReads::default(), start: Instant::now(), skew }
        }

        /// A read after `second` of Leases that were renewed at these seconds; how many of how many are fresh.
        fn at(&mut self, second: u64, renewed: &[i64], with_date: bool) -> (usize, usize) {
            let by_its_clock =
                |second: i64| Timestamp::from_second(1_790_000_000 + self.skew + second).unwrap();
            let lease = |(name, &second): (u64, &i64)| SeenLease {
                name,
                renewed: Some(by_its_clock(second)),
            };
            let leases: Vec<_> = (1..).zip(renewed).map(lease).collect();
            let date = with_date.then(|| by_its_clock(second.try_into().unwrap()));
            let now = self.start + Duration::from_secs(second);
            let Freshness { fresh, total } = self.known.read(&leases, date, MAX_AGE, now);
            (fresh, total)
        }
    }

    #[test]
    fn a_cluster_whose_clock_is_an_hour_off_is_judged_like_any_other() {
        for skew in [0, HOUR, -HOUR] {
            let mut reads = Reads::new(skew);
            assert_eq!(reads.at(100, &[95, 61, 59], true), (2, 3), "by the Date of the answer");
            assert_eq!(reads.at(160, &[155, 61, 59], true), (1, 3), "one was renewed");
            assert_eq!(reads.at(190, &[155, 61, 185], true), (2, 3), "35 s old, and renewed");
            assert_eq!(reads.at(201, &[155, 61, 185], true), (1, 3), "41 s old, by our clock");
        }
    }

    /// Nodes with clocks of their own: what counts is that a Lease moves.
    #[test]
    fn a_lease_that_moves_is_fresh_whatever_time_it_names() {
        let mut reads = Reads::new(0);
        assert_eq!(
            reads.at(100, &[95 - HOUR, 95 + HOUR], true),
            (1, 2),
            "a Node that is an hour behind"
        );
        assert_eq!(reads.at(160, &[155 - HOUR, 155 + HOUR], true), (2, 2));
        assert_eq!(reads.at(220, &[155 - HOUR, 155 + HOUR], true), (0, 2));
    }

    #[test]
    fn without_a_date_the_second_read_is_the_first_that_tells_anything() {
        let mut reads = Reads::new(0);
        assert_eq!(reads.at(100, &[95, 20], false), (0, 0));
        assert_eq!(reads.at(130, &[125, 20], false), (2, 2), "the second may be 30 s old");
        assert_eq!(reads.at(141, &[125, 20], false), (1, 2));
    }

    #[test]
    fn a_lease_that_was_never_renewed_is_not_fresh_and_one_that_is_gone_is_forgotten() {
        let (mut reads, now) = (LeaseReads::default(), Instant::now());
        let never = [SeenLease { name: 1, renewed: None }];
        assert_eq!(reads.read(&never, None, MAX_AGE, now), Freshness { fresh: 0, total: 1 });
        let one = [SeenLease { name: 2, renewed: Some(Timestamp::UNIX_EPOCH) }];
        reads.read(&one, None, MAX_AGE, now);
        assert_eq!(reads.0.len(), 1);
        assert_eq!(reads.read(&[], None, MAX_AGE, now), Freshness::default());
        assert!(reads.0.is_empty());
    }
}
