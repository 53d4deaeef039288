//! [`WriteGate`]: whether the state of a cluster is worth a write.

use std::time::{Duration, Instant};

/// Why a write is due. Urgent ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// The cluster is published as unknown because this process is cut off: thousands of those at once are
    /// no news of any cluster.
    Partition,
    /// A heartbeat of an object that is not a cluster, such as a Machine.
    OtherHeartbeat,
    /// A change of an object that is not a cluster.
    OtherChange,
    /// A heartbeat of a cluster: nothing that matters has changed.
    Heartbeat,
    /// The first write of a cluster by this process, of a state that is no news: no readiness was
    /// published before, or the same one.
    FirstResult,
    /// Something that matters differs from what was written last.
    Change,
}

impl Urgency {
    /// The urgency of this write for an object that is not a cluster, such as a Machine.
    #[must_use]
    pub fn of_other_object(self) -> Self {
        match self {
            Self::Partition | Self::Heartbeat | Self::OtherHeartbeat => Self::OtherHeartbeat,
            Self::Change | Self::FirstResult | Self::OtherChange => Self::OtherChange,
        }
    }
}

/// Last state handed over for writing, as a fingerprint of everything that matters: statuses and
/// reasons of conditions, phase, version, zones. Times and messages do not count, but for one that
/// tells of another cause
/// (`rule:unchanged-status-is-written-at-heartbeats-only`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteGate {
    written: Option<u64>,
    at: Instant,
    /// The message names a cause that no longer holds.
    outdated: bool,
    /// This process has handed over no state, and has none that is news.
    is_first: bool,
}

impl WriteGate {
    /// `written` is the fingerprint of what the object says already. The heartbeats of clusters
    /// that were taken over together are spread by `hash`.
    pub(crate) fn new(written: Option<u64>, now: Instant, heartbeat: Duration, hash: u64) -> Self {
        let head_start = share_of(heartbeat, hash);
        let at = now.checked_sub(head_start).unwrap_or(now);
        Self { written, at, outdated: false, is_first: true }
    }

    /// Whether the state with this `fingerprint` has to be written at `now`.
    pub(crate) fn due(
        &self,
        fingerprint: u64,
        now: Instant,
        heartbeat: Duration,
    ) -> Option<Urgency> {
        if self.outdated || self.written != Some(fingerprint) {
            let first = self.is_first && !self.outdated;
            return Some(if first { Urgency::FirstResult } else { Urgency::Change });
        }
        let elapsed = now.saturating_duration_since(self.at);
        (elapsed >= heartbeat).then_some(Urgency::Heartbeat)
    }

    /// The state with this `fingerprint` was handed to the queue, which does not lose it.
    pub(crate) fn handed_over(&mut self, fingerprint: u64, now: Instant) {
        *self = Self { written: Some(fingerprint), at: now, outdated: false, is_first: false };
    }

    /// The published readiness has changed: even the first write of it is news.
    pub(crate) fn changed(&mut self) {
        self.is_first = false;
    }

    /// Has the state written again with its current message.
    pub(crate) fn outdate(&mut self) {
        self.outdated = true;
    }

    /// The object shows this fingerprint, or nothing of use. Whether that is news.
    pub(crate) fn shows(&mut self, fingerprint: Option<u64>) -> bool {
        std::mem::replace(&mut self.written, fingerprint) != fingerprint
    }
}

/// New clusters per second that a start-up probes.
const FIRST_PROBES_PER_SECOND: u64 = 500;
const FIRST_PROBES_WITHIN: Duration = Duration::from_secs(10);

/// 64 well-mixed bits of `text`: FNV-1a, finished as in SplitMix64.
pub fn hash(text: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv))
}

