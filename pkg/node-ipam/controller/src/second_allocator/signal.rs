//! Evidence of a second allocator, without I/O: the [`Suspect`] that watch and workers signal,
//! what follows from it ([`OnSecondAllocator`]), and the [`Hold`] on all allocations.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_api::Node;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::known::other_setter;
use crate::Surveyed;

/// How long nothing is given out after a second allocator was found.
const PAUSE: Duration = Duration::from_secs(30);
/// Two Nodes of an unknown program within this time are no accident.
const UNKNOWN_WITHIN: Duration = Duration::from_secs(600);
/// Longer than any process runs.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Value of `--on-second-allocator`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnSecondAllocator {
    /// Report it only.
    Warn,
    /// Give out nothing for 30 seconds, each time.
    #[default]
    Pause,
    /// Give out nothing until this process ends.
    Stop,
}

impl OnSecondAllocator {
    /// The values of the flag.
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("warn", Self::Warn), ("pause", Self::Pause), ("stop", Self::Stop)];

    /// How long nothing is given out, also in words.
    pub(super) fn hold(self) -> Option<(Duration, &'static str)> {
        match self {
            Self::Warn => None,
            Self::Pause => Some((PAUSE, "for 30 seconds")),
            Self::Stop => Some((FOR_EVER, "until it is restarted")),
        }
    }
}

/// Until when no pod CIDR is given out. Clones share the state, and it outlives a run of
/// the controller: after a restart in the same process the hold still applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold(Arc<Mutex<Option<Instant>>>);

impl Hold {
    /// Holds until that moment, in place of what was set before.
    pub(crate) fn set(&self, until: Instant) {
        *self.0.lock() = Some(until);
    }

    /// For how long from now on nothing is given out.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = (*self.0.lock())?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

/// Evidence that the pod CIDRs of a Node were set after the start of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The Node was seen without pod CIDRs.
    SawEmpty,
    /// The Node was first seen after the first list was complete.
    SeenLate,
}

/// A Node whose pod CIDRs no PATCH of this process can have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// Name of the Node.
    pub(crate) name: Arc<str>,
    /// UID of the Node.
    pub(crate) uid: Arc<str>,
    /// Why a second allocator is likely.
    pub(crate) evidence: Evidence,
}

impl Suspect {
    /// A suspect from the copy in the cache.
    pub(crate) fn new(node: &Node, evidence: Evidence) -> Self {
        Self { name: Arc::clone(&node.name), uid: Arc::clone(&node.uid), evidence }
    }

    /// The field manager of another program that gave the Node its pod CIDRs after `begun`, by the API
    /// server's clock; `None` if a read of the Node does not say so. The time of a managed field is no
    /// evidence: it moves with every field of the same manager, such as a taint.
    pub(crate) fn confirmed_by<'a>(&self, read: &'a Surveyed, begun: Timestamp) -> Option<&'a str> {
        let is_after = match self.evidence {
            Evidence::SawEmpty => true,
            Evidence::SeenLate => read.created.is_some_and(|created| created >= begun),
        };
        if is_after && *read.uid == *self.uid { other_setter(read) } else { None }
    }
}

/// The last Node that a program wrote which is not known to assign pod CIDRs. People write Nodes, too:
/// one Node is no allocator, two within [`UNKNOWN_WITHIN`] are.
#[derive(Debug, Default)]
pub(super) struct LastUnknown(Mutex<Option<(Instant, Arc<str>)>>);

impl LastUnknown {
    /// Notes the Node with this UID; true when it is the second one.
    pub(super) fn is_second(&self, uid: &Arc<str>, now: Instant) -> bool {
        let before = self.0.lock().replace((now, Arc::clone(uid)));
        before.is_some_and(|(at, other)| {
            other != *uid && now.saturating_duration_since(at) < UNKNOWN_WITHIN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOCK: &str = "kube-controller-manager";

    /// 10,000 taints that stock writes are no alarm, however late they are.
    #[test]
    fn a_taint_that_stock_writes_does_not_make_its_old_pod_cidr_a_new_one() {
        let begun: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let suspect = Suspect { name: "a".into(), uid: "u".into(), evidence: Evidence::SeenLate };
        let read = |created: &str, manager: &str, taint: Timestamp| Surveyed {
            uid: "u".to_owned(),
            created: created.parse().ok(),
            setters: vec![(taint, manager.to_owned())],
            ..Surveyed::default()
        };
        for second in 0..10_000 {
            let taint = begun + jiff::SignedDuration::from_secs(second);
            assert_eq!(
                suspect.confirmed_by(&read("2026-01-01T00:00:00Z", STOCK, taint), begun),
                None
            );
        }
        let new = "2026-01-02T00:00:00Z";
        for manager in [STOCK, "kubectl"] {
            let made_after = read(new, manager, begun);
            assert_eq!(suspect.confirmed_by(&made_after, begun), Some(manager));
        }
        let ours = read(new, "infra-controller-manager", begun);
        assert_eq!(suspect.confirmed_by(&ours, begun), None, "a leader before this one");
        let undated = read("", STOCK, begun);
        assert_eq!(suspect.confirmed_by(&undated, begun), None, "its creation time is unknown");
        let saw_empty = Suspect { evidence: Evidence::SawEmpty, ..suspect };
        let old = read("2026-01-01T00:00:00Z", STOCK, Timestamp::MIN);
        assert_eq!(saw_empty.confirmed_by(&old, begun), Some(STOCK));
        let next = Suspect { uid: "of the next".into(), ..saw_empty };
        assert_eq!(next.confirmed_by(&old, begun), None, "it is another Node by now");
    }

    #[tokio::test(start_paused = true)]
    async fn two_nodes_of_an_unknown_program_count_within_ten_minutes() {
        let (unknown, begun) = (LastUnknown::default(), Instant::now());
        let at = |second: u64| begun + Duration::from_secs(second);
        for (uid, second, is_second) in [
            ("a", 0, false),
            ("a", 10, false),
            ("b", 609, true),
            ("c", 1_209, false),
            ("d", 1_210, true),
        ] {
            assert_eq!(unknown.is_second(&uid.into(), at(second)), is_second, "{uid} {second}");
        }
    }
}
