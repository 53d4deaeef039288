//! A member cluster and how it answers.

use std::time::{Duration, Instant};

use health::{
    Attempt, AttemptOutcome, Attempts, Code, Conclusion, Connection, ProbePath, Setup, Step,
    classify,
};

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Healthy,
    /// Flows that are open already lead nowhere.
    HalfOpen,
    /// Drops everything.
    Silent,
    Refusing,
    Failing,
    Unauthorized,
    /// Takes up to twice the timeout.
    Slow,
    /// Refuses every other time.
    Flaky,
    /// The replica cannot probe: it has no file descriptor left.
    Unaskable,
}

pub(crate) const BEHAVIOURS: [Behaviour; 9] = [
    Behaviour::Healthy,
    Behaviour::HalfOpen,
    Behaviour::Silent,
    Behaviour::Refusing,
    Behaviour::Failing,
    Behaviour::Unauthorized,
    Behaviour::Slow,
    Behaviour::Flaky,
    Behaviour::Unaskable,
];

impl Behaviour {
    /// Every probe that begins now succeeds.
    pub(crate) fn is_well(self) -> bool {
        matches!(self, Self::Healthy | Self::HalfOpen)
    }

    /// Every probe that begins now fails.
    pub(crate) fn is_ill(self) -> bool {
        matches!(self, Self::Silent | Self::Refusing | Self::Failing | Self::Unauthorized)
    }
}

/// Makes one probe as a prober would, and says what it concludes and how long it takes.
pub(crate) fn probe(
    behaviour: Behaviour,
    timeout: Duration,
    start: Instant,
    random: &mut Random,
) -> (Conclusion, Duration) {
    let setup = Setup {
        budget: timeout,
        endpoints: random.pick(&[1, 3]),
        first_endpoint: u8::try_from(random.below(3)).unwrap(),
        connected: !random.one_in(4),
        path: ProbePath::Readyz,
        authenticated_read: false,
    };
    let mut plan = Attempts::begin(setup, start);
    let mut attempt = plan.first();
    loop {
        let (outcome, at) = answer(behaviour, &attempt, timeout, random);
        match plan.next(outcome, at, random.share()) {
            Step::Try(next) => attempt = next,
            Step::Done(conclusion) => return (conclusion, at - start),
        }
    }
}

fn answer(
    behaviour: Behaviour,
    attempt: &Attempt,
    timeout: Duration,
    random: &mut Random,
) -> (AttemptOutcome, Instant) {
    let status = |status, body: &[u8]| AttemptOutcome::Answered {
        finding: classify(attempt.path, status, body),
        newer_credential: false,
    };
    let soon = attempt.not_before + Duration::from_millis(random.below(50));
    let nothing = (AttemptOutcome::Failed(Code::Timeout), attempt.deadline);
    let (outcome, at) = match behaviour {
        Behaviour::HalfOpen if attempt.connection == Connection::Open => nothing,
        Behaviour::Healthy | Behaviour::HalfOpen => (status(200, b"ok"), soon),
        Behaviour::Flaky if random.one_in(2) => (status(200, b"ok"), soon),
        Behaviour::Silent => nothing,
        Behaviour::Failing => (status(500, b"no"), soon),
        Behaviour::Unauthorized => (status(401, b""), soon),
        Behaviour::Unaskable => (AttemptOutcome::Failed(Code::OwnLimit), soon),
        Behaviour::Slow => {
            let late = u64::try_from(2 * timeout.as_millis()).unwrap();
            let takes = Duration::from_millis(random.below(late));
            (status(200, b"ok"), attempt.not_before + takes)
        }
        Behaviour::Refusing | Behaviour::Flaky => {
            (AttemptOutcome::Failed(Code::ConnectRefused), soon)
        }
    };
    if at > attempt.deadline { nothing } else { (outcome, at) }
}
