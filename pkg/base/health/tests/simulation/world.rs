//! The events, and what happens at each.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use health::{
    Arrival, Cadence, Change, Claim, Damping, Endpoints, Member, Moment, Policy, Published, Report,
    Thresholds, Written,
};
use jiff::Timestamp;

use crate::faults;
use crate::management::{Fate, Management, Mode, Object};
use crate::member_cluster::{Behaviour, probe};
use crate::random::Random;
use crate::replica::{Held, Replica};

pub(crate) const REPLICAS: usize = 3;
const CLUSTERS: u64 = 24;
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

/// What a member cluster really is.
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
    pub(crate) next_uid: u64,
    pub(crate) management: Management,
    pub(crate) replicas: Vec<Replica>,
    /// What probes under way have found, by number.
    found: BTreeMap<u64, Report>,
    /// What writes under way carry, and their fate.
    written: BTreeMap<(usize, u64, u64), (Option<Published>, Fate)>,
    /// Fates of leases under way.
    leases: BTreeMap<(usize, u64), (Fate, u64)>,
    pub(crate) faults: bool,
    pub(crate) probes: u64,
    pub(crate) changes: u64,
    pub(crate) handovers: u64,
    /// Changes of the reason alone.
    pub(crate) reasons: u64,
    /// When a replica was last killed.
    pub(crate) killed_at: u64,
}

