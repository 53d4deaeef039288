//! [`Attempts`]: how one probe spends its time, as a plan that the prober carries out step by step.
//!
//! The prober begins with [`Attempts::first`], makes the attempt, passes its outcome to
//! [`Attempts::next`], and goes on until that returns the [`Conclusion`]. It cancels an attempt at its
//! deadline, which is never later than that of the probe, and drops a connection on which an
//! attempt failed. All attempts of a probe share its deadline:
//!
//! | the attempt ended with | the next one | how often |
//! |---|---|---|
//! | a healthy answer | the authenticated read, where the credential is probed, too | once |
//! | 404 or 403 | the other health path; after both, the authenticated read if one was forbidden | once |
//! | 5xx | the next address, at once | once |
//! | 401, and there is a newer credential | the same address, at once | once |
//! | no answer on an open connection | the same address on a new connection, at once | once per connection |
//! | no answer, and an address was not tried yet | that address, at once | once per address |
//! | no answer from any address | the next address, after 100 to 300 ms | twice; never after a refused certificate or address, or a timeout |
//! | any other answer | none: it is the result | |

use std::time::{Duration, Instant};

use crate::{Code, Endpoints, Finding, ProbePath};

/// Attempts after transport errors, beyond the first on every address.
const TRANSPORT_RETRIES: u8 = 2;
/// A retry waits this long and up to twice as long again, so that members behind one broken
/// balancer do not come back together.
const RETRY_WAIT: Duration = Duration::from_millis(100);
const RETRY_SPREAD: Duration = Duration::from_millis(200);
/// Addresses whose failures are told apart.
const ENDPOINTS_MAX: u8 = 64;

/// The plan of one probe.
#[derive(Clone, Debug)]
pub struct Attempts {
    setup: Setup,
    deadline: Instant,
    current: Attempt,
    made: u8,
    /// One bit for each address that was tried, that gave a response, and that gave none.
    tried: u64,
    answered: u64,
    down: u64,
    /// The address of `response`.
    answered_by: Option<u8>,
    transport_retries: u8,
    retried_server_error: bool,
    retried_unauthorized: bool,
    /// Why the first health path was left for the other one.
    first_path_closed: Option<Code>,
    /// The healthy answer that the authenticated read has to confirm.
    healthy: Option<Finding>,
    /// An attempt failed at what this process may open: whether an address is to blame for anything
    /// is not known then.
    our_fault: Option<Code>,
    /// The last response, which outlives a later attempt without one.
    response: Option<Finding>,
}

impl Attempts {
    /// Plans a probe that begins at `now`.
    pub fn begin(setup: Setup, now: Instant) -> Self {
        let endpoints = setup.endpoints.clamp(1, ENDPOINTS_MAX);
        let first_endpoint = setup.first_endpoint % endpoints;
        let deadline = now + setup.budget;
        let connection = if setup.connected { Connection::Open } else { Connection::New };
        let path = setup.path;
        let current =
            Attempt { endpoint: first_endpoint, connection, path, not_before: now, deadline };
        let mut plan = Self {
            setup: Setup { endpoints, first_endpoint, ..setup },
            deadline,
            current,
            made: 1,
            tried: bit(first_endpoint),
            answered: 0,
            down: 0,
            answered_by: None,
            transport_retries: TRANSPORT_RETRIES,
            retried_server_error: false,
            retried_unauthorized: false,
            first_path_closed: None,
            healthy: None,
            our_fault: None,
            response: None,
        };
        plan.current.deadline = plan.share(now, connection);
        plan
    }

    /// The first attempt.
    pub fn first(&self) -> Attempt {
        self.current
    }

    /// Takes what came of the last attempt by `now`. `draw` is a random number in `[0, 1)`.
    pub fn next(&mut self, outcome: AttemptOutcome, now: Instant, draw: f64) -> Step {
        match outcome {
            AttemptOutcome::Answered { finding, newer_credential } => {
                self.answered(finding, newer_credential, now)
            }
            AttemptOutcome::Failed(code) => self.failed(code, now, draw),
        }
    }

