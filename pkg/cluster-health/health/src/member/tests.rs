//! A cluster that is probed by a script of letters. The child modules hold the tests.

mod beats;
mod by_lease;
mod checked;
mod explaining;
mod explored;
mod publishing;
mod time;

use jiff::Timestamp;

use super::*;
use crate::{Cadence, Code, Damping, Endpoints, EvidenceSource, ProbePath, Thresholds};

const S: fn(u64) -> Duration = Duration::from_secs;

pub(super) fn policy(failure: u32, success: u32) -> Policy {
    Policy {
        cadence: Cadence { period: S(10), timeout: S(3), confirm: S(10), jitter: 0.0 },
        thresholds: Thresholds { failure, success },
        damping: Damping { transitions: 0, window: S(600), min_success: 3 },
        stale_after: S(0),
        inherited_after: S(0),
        heartbeat: S(300),
        objective: None,
        evidence: EvidenceSource::Both,
    }
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn finding(letter: char) -> Finding {
    match letter {
        'k' => Finding::ok(ProbePath::Readyz),
        'x' => Finding::failed(Code::Timeout, ProbePath::Readyz),
        'u' => Finding::failed(Code::Http(500), ProbePath::Readyz),
        'v' => Finding::failed(Code::OwnLimit, ProbePath::Readyz),
        'c' => Finding::failed(Code::SecretMissing, ProbePath::Readyz),
        other => panic!("no finding {other}"),
    }
}

/// A cluster with its clocks. Probes start every 10 s from second 0.
struct Bench {
    member: Member,
    policy: Policy,
    start: Instant,
    second: u64,
    ready: String,
    offline: String,
}

impl Bench {
    fn new(policy: Policy, published: Option<Published>) -> Self {
        let start = Instant::now();
        let arrival = Arrival { published, ..Arrival::default() };
        let member = Member::new(arrival, &policy, start);
        Self { member, policy, start, second: 0, ready: String::new(), offline: String::new() }
    }

    fn now(&self) -> Moment {
        let wall = wall(i64::try_from(self.second).unwrap());
        Moment { monotonic: self.start + S(self.second), wall }
    }

    fn report(&self, letter: char) -> Report {
        let endpoints = Endpoints { down: 0, total: 1 };
        let report = Report::new(finding(letter), self.now());
        Report { took: S(1), attempts: 1, endpoints, new_connection: true, ..report }
    }

    /// One letter per probe; `~` changes the endpoint, `s` lets the sweeper find it stale.
    fn play(&mut self, script: &str) -> Vec<Effect> {
        script.chars().filter_map(|letter| self.step(letter)).collect()
    }

    fn step(&mut self, letter: char) -> Option<Effect> {
        match letter {
            '~' => {
                self.member.retarget(self.now().monotonic);
                return None;
            }
            's' => {
                let stale = self.member.stale_at(&self.policy).unwrap();
                let now = Moment { monotonic: stale, ..self.now() };
                self.member.sweep(&self.policy, now);
            }
            letter => {
                let started = self.now();
                let report = self.report(letter);
                let report = self.member.gated(report, true);
                self.member.begin(started.monotonic);
                let effect =
                    self.member.complete(&report, &self.policy, started.monotonic + S(1), 0.5);
                self.note();
                return Some(effect);
            }
        }
        self.note();
        None
    }

    fn note(&mut self) {
        let published = self.member.published().unwrap();
        self.ready.push_str(&published.ready.status.as_str()[..1]);
        self.offline.push_str(&published.offline.status.as_str()[..1]);
        self.second += 10;
    }
}

#[test]
fn a_member_is_small() {
    assert!(size_of::<Member>() <= 640, "{}", size_of::<Member>());
}
