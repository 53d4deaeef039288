//! A fleet of members that one guarded process probes over a network that is cut now and then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::{Duration, Instant};

use health::{
    Arrival, Cadence, Code, Damping, Endpoints, Evidence, EvidenceSource, Finding, Guard,
    GuardPolicy, GuardState, Health, Moment, Policy, ProbePath, Report, Round, Thresholds,
};
use jiff::Timestamp;

use crate::network::Network;
use crate::random::Random;

pub(crate) const POLICY: Policy = Policy {
    cadence: Cadence {
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(3),
        confirm: Duration::from_secs(10),
        jitter: 0.1,
    },
    thresholds: Thresholds { failure: 3, success: 1 },
    damping: Damping { transitions: 6, window: Duration::from_secs(600), min_success: 3 },
    stale_after: Duration::ZERO,
    inherited_after: Duration::ZERO,
    heartbeat: Duration::from_secs(300),
    objective: None,
    evidence: EvidenceSource::Both,
};

const GUARD: GuardPolicy = GuardPolicy {
    ratio: 0.5,
    min: 5,
    interval: Duration::from_secs(5),
    timeout: Duration::from_secs(2),
    hold: Duration::from_secs(30),
};
/// In milliseconds.
const TIMEOUT: u64 = 3000;
const CONNECTION_MAX_AGE: u64 = 300_000;
const SPACING: u64 = 1000;

/// One member, as the process knows it and as it is.
pub(crate) struct Member {
    known: health::Member,
    hash: u64,
    /// Since when it is down, in milliseconds.
    pub(crate) down_since: Option<u64>,
    /// Until when the connection to it is kept.
    connection: Option<u64>,
    /// When its next probe opens a new connection.
    is_sampled: bool,
    /// When it was published as unreachable.
    pub(crate) told_at: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(usize),
    End(usize, u64),
    Round,
    RoundEnds,
}

pub(crate) struct Fleet {
    pub(crate) now: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) network: Network,
    /// Numbers of reference endpoints.
    pub(crate) references: usize,
    pub(crate) random: Random,
    guard: Guard,
    start: Instant,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    /// Results of probes under way, by member.
    reports: Vec<Option<(u64, Report)>>,
    round: Option<Round>,
    last_round: u64,
    next_round: u64,
    /// Publications that should not have been.
    pub(crate) false_alarms: usize,
    pub(crate) probes: u64,
    pub(crate) states: [u64; 4],
}

impl Fleet {
    pub(crate) fn new(members: usize, references: usize, seed: u64) -> Self {
        let start = Instant::now() + Duration::from_secs(1_000_000);
        let mut fleet = Self {
            now: 0,
            members: Vec::new(),
            network: Network::default(),
            references,
            random: Random::new(seed),
            guard: Guard::new(GUARD, start),
            start,
            events: BinaryHeap::new(),
            count: 0,
            reports: Vec::new(),
            round: None,
            last_round: 0,
            next_round: 0,
            false_alarms: 0,
            probes: 0,
            states: [0; 4],
        };
        for number in 0..members {
            let known = fleet.arrives(number, members, None);
            fleet.members.push(Member {
                known,
                hash: hash_of(number),
                down_since: None,
                connection: None,
                is_sampled: false,
                told_at: None,
            });
            fleet.reports.push(None);
            fleet.wait(number);
        }
        fleet.at(0, Event::Round);
        fleet
    }

    fn arrives(
        &self,
        number: usize,
        together: usize,
        published: Option<health::Published>,
    ) -> health::Member {
        let arrival = Arrival {
            hash: hash_of(number),
            published,
            together,
            guarded: true,
            ..Arrival::default()
        };
        health::Member::new(arrival, &POLICY, self.instant())
    }

    /// The process is replaced by another one, which reads from the objects what was published.
    pub(crate) fn restart(&mut self) {
        self.guard = Guard::new(GUARD, self.instant());
        self.events.clear();
        self.round = None;
        self.next_round = self.now;
        self.take_over(0..self.members.len());
        self.at(0, Event::Round);
    }