    fn answered(&mut self, finding: Finding, newer_credential: bool, now: Instant) -> Step {
        let (endpoint, path) = (self.current.endpoint, self.current.path);
        self.answered |= bit(endpoint);
        self.down &= !bit(endpoint);
        self.answered_by = Some(endpoint);
        self.response = Some(finding);
        match finding.code() {
            None if self.setup.authenticated_read && path != ProbePath::Namespaces => {
                self.healthy = Some(finding);
                self.attempt(endpoint, Connection::Open, ProbePath::Namespaces, now)
            }
            // Of a cluster that is well the health path is told.
            None => self.done(self.healthy.unwrap_or(finding)),
            Some(code @ (Code::Http(404) | Code::Forbidden)) if path != ProbePath::Namespaces => {
                self.after_a_closed_path(finding, code, now)
            }
            Some(Code::Http(500..=599)) if !self.retried_server_error => {
                self.retried_server_error = true;
                let next = self.untried().unwrap_or_else(|| self.following(endpoint));
                self.attempt(next, Connection::New, path, now)
            }
            Some(Code::Unauthorized) if newer_credential && !self.retried_unauthorized => {
                self.retried_unauthorized = true;
                self.attempt(endpoint, Connection::New, path, now)
            }
            Some(_) => self.done(finding),
        }
    }

    /// The server does not know this health path, or does not let us ask for it: the other one is
    /// tried. Where both are closed and one of them is forbidden, the authenticated read decides, if
    /// there is one.
    fn after_a_closed_path(&mut self, finding: Finding, code: Code, now: Instant) -> Step {
        let (endpoint, path) = (self.current.endpoint, self.current.path);
        let Some(first) = self.first_path_closed.replace(code) else {
            return self.attempt(endpoint, Connection::Open, other_path(path), now);
        };
        if [first, code].contains(&Code::Forbidden) && self.setup.authenticated_read {
            return self.attempt(endpoint, Connection::Open, ProbePath::Namespaces, now);
        }
        self.done(finding)
    }

    fn failed(&mut self, code: Code, now: Instant, draw: f64) -> Step {
        let Attempt { endpoint, connection, path, .. } = self.current;
        if code == Code::OwnLimit {
            self.our_fault = Some(code);
        } else {
            self.down |= bit(endpoint) & !self.answered;
        }
        if connection == Connection::Open {
            return self.attempt(endpoint, Connection::New, path, now);
        }
        if let Some(next) = self.untried() {
            return self.attempt(next, Connection::New, path, now);
        }
        if !is_worth_a_retry(code) || self.transport_retries == 0 {
            return Step::Done(self.conclude_without_answer(code));
        }
        self.transport_retries -= 1;
        let wait = RETRY_WAIT + RETRY_SPREAD.mul_f64(draw.clamp(0.0, 1.0));
        let step = self.attempt(self.following(endpoint), Connection::New, path, now + wait);
        match step {
            Step::Try(_) => step,
            Step::Done(_) => Step::Done(self.conclude_without_answer(code)),
        }
    }

    fn attempt(
        &mut self,
        endpoint: u8,
        connection: Connection,
        path: ProbePath,
        not_before: Instant,
    ) -> Step {
        if not_before >= self.deadline {
            return Step::Done(self.conclude_without_answer(Code::Timeout));
        }
        self.tried |= bit(endpoint);
        self.made = self.made.saturating_add(1);
        let deadline = self.share(not_before, connection);
        self.current = Attempt { endpoint, connection, path, not_before, deadline };
        Step::Try(self.current)
    }

