//! One probe under way: carries out the plan of [`health::Attempts`]. [`Clock`] and [`Timings`]: where the time of an
//! attempt goes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use health::{
    AttemptOutcome, Attempts, Code, Conclusion, Finding, Lifetime, Moment, ProbePath, Report,
    Setup, Step, Verdict,
};
use resilience::{draw, wall_now};
use tokio::time::{Instant, sleep_until, timeout};
use transport::{Phase, Resolver, TlsConfigs, Way, dial};

use crate::client::{Client, Environment};
use crate::credentials::lifetime_of_certificate;
use crate::failure::{Failure, Problem};
use crate::inputs::Fingerprint;
use crate::link::{ConnectionLimits, Link, Meters};

/// One probe under way.
pub(super) struct Run<'a> {
    pub(super) shared: &'a Shared,
    pub(super) order: &'a Order<'a>,
    /// The newest client, if the first one's credential turned out to be old.
    pub(super) client: Arc<Client>,
    pub(super) link: Option<Link>,
    pub(super) started: Moment,
    pub(super) traces: Vec<Trace>,
    pub(super) certificate: Option<Lifetime>,
    /// One bit for each address that gave an answer.
    pub(super) answered: u64,
    /// A refused credential was replaced, which is done once.
    is_renewed: bool,
}

impl<'a> Run<'a> {
    pub(super) fn begin(shared: &'a Shared, client: &Arc<Client>, order: &'a Order<'a>) -> Self {
        let link = client.session.lock().link.take();
        let idle_max = shared.limits.idle_max;
        let link = link.and_then(|mut link| link.is_usable(idle_max).then_some(link));
        let certificate = link.as_ref().and_then(|link| link.certificate);
        Self {
            shared,
            order,
            client: Arc::clone(client),
            link,
            started: now(),
            traces: Vec::new(),
            certificate,
            answered: 0,
            is_renewed: false,
        }
    }

    pub(super) async fn finish(mut self) -> Probed {
        let mut plan = Attempts::begin(self.setup(), self.started.monotonic);
        let mut attempt = plan.first();
        let conclusion = loop {
            sleep_until(Instant::from_std(attempt.not_before)).await;
            let outcome = self.attempt(&attempt).await;
            let outcome = self.with_newer_credential(outcome).await;
            match plan.next(outcome, now().monotonic, draw()) {
                Step::Try(next) => attempt = next,
                Step::Done(conclusion) => break conclusion,
            }
        };
        self.remember(&conclusion);
        self.probed(conclusion)
    }

    fn setup(&self) -> Setup {
        let session = self.client.session.lock();
        Setup {
            budget: self.order.budget,
            endpoints: self.client.address_count(),
            first_endpoint: self
                .link
                .as_ref()
                .map_or(session.learnt.first_endpoint, |link| link.endpoint),
            connected: self.link.is_some(),
            path: session.learnt.path.path(self.started.monotonic),
            authenticated_read: self.order.authenticated_read,
        }
    }

    /// A credential that was refused and has been replaced meanwhile is tried again with the client
    /// that has the new one.
    async fn with_newer_credential(&mut self, outcome: AttemptOutcome) -> AttemptOutcome {
        let AttemptOutcome::Answered { finding, newer_credential: false } = outcome else {
            return outcome;
        };
        if finding.code() != Some(Code::Unauthorized) || self.is_renewed {
            return outcome;
        }
        let end = Instant::from_std(self.started.monotonic) + self.order.budget;
        let used = self.client.fingerprint();
        let Some(newer) = newer(self.order, used, end).await else { return outcome };
        self.client = newer;
        self.link = None;
        self.is_renewed = true;
        AttemptOutcome::Answered { finding, newer_credential: true }
    }

    fn remember(&mut self, conclusion: &Conclusion) {
        let idle_max = self.shared.limits.idle_max;
        let expected = self.order.next_in < idle_max;
        let link = self.link.take().filter(|_| expected);
        let mut session = self.client.session.lock();
        session.link = link.and_then(|link| link.at_rest(idle_max));
        // What a reader gives back now is older.
        session.is_lent = false;
        session.learnt.certificate = self.certificate.or(session.learnt.certificate);
        if let Some(endpoint) = conclusion.answered {
            session.learnt.first_endpoint = endpoint;
        }
        if conclusion.finding.is_ok() {
            session.learnt.path.note(conclusion.finding.path(), self.started.monotonic);
        }
    }