/// Mixes the bits of `value` so that each depends on all.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The part of `whole` at which the cluster with this hash lies.
pub(crate) fn share_of(whole: Duration, hash: u64) -> Duration {
    let share = (u128::from(hash >> 32) * whole.as_nanos()) >> 32;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

/// How long after start-up the first probe of a cluster comes, when there are `members` of them.
/// Clusters seen later are probed at once.
pub(crate) fn first_probe(hash: u64, members: usize, period: Duration) -> Duration {
    share_of(period.min(paced(members).max(FIRST_PROBES_WITHIN)), hash)
}

/// Delay of the first probe of clusters taken over from another replica: as short as possible, as they
/// have waited already.
pub(crate) fn next_probe(hash: u64, members: usize, period: Duration) -> Duration {
    share_of(period.min(paced(members)), hash)
}

fn paced(members: usize) -> Duration {
    let members = u64::try_from(members).unwrap_or(u64::MAX);
    Duration::from_millis(members.saturating_mul(1000) / FIRST_PROBES_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// rule:unchanged-status-is-written-at-heartbeats-only
    #[test]
    fn a_change_is_written_at_once_and_sameness_once_per_heartbeat() {
        let start = Instant::now();
        let mut gate = WriteGate::new(None, start, S(300), 0);
        assert_eq!(gate.due(7, start, S(300)), Some(Urgency::FirstResult));
        gate.handed_over(7, start);
        assert_eq!(gate.due(7, start + S(299), S(300)), None);
        assert_eq!(gate.due(8, start + S(1), S(300)), Some(Urgency::Change));
        gate.outdate();
        assert_eq!(gate.due(7, start + S(1), S(300)), Some(Urgency::Change));
        gate.handed_over(7, start);
        assert_eq!(gate.due(7, start + S(1), S(300)), None);
        assert_eq!(gate.due(7, start + S(300), S(300)), Some(Urgency::Heartbeat));
        assert_eq!(gate.due(7, start, S(0)), Some(Urgency::Heartbeat));
    }

    #[test]
    fn what_somebody_else_wrote_is_no_longer_what_was_handed_over() {
        let start = Instant::now();
        let mut gate = WriteGate::new(None, start, S(300), 0);
        gate.handed_over(7, start);
        assert!(!gate.shows(Some(7)));
        assert_eq!(gate.due(7, start, S(300)), None);
        for foreign in [Some(8), None] {
            assert!(gate.shows(foreign));
            assert_eq!(gate.due(7, start, S(300)), Some(Urgency::Change));
            gate.handed_over(7, start);
        }
    }

    #[test]
    fn a_first_write_is_a_change_when_it_is_news() {
        let start = Instant::now();
        let gate = |edit: fn(&mut WriteGate)| {
            let mut gate = WriteGate::new(Some(6), start, S(300), 0);
            edit(&mut gate);
            gate.due(7, start, S(300))
        };
        assert_eq!(gate(|_| {}), Some(Urgency::FirstResult));
        assert_eq!(gate(WriteGate::changed), Some(Urgency::Change));
        assert_eq!(gate(WriteGate::outdate), Some(Urgency::Change));
    }

    #[test]
    fn the_first_heartbeats_after_a_restart_are_spread() {
        let start = Instant::now() + S(10_000);
        let gate = |hash| WriteGate::new(Some(7), start, S(300), hash);
        assert_eq!(gate(0).due(7, start + S(299), S(300)), None);
        assert_eq!(gate(u64::MAX / 2).due(7, start + S(149), S(300)), None);
        let half = gate(u64::MAX / 2).due(7, start + S(151), S(300));
        assert_eq!(half, Some(Urgency::Heartbeat));
    }
}

#[cfg(test)]
mod spread_tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn the_hash_is_the_same_in_every_release() {
        assert_eq!(hash(""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(hash("6f1d5a3e-0b7c-4c3e-9c0a-1d2e3f405162"), 0x9772_928a_b74b_3d2d);
    }

    #[test]
    fn first_probes_are_spread_evenly_over_the_time_that_they_need() {
        // (members, period, time within which all are probed)
        let rows =
            [(100, S(10), S(10)), (100, S(300), S(10)), (10_000, S(300), S(20)), (1, S(2), S(2))];
        for (members, period, within) in rows {
            let mut tenths = [0_u32; 10];
            for n in 0..10_000_u32 {
                let wait = first_probe(hash(&format!("uid-{n}")), members, period);
                assert!(wait < within);
                tenths[(wait.as_nanos() * 10 / within.as_nanos()) as usize] += 1;
            }
            assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
        }
    }
}
