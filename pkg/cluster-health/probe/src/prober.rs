//! [`Prober`]: probes member clusters, one probe at a time for each client. One attempt of a probe is a request on a
//! connection that is open or new, within its time.

mod reader;
mod run;

use std::sync::Arc;
use std::time::Duration;

use health::{Attempt, AttemptOutcome, Code, Connection, Finding, ProbePath, classify, one_line};
use reader::look_around;
use run::{Clock, Doing, Run, Shared};
use tokio::time::{Instant, timeout_at};
use transport::Resolver;

use crate::client::Client;
#[cfg(test)]
use crate::client::Environment;
use crate::failure::{Failure, Problem};
use crate::inputs::Inputs;
use crate::link::{BODY_MAX, Body, ConnectionLimits, Head, Link, Meters};

pub use reader::{Read, ReadError, Reader};
pub use run::{Order, Probed, Reread, Timings, Trace, now};

/// Probes member clusters.
#[derive(Debug)]
pub struct Prober {
    shared: Shared,
}

impl Prober {
    /// A prober that asks `resolver` for the addresses of members and proxies.
    pub fn new(meters: Meters, limits: ConnectionLimits, resolver: impl Into<Resolver>) -> Self {
        Self { shared: Shared::new(meters, limits, resolver.into()) }
    }

    /// Prober with another environment.
    #[cfg(test)]
    fn in_environment(mut self, environment: Environment) -> Self {
        self.shared.environment = environment;
        self
    }

    /// A client of `inputs`. No network yet.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn client(&self, inputs: &Inputs) -> Result<Client, Problem> {
        Client::new(inputs, &self.shared.tls, self.shared.environment)
    }

    /// Reads of the cluster of `client` that are no probes.
    pub fn reader(&self, client: &Arc<Client>) -> Reader<'_> {
        Reader::new(&self.shared, Arc::clone(client))
    }

    /// Short reads of the cluster of `client` that are no probes, on the connection that probes keep, if there is one. A
    /// probe that begins meanwhile does not wait for it, but opens another one.
    pub fn borrowing_reader(&self, client: &Arc<Client>) -> Reader<'_> {
        Reader::borrowing(&self.shared, Arc::clone(client))
    }

    /// Asks the addresses of a cluster that probes do not ask while another one answers them, each
    /// within `limit` and once more when it does not answer; see [`Client::endpoints`].
    pub async fn look_around(&self, client: &Client, limit: Duration) {
        look_around(&self.shared, client, limit).await;
    }

    /// Probes the cluster of `client` once. Giving up the future closes the connection.
    pub async fn probe(&self, client: &Arc<Client>, order: &Order<'_>) -> Probed {
        Run::begin(&self.shared, client, order).finish().await
    }
}

