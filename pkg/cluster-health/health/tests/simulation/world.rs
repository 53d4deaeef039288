//! The events, and who handles each.

mod leases;
mod moving;
mod probing;
mod writing;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

use health::{
    Cadence, Damping, EvidenceSource, Moment, Policy, Published, Report, SHARD_TERM, Thresholds,
};
use jiff::Timestamp;

use crate::faults;
use crate::management::{Fate, Management, Mode, Object};
use crate::member_cluster::Behaviour;
use crate::random::Random;
use crate::replica::Replica;

pub(crate) const REPLICAS: usize = 4;
/// The last of them leads replicas that do not share.
pub(crate) const LEADING: usize = REPLICAS - 1;
const CLUSTERS: u64 = 24;
/// All that differ.
pub(crate) const POLICIES: u64 = 30;
pub(crate) const PATROL: u64 = 1000;
const LEASE: u64 = 10_000;
const WRITER: u64 = 500;
/// Longest pause between faults, and now and then a longer one.
const FAULT: u64 = 20_000;
const CALM: u64 = 600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Due { replica: usize, life: u64, uid: u64 },
    ProbeEnds { replica: usize, life: u64, uid: u64, probe: u64 },
    Writes { replica: usize, life: u64 },
    WriteEnds { replica: usize, life: u64, uid: u64 },
    Lease { replica: usize, life: u64 },
    LeaseWaits { replica: usize, life: u64 },
    LeaseArrives { replica: usize, life: u64 },
    LeaseEnds { replica: usize, life: u64 },
    LeasesRead { replica: usize, life: u64, began: u64 },
    Patrol { replica: usize, life: u64 },
    Fault,
}

/// Actual state of a member cluster.
pub(crate) struct Truth {
    pub(crate) behaviour: Behaviour,
    /// Since when, in milliseconds.
    pub(crate) since: u64,
    pub(crate) last_probe: u64,
}

pub(crate) struct World {
    pub(crate) random: Random,
    start: Instant,
    pub(crate) now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    pub(crate) truths: BTreeMap<u64, Truth>,
    /// Numbers of policies that are not those of the uid any more.
    pub(crate) tuned: BTreeMap<u64, u64>,
    pub(crate) next_uid: u64,
    pub(crate) management: Management,
    pub(crate) replicas: Vec<Replica>,
    /// Results of the probes in flight, by number.
    found: BTreeMap<u64, Report>,
    /// Content and fate of the writes in flight.
    written: BTreeMap<(usize, u64, u64), (Option<Says>, Fate)>,
    /// Clusters that are left alone on purpose.
    pub(crate) paused: BTreeSet<u64>,
    /// Fates of leases under way.
    leases: BTreeMap<(usize, u64), (Fate, u64)>,
    pub(crate) faults: bool,
    pub(crate) probes: u64,
    pub(crate) changes: u64,
    pub(crate) handovers: u64,
    /// Changes of the reason alone.
    pub(crate) reasons: u64,
    /// When a replica was last killed, or its lease deleted.
    pub(crate) disturbed_at: u64,
    /// When somebody last deleted a lease.
    pub(crate) deleted_at: Option<u64>,
    /// Leaders that went on without a read of the leases after all other replicas had ended.
    pub(crate) unread: u64,
    /// Leaders that were ended instead: a replica that shares still renewed its lease.
    pub(crate) exceptions: u64,
}

/// Readiness in a status; empty while the cluster is paused.
type Says = Option<Published>;