    /// Members come from another replica, or from the process before.
    pub(crate) fn take_over(&mut self, numbers: Range<usize>) {
        let together = numbers.len();
        for number in numbers {
            let published = self.members[number].known.published().cloned();
            let published = published.map(|it| {
                health::Published::seed(it.health, it.ready.since, it.offline.since, it.probed)
            });
            self.reports[number] = None;
            self.members[number].connection = None;
            self.members[number].known = self.arrives(number, together, published);
            self.wait(number);
        }
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn moment(&self) -> Moment {
        let wall = Timestamp::from_millisecond(i64::try_from(self.now).unwrap()).unwrap();
        Moment { monotonic: self.instant(), wall }
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + delay, self.count, event)));
    }

    fn wait(&mut self, number: usize) {
        if let Some(due) = self.members[number].known.due() {
            let wait = due.saturating_duration_since(self.instant()).as_nanos().div_ceil(1_000_000);
            self.at(u64::try_from(wait).unwrap(), Event::Start(number));
        }
    }

    /// Runs for so many seconds.
    pub(crate) fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * 1000;
        while let Some(Reverse((at, _, _))) = self.events.peek()
            && *at <= end
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.now = at;
            match event {
                Event::Start(number) => self.probe_starts(number),
                Event::End(number, probe) => self.probe_ends(number, probe),
                Event::Round => self.round_begins(),
                Event::RoundEnds => self.round_ends(),
            }
        }
        self.now = end;
    }

    fn probe_starts(&mut self, number: usize) {
        let (instant, moment) = (self.instant(), self.moment());
        let member = &mut self.members[number];
        if member.known.due().is_none_or(|due| due > instant) {
            return;
        }
        member.known.begin(instant);
        self.probes += 1;
        let is_sampled = std::mem::take(&mut member.is_sampled);
        let kept = member.connection.take().filter(|until| *until > self.now && !is_sampled);
        // What waits behind an open connection has half of the time left for a new one.
        let open = kept.map(|_| self.network.answers(self.now, TIMEOUT / 2, false));
        let is_down = member.down_since.is_some();
        let (took, new_connection, answered) = match open {
            Some(Ok(took)) if !is_down => (took, false, true),
            other => {
                let lost = match other {
                    Some(Err(lost)) => lost,
                    Some(Ok(_)) => TIMEOUT / 2,
                    None => 0,
                };
                let over_new = self.network.answers(self.now + lost, TIMEOUT - lost, true);
                match over_new {
                    Ok(took) if !is_down => (lost + took, true, true),
                    Ok(_) => (TIMEOUT, true, false),
                    Err(took) => (lost + took, true, false),
                }
            }
        };
        if answered {
            let age = self.random.share() * 0.2 + 0.9;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "an age of minutes"
            )]
            let until = self.now + (CONNECTION_MAX_AGE as f64 * age) as u64;
            member.connection = kept.filter(|_| !new_connection).or(Some(until));
        }
        let finding = if answered {
            Finding::ok(ProbePath::Readyz)
        } else {
            Finding::failed(Code::Timeout, ProbePath::Readyz)
        };
        let report = Report {
            finding,
            started: moment,
            took: Duration::from_millis(took),
            attempts: 1,
            endpoints: Endpoints::default(),
            new_connection,
            detail: None,
        };
        self.count += 1;
        let probe = self.count;
        self.reports[number] = Some((probe, report));
        self.at(took, Event::End(number, probe));
    }

    fn probe_ends(&mut self, number: usize, probe: u64) {
        let Some((_, report)) = self.reports[number].take_if(|(which, _)| *which == probe) else {
            return;
        };
        let (now, draw) = (self.instant(), self.random.share());
        self.members[number].known.complete(&report, &POLICY, now, draw);
        self.check(number);
        if self.members[number].known.waits() {
            self.hurry();
        }
        self.wait(number);
    }

    /// A member that begins to wait brings the next round forward.
    fn hurry(&mut self) {
        let next = (self.last_round + SPACING).max(self.now);
        if self.round.is_none() && next < self.next_round {
            self.next_round = next;
            self.at(next - self.now, Event::Round);
        }
    }

    fn round_begins(&mut self) {
        if self.round.is_some() || self.now < self.next_round {
            return;
        }
        let began = self.instant();
        let up = self.network.answers(self.now, 2000, true);
        let (took, answered) = match up {
            Ok(took) => (took, true),
            Err(took) => (took, false),
        };
        self.round = Some(Round {
            began,
            ended: began,
            local_down: self.network.is_down(self.now),
            api: self.network.api_answers(self.now),
            references_up: if answered { self.references } else { 0 },
            references: self.references,
        });
        self.last_round = self.now;
        self.next_round = self.now + 5000;
        self.at(took, Event::RoundEnds);
    }

    fn round_ends(&mut self) {
        let Some(round) = self.round.take() else { return };
        let now = self.instant();
        let round = Round { ended: now, ..round };
        let evidence: Vec<Evidence> =
            self.members.iter().filter_map(|member| member.known.evidence()).collect();
        let ruling = self.guard.judge(&round, &evidence);
        let moment = self.moment();
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            let due = member.known.due();
            member.known.obey(&ruling, &POLICY, moment);
            if ruling.sample.contains(&member.hash) {
                member.is_sampled = true;
                member.known.trigger(now);
            }
            let is_moved = member.known.due() != due;
            self.check(number);
            if is_moved {
                self.wait(number);
            }
        }
        self.states[ruling.state as usize] += 1;
        let next = self.last_round + u64::try_from(ruling.next_in.as_millis()).unwrap();
        self.next_round = next.max(self.now + 1);
        self.at(self.next_round - self.now, Event::Round);
    }

    fn check(&mut self, number: usize) {
        let member = &mut self.members[number];
        let published = member.known.published().map(|published| published.health);
        if published == Some(Health::Unreachable) {
            if member.told_at.is_none() {
                member.told_at = Some(self.now);
                self.false_alarms += usize::from(member.down_since.is_none());
            }
        } else {
            member.told_at = None;
        }
    }

    pub(crate) fn health(&self, number: usize) -> Option<Health> {
        self.members[number].known.published().map(|published| published.health)
    }

    /// What is published of a member, and since when.
    pub(crate) fn states_of(&self, number: usize) -> Option<(Health, Timestamp, Timestamp)> {
        let published = self.members[number].known.published()?;
        Some((published.health, published.ready.since, published.offline.since))
    }

    pub(crate) fn state(&self) -> GuardState {
        self.guard.state()
    }
}

fn hash_of(number: usize) -> u64 {
    health::hash(&format!("uid-{number}"))
}
