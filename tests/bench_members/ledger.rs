//! When each member was probed.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The probes of all members, as they see them arrive.
pub(crate) struct Ledger(Vec<Mutex<Member>>);

#[derive(Clone, Copy, Default)]
struct Member {
    last: Option<Instant>,
    /// The first probe after [`Ledger::mark`].
    marked: Option<Instant>,
    longest: Duration,
    probes: u64,
    /// Probes that are being answered.
    under_way: u32,
    /// Process that sent the last probe.
    prober: Option<u32>,
    /// Probes that began while another was under way.
    overlaps: u32,
    /// Number of times that another process continued the probes.
    moves: u32,
}

/// A probe that is being answered, until this is dropped.
pub(crate) struct Answering<'a>(Option<&'a Mutex<Member>>);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.lock().under_way -= 1;
        }
    }
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
        entry.marked.get_or_insert(now);
        entry.probes += 1;
    }

    /// From now on the first probe of each member is noted.
    pub(crate) fn mark(&self) {
        for entry in &self.0 {
            entry.lock().marked = None;
        }
    }

    /// The first probe of a member since the mark.
    pub(crate) fn first_since_mark(&self, member: u32) -> Option<Instant> {
        self.0.get(member as usize)?.lock().marked
    }

    /// Forgets all probes.
    pub(crate) fn forget(&self) {
        for entry in &self.0 {
            *entry.lock() = Member::default();
        }
    }

    /// A probe of this member by this process arrives, and is under way until what is returned is
    /// dropped.
    pub(crate) fn answer(&self, member: u32, prober: Option<u32>) -> Answering<'_> {
        self.note(member);
        let Some(entry) = self.0.get(member as usize) else { return Answering(None) };
        let mut now = entry.lock();
        now.overlaps += u32::from(now.under_way > 0);
        now.under_way += 1;
        if let Some(prober) = prober {
            let before = now.prober.replace(prober);
            now.moves += u32::from(before.is_some_and(|before| before != prober));
        }
        Answering(Some(entry))
    }

    /// Forgets all waiting times, and which process probed which member.
    pub(crate) fn begin(&self) {
        for entry in &self.0 {
            let mut entry = entry.lock();
            (entry.longest, entry.overlaps, entry.moves) = (Duration::ZERO, 0, 0);
        }
    }

    /// How many probes began while another one of the same member was under way.
    pub(crate) fn overlaps(&self) -> u32 {
        self.0.iter().map(|entry| entry.lock().overlaps).sum()
    }

    /// How often members moved from one process to another: all of them, and the one that did most.
    pub(crate) fn moves(&self) -> (u32, u32) {
        let moves = || self.0.iter().map(|entry| entry.lock().moves);
        (moves().sum(), moves().max().unwrap_or_default())
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