impl Run<'_> {
    async fn attempt(&mut self, attempt: &Attempt) -> AttemptOutcome {
        let (began, mut clock) = (Instant::now(), Clock::start());
        let reused = self.is_linked_to(attempt);
        let answer = self.exchange(attempt, &mut clock).await;
        let (finding, detail, outcome) = match answer {
            Ok(finding) => {
                let outcome = AttemptOutcome::Answered { finding, newer_credential: false };
                (finding, self.advice(finding), outcome)
            }
            Err(Failure { code, detail }) => {
                let finding = Finding::failed(code, attempt.path);
                (finding, Some(one_line(&detail).into()), AttemptOutcome::Failed(code))
            }
        };
        self.note(attempt, outcome);
        let started = Instant::from_std(self.started.monotonic);
        self.traces.push(Trace {
            address: self.client.address(attempt.endpoint).authority().into(),
            path: attempt.path,
            reused,
            after: began.saturating_duration_since(started),
            took: began.elapsed(),
            timings: clock.stop(),
            finding,
            detail,
        });
        outcome
    }

    /// Reaction to an answer.
    fn advice(&self, finding: Finding) -> Option<Box<str>> {
        let refused = finding.code() == Some(Code::Unauthorized);
        refused.then(|| {
            let renewed_in = self.client.renewed_in;
            format!("the token or client certificate is not accepted; renew it in {renewed_in}")
                .into()
        })
    }

    /// An address that answered in this probe is there, whatever broke afterwards.
    fn note(&mut self, attempt: &Attempt, outcome: AttemptOutcome) {
        let bit = 1_u64 << (attempt.endpoint % 64);
        let answered = match outcome {
            AttemptOutcome::Answered { .. } => true,
            // A connection that was open may have broken by itself; our own limits are not its fault.
            AttemptOutcome::Failed(Code::OwnLimit) => return,
            AttemptOutcome::Failed(_) if attempt.connection == Connection::Open => return,
            AttemptOutcome::Failed(_) => self.answered & bit != 0,
        };
        if answered {
            self.answered |= bit;
        }
        self.client.session.lock().learnt.silent.note(attempt.endpoint, answered);
    }

    fn is_linked_to(&mut self, attempt: &Attempt) -> bool {
        let link = self.link.as_mut().filter(|_| attempt.connection == Connection::Open);
        link.is_some_and(|link| link.endpoint == attempt.endpoint && link.is_open())
    }

    async fn exchange(&mut self, attempt: &Attempt, clock: &mut Clock) -> Result<Finding, Failure> {
        let deadline = Instant::from_std(attempt.deadline);
        let (mut link, head) = match timeout_at(deadline, self.ask(attempt, clock)).await {
            Ok(asked) => asked?,
            Err(_) => return Err(self.timed_out(attempt, clock)),
        };
        clock.enter(Doing::Reading);
        let (path, status) = (attempt.path, head.status().as_u16());
        let body = match timeout_at(deadline, link.read(head, BODY_MAX)).await {
            Ok(Ok(Body::Whole(body))) => {
                self.link = Some(link);
                body
            }
            // The status stands, and it was sent by somebody.
            Ok(Ok(Body::TooLong)) => Vec::new(),
            Ok(Err(failure)) => return Ok(without_body(path, status, failure.code)),
            Err(_) => return Ok(without_body(path, status, Code::Timeout)),
        };
        Ok(classify(path, status, &body))
    }

    /// The connection is taken out and given back by whoever has read the answer to its end: an
    /// attempt that breaks or is given up takes it along
    async fn ask(&mut self, attempt: &Attempt, clock: &mut Clock) -> Result<(Link, Head), Failure> {
        let linked = self.is_linked_to(attempt);
        let mut link = match self.link.take().filter(|_| linked) {
            Some(link) => link,
            None => self.open(attempt, clock).await?,
        };
        clock.enter(Doing::Waiting);
        let request = self.client.request(attempt.endpoint, attempt.path.request())?;
        let head = link.send(request).await?;
        Ok((link, head))
    }

    async fn open(&mut self, attempt: &Attempt, clock: &mut Clock) -> Result<Link, Failure> {
        let limit = Instant::from_std(attempt.deadline).saturating_duration_since(Instant::now());
        let mut enter = |phase| clock.enter(Doing::Opening(phase));
        let link = self.shared.open(&self.client, attempt.endpoint, limit, &mut enter).await?;
        self.certificate = link.certificate;
        Ok(link)
    }

    fn timed_out(&self, attempt: &Attempt, clock: &Clock) -> Failure {
        let detail = format!("the time was over while waiting for {}", clock.waited_for());
        let is_proxied = self.client.is_proxied(attempt.endpoint);
        Failure { code: clock.code_of_timeout(is_proxied), detail }
    }
}

/// A body that broke off matters only where it would have been looked at.
fn without_body(path: ProbePath, status: u16, code: Code) -> Finding {
    match classify(path, status, b"").code() {
        Some(Code::Body) => Finding::failed(code, path).after_a_response(),
        _ => classify(path, status, b""),
    }
}

#[cfg(test)]
mod tests;