    fn probed(self, conclusion: Conclusion) -> Probed {
        let detail = self.traces.iter().rev().find_map(|trace| trace.detail.as_deref());
        let detail = detail.filter(|_| !conclusion.finding.is_ok());
        // Of a member that answers the first answer counts: a second request goes over the same connection.
        let unreachable = Verdict::Unreachable;
        let opened = |trace: &Trace| !trace.reused && trace.finding.verdict() != unreachable;
        let report = Report {
            new_connection: self.traces.iter().any(opened),
            finding: conclusion.finding,
            started: self.started,
            took: now().monotonic.saturating_duration_since(self.started.monotonic),
            attempts: conclusion.attempts,
            endpoints: self.client.endpoints(),
            detail: detail.map(Into::into),
        };
        Probed {
            report,
            attempts: self.traces,
            certificate: self.certificate,
            credential: self.client.credential(),
        }
    }
}

/// A client with another credential than the one that was used.
async fn newer(order: &Order<'_>, used: Fingerprint, end: Instant) -> Option<Arc<Client>> {
    let other = |client: &Arc<Client>| client.fingerprint() != used;
    if let Some(newest) = (order.newest)().filter(other) {
        return Some(newest);
    }
    let reread = order.reread?;
    let limit = end.saturating_duration_since(Instant::now()) / 2;
    timeout(limit, reread.reread()).await.ok().flatten().filter(other)
}

/// One probe to make.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Wall time for everything.
    pub budget: Duration,
    /// Whether a healthy answer is followed by an authenticated read.
    pub authenticated_read: bool,
    /// When the next probe is expected: a connection that will be too old by then is closed.
    pub next_in: Duration,
    /// The client of the newest inputs, asked when the server says that the credential is no good.
    pub newest: &'a (dyn Fn() -> Option<Arc<Client>> + Send + Sync),
    /// Reads the credential again when it is refused and `newest` has no other one; `None` where it
    /// cannot be read. Half of the time that is left is for it.
    pub reread: Option<&'a dyn Reread>,
}

impl Order<'_> {
    /// An order for a single probe: no later one is planned.
    pub fn once(budget: Duration, authenticated_read: bool) -> Self {
        Self { budget, authenticated_read, next_in: Duration::MAX, newest: &|| None, reread: None }
    }
}

/// Reads a credential that was refused from its source.
pub trait Reread: Send + Sync {
    /// A client of what the source has now; `None` when it cannot be read or has not changed.
    fn reread(&self) -> BoxFuture<'_, Option<Arc<Client>>>;
}

/// TLS configurations of the same material, the addresses of hosts, and limits.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tls: TlsConfigs,
    pub(super) resolver: Resolver,
    pub(super) environment: Environment,
    pub(super) meters: Meters,
    pub(super) limits: ConnectionLimits,
}

impl Shared {
    pub(super) fn new(meters: Meters, limits: ConnectionLimits, resolver: Resolver) -> Self {
        let environment: Environment = |name| std::env::var(name).ok();
        Self { tls: TlsConfigs::default(), resolver, environment, meters, limits }
    }

    /// Opens a connection to the address of number `endpoint`; `enter` is called as each phase begins.
    pub(super) async fn open(
        &self,
        client: &Client,
        endpoint: u8,
        limit: Duration,
        enter: &mut (dyn FnMut(Phase) + Send),
    ) -> Result<Link, Failure> {
        let way = Way { resolver: &self.resolver, asker: &client.asker };
        let (to, uri) = (client.endpoint(endpoint), client.uri(endpoint));
        let dialed = dial(to, uri, way, limit, enter).await;
        self.meters.handshake(&dialed);
        let of_dial = |error| Failure::of_dial(error, client.address(endpoint).authority());
        let dialed = dialed.map_err(of_dial)?;
        let certificate = dialed.certificate.and_then(lifetime_of_certificate);
        let max_age = self.limits.max_age.mul_f64(0.9 + 0.2 * draw());
        Ok(Link::new(dialed.stream, endpoint, max_age, certificate, self.meters.open()))
    }
}

/// Result of a probe, for the engine and for people.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The report for the engine.
    pub report: Report,
    /// Every attempt, in the order in which they were made.
    pub attempts: Vec<Trace>,
    /// The lifetime of the certificate that the server showed last.
    pub certificate: Option<Lifetime>,
    /// Lifetime of the first of our credentials to expire.
    pub credential: Option<Lifetime>,
}