pub(crate) fn policy(uid: u64) -> Policy {
    let seconds = Duration::from_secs;
    let (period, confirm) = if uid.is_multiple_of(2) { (10, 10) } else { (60, 5) };
    // Of some the timeout is longer than the period.
    let timeout = if uid.is_multiple_of(5) { 15 } else { 3 };
    let cadence = Cadence {
        period: seconds(period),
        timeout: seconds(timeout),
        confirm: seconds(confirm),
        jitter: 0.1,
    };
    Policy {
        cadence,
        thresholds: Thresholds { failure: 3, success: 1 + u32::try_from(uid % 3).unwrap() },
        damping: Damping { transitions: 6, window: seconds(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: seconds(300),
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
            next_uid: 0,
            management: Management::new(),
            replicas: Vec::new(),
            found: BTreeMap::new(),
            written: BTreeMap::new(),
            leases: BTreeMap::new(),
            faults: true,
            probes: 0,
            changes: 0,
            handovers: 0,
            reasons: 0,
            killed_at: 0,
        };
        for _ in 0..CLUSTERS {
            world.create();
        }
        for index in 0..REPLICAS {
            world.replicas.push(Replica::new(index, 0, 0));
            world.boot(index);
        }
        world.at(FAULT, Event::Fault);
        world
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
        match event {
            Event::Due { uid, .. } => self.probe_starts(replica, uid),
            Event::ProbeEnds { uid, probe, .. } => self.probe_ends(replica, uid, probe),
            Event::Writes { .. } => self.writes(replica),
            Event::Lease { .. } => self.lease_starts(replica),
            Event::LeaseWaits { .. } => {
                let fate = self.management.fate(&mut self.random);
                self.lease_is_sent(replica, fate);
            }
            Event::LeaseEnds { .. } => self.lease_ends(replica),
            Event::LeasesRead { began, .. } => self.leases_read(replica, began),
            Event::Patrol { .. } => self.patrol(replica),
            Event::Fault | Event::WriteEnds { .. } | Event::LeaseArrives { .. } => {}
        }
    }

    /// Takes over and gives up clusters, as the shards say.
    pub(crate) fn share_out(&mut self, replica: usize) {
        let now = self.instant();
        let uids: Vec<u64> = self.truths.keys().copied().collect();
        let this = &mut self.replicas[replica];
        let keep: Vec<u64> = this.held.keys().copied().collect();
        for uid in keep {
            if !self.truths.contains_key(&uid) || !this.may_probe(uid, now) {
                this.held.remove(&uid);
                this.queue.forget(&uid);
            }
        }
        for uid in uids {
            let this = &self.replicas[replica];
            let free = !this.held.contains_key(&uid) && !this.queue.is_writing(&uid);
            if free && this.may_probe(uid, now) {
                self.take_over(replica, uid);
            }
        }
    }

    fn take_over(&mut self, replica: usize, uid: u64) {
        let life = self.replicas[replica].life;
        let ending = self.written.contains_key(&(replica, life, uid));
        assert!(!ending, "rule:own-writes-end-before-a-takeover: {uid} at {replica}");
        self.handovers += 1;
        let published = self.management.objects[&uid].status.clone();
        let arrival = Arrival {
            hash: health::hash(&uid.to_string()),
            written: published.as_ref().map(fingerprint),
            published,
            together: 0,
            has_waited: true,
        };
        let member = Member::new(arrival, &policy(uid), self.instant());
        let ready = member.published().map(|published| published.ready.status);
        let told = self.management.objects[&uid].status.as_ref().map(|status| status.ready.status);
        assert_eq!(ready, told, "rule:a-restart-changes-nothing: {uid}");
        let held = Held {
            member,
            since: self.now,
            probe: None,
            last_start: None,
            last_end: None,
            results: Vec::new(),
            hangs_until: 0,
            calm_since: self.now,
            changed_at: self.now,
            retargeted: false,
            ready,
        };
        self.replicas[replica].held.insert(uid, held);
        self.wait_for_due(replica, uid);
    }

    /// The task sleeps until the next probe is due.
    pub(crate) fn wait_for_due(&mut self, replica: usize, uid: u64) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        let Some(held) = self.replicas[replica].held.get(&uid) else { return };
        if let Some(due) = held.member.due() {
            let wait = u64::try_from(due.saturating_duration_since(now).as_nanos()).unwrap();
            self.at(wait.div_ceil(1_000_000), Event::Due { replica, life, uid });
        }
    }

    fn probe_starts(&mut self, replica: usize, uid: u64) {
        let (now, moment) = (self.instant(), self.moment());
        let may = self.replicas[replica].may_probe(uid, now);
        let Some(held) = self.replicas[replica].held.get_mut(&uid) else { return };
        if !may || held.hangs_until > self.now || held.member.due().is_none_or(|due| due > now) {
            return;
        }
        held.member.begin(now);
        self.count += 1;
        let (number, life) = (self.count, self.replicas[replica].life);
        self.check_start(replica, uid);
        self.probes += 1;
        let truth = self.truths.get_mut(&uid).expect("a held cluster is there");
        truth.last_probe = self.now;
        let timeout = policy(uid).cadence.timeout;
        let (conclusion, took) = probe(truth.behaviour, timeout, now, &mut self.random);
        assert!(took <= timeout, "rule:retries-stay-inside-the-probe: a probe took {took:?}");
        let report = Report {
            finding: conclusion.finding,
            started: moment,
            took,
            attempts: conclusion.attempts,
            endpoints: Endpoints::default(),
            detail: None,
        };
        self.found.insert(number, report);
        let held = self.replicas[replica].held.get_mut(&uid).expect("it is still held");
        held.probe = Some(number);
        held.last_start = Some(self.now);
        let takes = u64::try_from(took.as_millis()).unwrap();
        self.at(takes, Event::ProbeEnds { replica, life, uid, probe: number });
    }

    fn probe_ends(&mut self, replica: usize, uid: u64, number: u64) {
        let Some(report) = self.found.remove(&number) else { return };
        let (now, draw) = (self.instant(), self.random.share());
        let Some(held) = self.replicas[replica].held.get_mut(&uid) else { return };
        if held.probe != Some(number) || held.hangs_until > self.now {
            return;
        }
        held.probe = None;
        held.last_end = Some(self.now);
        held.results.push(report.finding);
        let effect = held.member.complete(&report, &policy(uid), now, draw);
        self.reasons += u64::from(effect.change == Change::Reason);
        if effect.change != Change::Nothing {
            held.changed_at = self.now;
        }
        self.check_target(replica, uid, report.finding);
        self.check_effect(replica, uid, effect.change);
        self.consider(replica, uid);
        self.wait_for_due(replica, uid);
    }

    /// Hands what is published to the queue if it is worth a write.
    pub(crate) fn consider(&mut self, replica: usize, uid: u64) {
        let now = self.instant();
        let this = &mut self.replicas[replica];
        let Some(held) = this.held.get_mut(&uid) else { return };
        let Some(published) = held.member.published() else { return };
        let fingerprint = fingerprint(published);
        if let Some(urgency) = held.member.write_due(fingerprint, &policy(uid), now) {
            held.member.handed_over(fingerprint, now);
            this.queue.submit(uid, (), urgency, now);
        }
    }

    fn writes(&mut self, replica: usize) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        loop {
            let this = &mut self.replicas[replica];
            if this.queue.next_at(now).is_none_or(|at| at > now) || this.pace.take(now).is_err() {
                break;
            }
            let Some((uid, ())) = this.queue.next(now) else { break };
            let status = this.held.get(&uid).and_then(|held| held.member.published().cloned());
            let fate = self.management.fate_of_write(uid, &mut self.random);
            self.written.insert((replica, life, uid), (status, fate));
            let latency = self.management.latency(&mut self.random);
            self.at(latency, Event::WriteEnds { replica, life, uid });
        }
        self.at(WRITER, Event::Writes { replica, life });
    }

    fn write_ends(&mut self, replica: usize, life: u64, uid: u64) {
        let Some((status, fate)) = self.written.remove(&(replica, life, uid)) else { return };
        let object = self.management.objects.get_mut(&uid);
        let written = match (object, fate) {
            (None, _) => Written::Gone,
            (Some(_), Fate::Refused) => Written::Failed,
            (Some(_), Fate::Conflict) => Written::Conflict,
            (Some(object), Fate::Done | Fate::Lost) => {
                // A replica that gave the cluster up meanwhile has nothing to say any more.
                if status.is_some() {
                    object.status = status;
                    self.management.writes += 1;
                }
                if fate == Fate::Done { Written::Done } else { Written::Failed }
            }
        };
        let (now, draw) = (self.instant(), self.random.share());
        let this = &mut self.replicas[replica];
        if this.life == life {
            this.queue.finish(&uid, written, now, draw);
        }
    }

    fn lease_starts(&mut self, replica: usize) {
        let (now, life) = (self.instant(), self.replicas[replica].life);
        let fate = self.management.fate(&mut self.random);
        let claims = self.management.claims();
        let this = &mut self.replicas[replica];
        if fate == Fate::Done {
            this.shards.observe(claims, now, now);
        }
        let view = this.shards.desired();
        this.shards.publishing(view);
        self.share_out(replica);
        self.lease_is_sent(replica, fate);
        self.at(LEASE, Event::Lease { replica, life });
    }

    /// As soon as no write about a cluster that was given up can be carried out any more.
    fn lease_is_sent(&mut self, replica: usize, fate: Fate) {
        let life = self.replicas[replica].life;
        let held = &self.replicas[replica].held;
        let of_given_up = |(who, when, uid): &(usize, u64, u64)| {
            (*who, *when) == (replica, life) && !held.contains_key(uid)
        };
        if self.written.keys().any(of_given_up) {
            return self.at(WRITER, Event::LeaseWaits { replica, life });
        }
        let latency = self.management.latency(&mut self.random);
        self.leases.insert((replica, life), (fate, self.now));
        let on_the_way = self.random.below(latency);
        self.at(on_the_way, Event::LeaseArrives { replica, life });
        self.at(latency, Event::LeaseEnds { replica, life });
    }

    fn lease_arrives(&mut self, replica: usize, life: u64) {
        let Some((fate, _)) = self.leases.get(&(replica, life)) else { return };
        let this = &mut self.replicas[replica];
        if this.life != life || !matches!(fate, Fate::Done | Fate::Lost) {
            return;
        }
        if let Some(view) = this.shards.pending().cloned() {
            this.renewals += 1;
            let claim = Claim { replica: this.name.clone(), renewal: this.renewals, view };
            self.management.renew((replica, life), claim, self.now);
        }
    }

    fn lease_ends(&mut self, replica: usize) {
        let life = self.replicas[replica].life;
        let Some((fate, sent)) = self.leases.remove(&(replica, life)) else { return };
        if fate == Fate::Done {
            let (now, sent) = (self.instant(), self.start + Duration::from_millis(sent));
            self.replicas[replica].shards.published(sent, now);
            self.share_out(replica);
            let latency = self.management.latency(&mut self.random);
            self.at(latency, Event::LeasesRead { replica, life, began: self.now });
        }
    }

    /// What a read shows is what there was at some moment since it began.
    fn leases_read(&mut self, replica: usize, began: u64) {
        if self.management.fate(&mut self.random) == Fate::Done {
            let claims = self.management.claims();
            let (now, began) = (self.instant(), self.start + Duration::from_millis(began));
            self.replicas[replica].shards.observe(claims, began, now);
            self.share_out(replica);
        }
    }

    fn patrol(&mut self, replica: usize) {
        let (now, moment) = (self.instant(), self.moment());
        self.share_out(replica);
        let held: Vec<u64> = self.replicas[replica].held.keys().copied().collect();
        for uid in held {
            let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
            if held.member.stuck_at(&policy(uid)) <= now && held.hangs_until != u64::MAX {
                held.member.restart(now);
                held.probe = None;
                held.hangs_until = 0;
                held.calm_since = self.now;
                held.last_start = None;
                self.wait_for_due(replica, uid);
            }
            let held = self.replicas[replica].held.get_mut(&uid).expect("it is held");
            if let Some(effect) = held.member.sweep(&policy(uid), moment) {
                held.results.clear();
                self.check_sweep(replica, uid, effect.change);
                self.consider(replica, uid);
            }
            self.check_held(replica, uid);
        }
        self.check_handover();
        let life = self.replicas[replica].life;
        self.at(PATROL, Event::Patrol { replica, life });
    }

    /// No further faults, and time for everything to come right.
    pub(crate) fn heal_and_settle(&mut self) {
        self.faults = false;
        self.management.mode = Mode::Well;
        self.management.well_since = self.now;
        self.management.allow(self.now, |_| true);
        for replica in 0..REPLICAS {
            if !self.replicas[replica].alive {
                faults::restart(self, replica);
            }
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
            "{hours} hours, {probes} probes, {} changes, {} handovers",
            self.changes, self.handovers
        )
    }
}

/// Everything that matters in a status.
pub(crate) fn fingerprint(published: &Published) -> u64 {
    let mut hasher = DefaultHasher::new();
    published.standing.hash(&mut hasher);
    hasher.finish()
}