    /// The deadline of an attempt that begins at `from`: the time left is shared equally with the
    /// addresses not tried yet and, on an open connection, with one attempt on a new connection.
    fn share(&self, from: Instant, connection: Connection) -> Instant {
        let open = u32::from(connection == Connection::Open);
        let untried = if self.response.is_some() { 0 } else { self.untried_count() };
        let left = self.deadline.saturating_duration_since(from);
        from + left / (1 + open + untried)
    }

    fn untried_count(&self) -> u32 {
        u32::from(self.setup.endpoints).saturating_sub(self.tried.count_ones())
    }

    fn untried(&self) -> Option<u8> {
        (0..self.setup.endpoints).find(|&endpoint| self.tried & bit(endpoint) == 0)
    }

    /// The next address that is not known to be down, or the next one if all are.
    fn following(&self, endpoint: u8) -> u8 {
        let total = self.setup.endpoints;
        let mut others = (1..=total).map(|ahead| (endpoint + ahead) % total);
        others.find(|&other| self.down & bit(other) == 0).unwrap_or((endpoint + 1) % total)
    }

    fn conclude_without_answer(&self, code: Code) -> Conclusion {
        let code = self.our_fault.unwrap_or(code);
        let finding = match self.response {
            Some(response) if !response.is_ok() => response,
            Some(_) => Finding::failed(code, self.current.path).after_a_response(),
            None => Finding::failed(code, self.current.path),
        };
        self.conclusion(finding)
    }

    fn done(&self, finding: Finding) -> Step {
        Step::Done(self.conclusion(finding))
    }

    fn conclusion(&self, finding: Finding) -> Conclusion {
        let down = u8::try_from(self.down.count_ones()).unwrap_or(ENDPOINTS_MAX);
        let total = self.setup.endpoints;
        let endpoints = Endpoints { down, total };
        Conclusion { finding, endpoints, answered: self.answered_by, attempts: self.made }
    }
}

fn bit(endpoint: u8) -> u64 {
    1 << (endpoint % ENDPOINTS_MAX)
}

fn other_path(path: ProbePath) -> ProbePath {
    match path {
        ProbePath::Readyz => ProbePath::Healthz,
        ProbePath::Healthz | ProbePath::Namespaces => ProbePath::Readyz,
    }
}

/// A certificate or an address that was refused is refused again, and a timeout has had its time.
fn is_worth_a_retry(code: Code) -> bool {
    !matches!(code, Code::TlsVerify | Code::AddressDenied | Code::ConnectTimeout | Code::Timeout)
}

/// Settings with which a probe starts.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Wall time for everything.
    pub budget: Duration,
    /// Addresses of the cluster, at least one; at most 64 are tried.
    pub endpoints: u8,
    /// The address that answered last.
    pub first_endpoint: u8,
    /// Whether a connection to that one is open.
    pub connected: bool,
    /// The health path that worked last.
    pub path: ProbePath,
    /// Whether a healthy answer is followed by an authenticated read.
    pub authenticated_read: bool,
}

/// The connection that an attempt uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A connection that was open before this attempt.
    Open,
    /// A new one; any other to the cluster is dropped.
    New,
}

/// One request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the address.
    pub endpoint: u8,
    /// An open connection, or a new one.
    pub connection: Connection,
    /// The path that is requested.
    pub path: ProbePath,
    /// When to begin.
    pub not_before: Instant,
    /// When to give up.
    pub deadline: Instant,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// An HTTP answer, judged by [`crate::classify`].
    Answered {
        /// The judgement.
        finding: Finding,
        /// Whether there is another credential by now than the one that was sent.
        newer_credential: bool,
    },
    /// The attempt got no answer.
    Failed(Code),
}

/// The next step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make this attempt.
    Try(Attempt),
    /// The probe is over.
    Done(Conclusion),
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The finding of the whole probe.
    pub finding: Finding,
    /// How the addresses did.
    pub(crate) endpoints: Endpoints,
    /// The address that answered, to begin with next time.
    pub answered: Option<u8>,
    /// Attempts made.
    pub attempts: u8,
}

#[cfg(test)]
mod tests;