/// Index into [`POLICIES`].
fn policy(number: u64) -> Policy {
    let seconds = Duration::from_secs;
    let (period, confirm) = if number.is_multiple_of(2) { (10, 10) } else { (60, 5) };
    // Of some the timeout is longer than the period.
    let timeout = if number.is_multiple_of(5) { 15 } else { 3 };
    let cadence = Cadence {
        period: seconds(period),
        timeout: seconds(timeout),
        confirm: seconds(confirm),
        jitter: 0.1,
    };
    Policy {
        cadence,
        thresholds: Thresholds { failure: 3, success: 1 + u32::try_from(number % 3).unwrap() },
        damping: Damping { transitions: 6, window: seconds(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: seconds(300),
        objective: None,
        evidence: EvidenceSource::Both,
    }
}

impl World {
    pub(crate) fn new(random: Random) -> Self {
        let mut world = Self {
            random,
            start: Instant::now(),
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            truths: BTreeMap::new(),
            tuned: BTreeMap::new(),
            next_uid: 0,
            management: Management::new(),
            replicas: Vec::new(),
            found: BTreeMap::new(),
            written: BTreeMap::new(),
            paused: BTreeSet::new(),
            leases: BTreeMap::new(),
            faults: true,
            probes: 0,
            changes: 0,
            handovers: 0,
            reasons: 0,
            disturbed_at: 0,
            deleted_at: None,
            exceptions: 0,
            unread: 0,
        };
        for _ in 0..CLUSTERS {
            world.create();
        }
        for index in 0..REPLICAS {
            world.replicas.push(Replica::new(index, 0, 0, world.start));
            world.boot(index);
        }
        world.at(FAULT, Event::Fault);
        world
    }

    pub(crate) fn policy(&self, uid: u64) -> Policy {
        policy(*self.tuned.get(&uid).unwrap_or(&uid))
    }

    /// Whether a write of this process is under way.
    pub(crate) fn is_writing(&self, replica: usize, life: u64) -> bool {
        let leases = self.leases.contains_key(&(replica, life));
        leases || self.written.keys().any(|(who, when, _)| (*who, *when) == (replica, life))
    }

    /// Whether a new process may be in the place of this one, which has ended. The next leader
    /// leads when nothing of the one before it can be carried out any more, and when the holder of
    /// a lease that somebody deleted has stopped: a leader that finds no lease does not wait for it.
    pub(crate) fn has_ended(&self, replica: usize) -> bool {
        let writes = self.written.keys().any(|(who, ..)| *who == replica);
        let term = u64::try_from(SHARD_TERM.as_millis()).unwrap();
        let hidden = self.deleted_at.is_some_and(|at| self.now < at + term);
        let waits = replica == LEADING && (writes || hidden);
        !self.replicas[replica].alive && !waits
    }

    /// Whether this process is stopped, as by SIGSTOP or with its machine.
    pub(crate) fn stands_still(&self, replica: usize) -> bool {
        self.replicas[replica].still_until > self.now
    }

    pub(crate) fn boot(&mut self, replica: usize) {
        let life = self.replicas[replica].life;
        let soon = self.random.below(1000);
        self.at(soon, Event::Lease { replica, life });
        self.at(soon, Event::Patrol { replica, life });
        self.at(soon, Event::Writes { replica, life });
    }

    /// A new cluster, with its object.
    pub(crate) fn create(&mut self) {
        let uid = self.next_uid;
        self.next_uid += 1;
        let behaviour = Behaviour::Healthy;
        self.truths.insert(uid, Truth { behaviour, since: self.now, last_probe: self.now });
        self.management.objects.insert(uid, Object::default());
        for replica in 0..self.replicas.len() {
            self.share_out(replica);
        }
    }

    /// After `delay` milliseconds.
    pub(crate) fn at(&mut self, delay: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + delay, self.count, event)));
    }

    pub(crate) fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn moment(&self) -> Moment {
        let wall = Timestamp::from_millisecond(i64::try_from(self.now).unwrap()).unwrap();
        Moment { monotonic: self.instant(), wall }
    }

    pub(crate) fn step(&mut self) {
        let Reverse((at, _, event)) = self.events.pop().expect("something always comes");
        self.now = at;
        let (replica, life) = match event {
            Event::Fault => {
                if self.faults {
                    faults::strike(self);
                }
                let calm = if self.random.one_in(20) { CALM } else { 0 };
                let pause = 500 + self.random.below(FAULT) + calm;
                return self.at(pause, Event::Fault);
            }
            Event::Due { replica, life, .. }
            | Event::ProbeEnds { replica, life, .. }
            | Event::Writes { replica, life }
            | Event::WriteEnds { replica, life, .. }
            | Event::Lease { replica, life }
            | Event::LeaseWaits { replica, life }
            | Event::LeaseArrives { replica, life }
            | Event::LeaseEnds { replica, life }
            | Event::LeasesRead { replica, life, .. }
            | Event::Patrol { replica, life } => (replica, life),
        };
        // A write that was sent arrives, whoever is alive.
        if let Event::WriteEnds { uid, .. } = event {
            return self.write_ends(replica, life, uid);
        }
        if let Event::LeaseArrives { .. } = event {
            return self.lease_arrives(replica, life);
        }
        if !self.replicas[replica].alive || self.replicas[replica].life != life {
            return;
        }
        if self.stands_still(replica) {
            let rest = self.replicas[replica].still_until - self.now;
            return self.at(rest, event);
        }
        match event {
            Event::Due { uid, .. } => self.probe_starts(replica, uid),
            Event::ProbeEnds { uid, probe, .. } => self.probe_ends(replica, uid, probe),
            Event::Writes { .. } => self.writes(replica),
            Event::Lease { .. } => self.lease_starts(replica),
            Event::LeaseWaits { .. } => {
                let fate = self.management.fate_of_lease(&mut self.random);
                self.lease_is_sent(replica, fate);
            }
            Event::LeaseEnds { .. } => self.lease_ends(replica),
            Event::LeasesRead { began, .. } => self.leases_read(replica, began),
            Event::Patrol { .. } => self.patrol(replica),
            Event::Fault | Event::WriteEnds { .. } | Event::LeaseArrives { .. } => {}
        }
    }

    /// Lets time pass without further faults until all states are right.
    pub(crate) fn heal_and_settle(&mut self) {
        self.faults = false;
        self.management.mode = Mode::Well;
        self.management.well_since = self.now;
        self.management.allow(self.now, |_| true);
        for uid in self.paused.clone() {
            faults::resume(self, uid);
        }
        for replica in 0..REPLICAS {
            while !self.replicas[replica].alive {
                if !self.has_ended(replica) {
                    self.step();
                }
                faults::restart(self, replica);
            }
            faults::see(self, replica);
            let held: Vec<u64> = self.replicas[replica].held.keys().copied().collect();
            for uid in held {
                faults::wake(self, replica, uid);
            }
        }
        let end = self.now + 600_000;
        while self.now < end {
            self.step();
        }
        self.check_settled();
    }

    pub(crate) fn summary(&self) -> String {
        let (hours, probes) = (self.now / 3_600_000, self.probes);
        format!(
            "{hours} hours, {probes} probes, {} changes, {} handovers, {} leaders alone without a \
             read and {} ended before that",
            self.changes, self.handovers, self.unread, self.exceptions
        )
    }
}