impl Probed {
    /// Result for a cluster for which no client can be made.
    pub fn of_problem(problem: &Problem) -> Self {
        let finding = Finding::failed(problem.code(), ProbePath::default());
        let detail = Some(problem.to_string().into());
        let report = Report { detail, ..Report::new(finding, now()) };
        Self { report, attempts: Vec::new(), certificate: None, credential: None }
    }
}

/// The current time on both clocks; a test that pauses tokio's time pauses the monotonic one.
pub fn now() -> Moment {
    Moment { monotonic: Instant::now().into_std(), wall: wall_now() }
}

/// Trace of one attempt, for people.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Host and port.
    pub address: Box<str>,
    /// The path that was requested.
    pub path: ProbePath,
    /// Whether the connection was open before.
    pub reused: bool,
    /// How long after the beginning of the probe it began.
    pub after: Duration,
    /// How long it took.
    pub took: Duration,
    /// Where that time went.
    pub timings: Timings,
    /// Result of this attempt alone.
    pub finding: Finding,
    /// Why there was no answer, in one line without secrets.
    pub detail: Option<Box<str>>,
}

/// How long each phase of one attempt took. What did not happen, because a connection was open or
/// the attempt ended before it, has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Asking for the addresses of the host.
    pub dns: Option<Duration>,
    /// The handshake of TCP.
    pub tcp: Option<Duration>,
    /// The tunnel through the proxy.
    pub proxy: Option<Duration>,
    /// The handshake of TLS.
    pub tls: Option<Duration>,
    /// From the request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Reading the rest of the answer.
    pub body: Option<Duration>,
}

/// Current activity of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Opening a connection.
    Opening(Phase),
    /// Waiting for the first byte.
    Waiting,
    /// Reading the answer.
    Reading,
}

/// Takes the times of one attempt.
pub(super) struct Clock {
    doing: Option<(Doing, Instant)>,
    timings: Timings,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { doing: None, timings: Timings::default() }
    }

    /// Ends the current activity and begins `next`.
    pub(super) fn enter(&mut self, next: Doing) {
        let now = Instant::now();
        self.end(now);
        self.doing = Some((next, now));
    }

    /// The times so far; the current phase is the last.
    pub(super) fn stop(mut self) -> Timings {
        self.end(Instant::now());
        self.timings
    }

    /// Code of a timeout in the current activity.
    pub(super) fn code_of_timeout(&self, proxied: bool) -> Code {
        match self.doing.map(|(doing, _)| doing) {
            Some(Doing::Opening(Phase::Proxy)) => Code::Proxy,
            Some(Doing::Opening(Phase::Resolve | Phase::Connect)) if proxied => Code::Proxy,
            Some(Doing::Opening(Phase::Resolve)) => Code::Dns,
            Some(Doing::Opening(Phase::Connect)) => Code::ConnectTimeout,
            Some(Doing::Opening(Phase::Tls) | Doing::Waiting | Doing::Reading) | None => {
                Code::Timeout
            }
        }
    }

    /// Name of the activity that a timeout ended.
    pub(super) fn waited_for(&self) -> &'static str {
        match self.doing.map(|(doing, _)| doing) {
            Some(Doing::Opening(Phase::Resolve)) => "the address of the host",
            Some(Doing::Opening(Phase::Connect)) => "the connection",
            Some(Doing::Opening(Phase::Proxy)) => "the proxy",
            Some(Doing::Opening(Phase::Tls)) => "the TLS handshake",
            Some(Doing::Waiting) => "the answer",
            Some(Doing::Reading) => "the rest of the answer",
            None => "its turn",
        }
    }

    fn end(&mut self, now: Instant) {
        let Some((doing, since)) = self.doing.take() else { return };
        let time = match doing {
            Doing::Opening(Phase::Resolve) => &mut self.timings.dns,
            Doing::Opening(Phase::Connect) => &mut self.timings.tcp,
            Doing::Opening(Phase::Proxy) => &mut self.timings.proxy,
            Doing::Opening(Phase::Tls) => &mut self.timings.tls,
            Doing::Waiting => &mut self.timings.first_byte,
            Doing::Reading => &mut self.timings.body,
        };
        *time = Some(now.saturating_duration_since(since));
    }
}
