//! One probe under way: carries out the plan of [`health::Attempts`].

use std::sync::Arc;

use health::{Attempts, Conclusion, Lifetime, Moment, Outcome, Report, Setup, Step};
use tokio::time::{Instant, sleep_until, timeout};

use super::moment::now;
use super::order::Order;
use super::probed::Probed;
use super::shared::Shared;
use super::trace::Trace;
use crate::client::Client;
use crate::inputs::Fingerprint;
use crate::link::Link;

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
            match plan.next(outcome, now().monotonic, rand::random()) {
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

    /// A credential that was refused and has been replaced meanwhile is tried anew with the client
    /// that has the new one.
    async fn with_newer_credential(&mut self, outcome: Outcome) -> Outcome {
        let Outcome::Answered { finding, newer_credential: false } = outcome else {
            return outcome;
        };
        if finding.code() != Some(health::Code::Unauthorized) || self.is_renewed {
            return outcome;
        }
        let end = Instant::from_std(self.started.monotonic) + self.order.budget;
        let used = self.client.fingerprint();
        let Some(newer) = newer(self.order, used, end).await else { return outcome };
        self.client = newer;
        self.link = None;
        self.is_renewed = true;
        Outcome::Answered { finding, newer_credential: true }
    }

    fn remember(&mut self, conclusion: &Conclusion) {
        let idle_max = self.shared.limits.idle_max;
        let expected = self.order.next_in < idle_max;
        let link = self.link.take().filter(|_| expected);
        let mut session = self.client.session.lock();
        session.link = link.and_then(|mut link| link.is_usable(idle_max).then_some(link));
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
        let report = Report {
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
