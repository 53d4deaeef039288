//! A member over 28 simulated days: its process is killed and replaced, and the member moves between
//! replicas whose clocks differ by hours. What its object keeps agrees with how it was.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the summary of a run")]

#[path = "simulation/random.rs"]
#[allow(dead_code, reason = "other simulations use all of it")]
mod random;

use std::time::{Duration, Instant};

use health::{
    Arrival, Cadence, Code, Damping, EvidenceSource, Finding, Health, Member, Moment, Objective,
    Policy, ProbePath, Published, Record, Report, Sums, Thresholds, Urgency,
};
use jiff::Timestamp;

use random::Random;

const S: fn(u64) -> Duration = Duration::from_secs;
const DAYS: u64 = 28 * 86_400;
const RESTARTS: usize = 200;
const MOVES: usize = 50;
/// 0.05 points.
const POINTS: f64 = 0.000_5;
/// The clocks of the replicas, in seconds.
const SKEWS: [i64; 4] = [0, -3 * 3600, 5 * 3600, -40];

fn policy() -> Policy {
    Policy {
        cadence: Cadence { period: S(10), timeout: S(3), confirm: S(10), jitter: 0.1 },
        thresholds: Thresholds { failure: 3, success: 1 },
        damping: Damping { transitions: 6, window: S(600), min_success: 3 },
        stale_after: Duration::ZERO,
        inherited_after: Duration::ZERO,
        heartbeat: S(300),
        objective: Objective::parse("99.9").unwrap(),
        evidence: EvidenceSource::Both,
    }
}

/// The object of the member, as the last write left it.
#[derive(Default)]
struct Object {
    published: Option<Published>,
    record: Option<String>,
    writes: usize,
}

struct World {
    random: Random,
    start: Instant,
    /// Seconds since the start.
    now: u64,
    skew: i64,
    /// When the member is not well, in order.
    outages: Vec<(u64, u64)>,
    object: Object,
    member: Member,
    next_probe: u64,
    keeps_records: bool,
}

impl World {
    fn new(seed: u64, keeps_records: bool) -> Self {
        let (mut random, start) = (Random::new(seed), Instant::now());
        let outages = outages(&mut random);
        let member = Member::new(Arrival::default(), &policy(), start);
        let object = Object::default();
        Self {
            random,
            start,
            now: 0,
            skew: 0,
            outages,
            object,
            member,
            next_probe: 0,
            keeps_records,
        }
    }

    fn moment(&self) -> Moment {
        let began: Timestamp = "2026-11-24T07:00:00Z".parse().unwrap();
        let wall = began + jiff::SignedDuration::from_secs(self.now.cast_signed() + self.skew);
        Moment { monotonic: self.start + S(self.now), wall }
    }

    fn is_bad(&self) -> bool {
        self.outages.iter().any(|&(from, to)| (from..to).contains(&self.now))
    }

    fn probe(&mut self) {
        let path = ProbePath::Readyz;
        let bad = if self.random.one_in(3) { Code::Timeout } else { Code::Http(500) };
        let finding = if self.is_bad() { Finding::failed(bad, path) } else { Finding::ok(path) };
        let report = Report::new(finding, self.moment());
        let now = self.moment().monotonic;
        self.member.begin(now);
        let draw = self.random.share();
        self.member.complete(&report, &policy(), now, draw);
        let due = self.member.due().unwrap() - self.start;
        self.next_probe = due.as_secs().max(self.now + 1);
        self.write();
    }

    /// Writes the status when the member says that it is worth it: the record alone never is.
    fn write(&mut self) {
        let Some(published) = self.member.published().cloned() else { return };
        let (fingerprint, now) = (fingerprint(published.health), self.moment().monotonic);
        let Some(_) = self.member.write_due(fingerprint, &policy(), now) else { return };
        self.member.handed_over(fingerprint, now);
        self.object.writes += 1;
        self.object.published = Some(published);
        if self.keeps_records {
            self.object.record = self.member.record().map(Record::encode);
        }
    }

