//! When each member was probed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The probes of all members, as they see them arrive.
pub(crate) struct Ledger(Vec<Mutex<Member>>);

#[derive(Clone, Copy, Default)]
struct Member {
    last: Option<Instant>,
    longest: Duration,
    probes: u64,
}

impl Ledger {
    pub(crate) fn new(members: u32) -> Self {
        Self((0..members).map(|_| Mutex::default()).collect())
    }

    /// A probe of this member arrives.
    pub(crate) fn note(&self, member: u32) {
        let Some(entry) = self.0.get(member as usize) else { return };
        let (mut entry, now) = (entry.lock(), Instant::now());
        if let Some(last) = entry.last.replace(now) {
            entry.longest = entry.longest.max(now - last);
        }
        entry.probes += 1;
    }

    /// Forgets how long anybody waited so far.
    pub(crate) fn begin(&self) {
        for entry in &self.0 {
            entry.lock().longest = Duration::ZERO;
        }
    }

    /// How many of the first members were probed at all.
    pub(crate) fn reached(&self, members: u32) -> usize {
        self.0.iter().take(members as usize).filter(|entry| entry.lock().probes > 0).count()
    }

    /// The longest waits between two probes, and since the last one, of these members, sorted.
    pub(crate) fn waits(&self, members: std::ops::Range<u32>) -> Vec<Duration> {
        let now = Instant::now();
        let wait = |entry: &Mutex<Member>| {
            let entry = entry.lock();
            entry.longest.max(entry.last.map_or(Duration::MAX, |last| now - last))
        };
        let range = members.start as usize..members.end as usize;
        let mut waits: Vec<_> = self.0[range].iter().map(wait).collect();
        waits.sort_unstable();
        waits
    }
}