    /// Another process takes the member over, after `gap` seconds without one.
    fn take_over(&mut self, gap: u64) {
        self.now += gap;
        let wall = self.moment().wall;
        let published = self
            .object
            .published
            .as_ref()
            .map(|it| Published::seed(it.health, it.ready.since, it.offline.since, it.probed));
        let record = self.object.record.as_deref().map(|text| Record::decode(text, wall).unwrap());
        let arrival = Arrival {
            written: published.as_ref().map(|it| fingerprint(it.health)),
            published,
            record,
            ..Arrival::default()
        };
        self.member = Member::new(arrival, &policy(), self.moment().monotonic);
        self.next_probe = self.now;
    }

    /// Lives through 28 days; the sums of its record at the end.
    fn live(&mut self) -> Sums {
        let mut events: Vec<_> =
            (0..RESTARTS + MOVES).map(|n| (self.random.below(DAYS), n)).collect();
        events.sort_unstable();
        for (at, number) in events {
            self.probe_until(at);
            if number < RESTARTS {
                // Killed: what it did not write is lost.
                let gap = 5 + self.random.below(60);
                self.take_over(gap);
            } else {
                self.skew = self.random.pick(&SKEWS);
                self.take_over(1);
            }
        }
        self.probe_until(DAYS);
        self.member.sums(self.moment().wall)
    }

    /// The ratio of the 28 days before the present by the clock of the replica.
    #[allow(clippy::cast_precision_loss, reason = "a month has few seconds")]
    fn truth(&self) -> f64 {
        let first = u64::try_from(self.skew).unwrap_or_default();
        let bad = self.outages.iter().map(|&(from, to)| {
            let [from, to] = [from, to].map(|at| at.clamp(first, DAYS));
            to - from
        });
        1.0 - bad.sum::<u64>() as f64 / (DAYS - first) as f64
    }

    fn probe_until(&mut self, at: u64) {
        while self.next_probe < at {
            self.now = self.next_probe;
            self.probe();
        }
        self.now = self.now.max(at);
    }
}

fn fingerprint(health: Health) -> u64 {
    health::hash(health.label())
}

/// Outages of 5 s to 40 min: about one in ten hours.
fn outages(random: &mut Random) -> Vec<(u64, u64)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < DAYS {
        at += random.below(72_000);
        let long = if random.one_in(4) { 2400 } else { 90 };
        let end = at + 5 + random.below(long);
        all.push((at, end));
        at = end;
    }
    all
}

#[test]
fn after_28_days_with_restarts_moves_and_skewed_clocks_the_ratio_is_right() {
    for seed in 1..=6 {
        let mut world = World::new(seed, true);
        let sums = world.live();
        let truth = world.truth();
        let found = sums.ratio().unwrap();
        println!("seed {seed}: {truth:.6} was, {found:.6} is kept, of {:?}", sums.observed);
        assert!((found - truth).abs() < POINTS, "seed {seed}: {found} is not {truth}");
        assert!(sums.observed > S(DAYS) * 9 / 10, "seed {seed}: {sums:?}");
    }
}

#[test]
fn a_record_costs_no_write() {
    let writes = [true, false].map(|keeps_records| {
        let mut world = World::new(7, keeps_records);
        world.live();
        assert_eq!(world.object.record.is_some(), keeps_records);
        world.object.writes
    });
    assert_eq!(writes[0], writes[1]);
    let heartbeats = usize::try_from(DAYS / 300).unwrap();
    assert!(writes[0] > heartbeats * 9 / 10, "{writes:?}");
}

#[test]
fn a_heartbeat_is_due_for_a_member_whose_record_alone_changed() {
    let mut world = World::new(3, true);
    world.outages.clear();
    world.probe_until(1);
    let fingerprint = fingerprint(Health::Ready);
    let mut due = Vec::new();
    while world.now < 900 {
        world.now = world.next_probe;
        let before = world.object.writes;
        world.probe();
        if world.object.writes > before {
            due.push(world.now);
        }
        let now = world.moment().monotonic;
        assert_ne!(world.member.write_due(fingerprint, &policy(), now), Some(Urgency::Change));
    }
    assert!((2..=3).contains(&due.len()), "{due:?}");
}
