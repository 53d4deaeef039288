//! [`Clock`] and [`Timings`]: where the time of an attempt goes.

use std::time::Duration;

use health::Code;
use tokio::time::Instant;
use transport::Phase;

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
pub(crate) enum Doing {
    /// Opening a connection.
    Opening(Phase),
    /// Waiting for the first byte.
    Waiting,
    /// Reading the answer.
    Reading,
}

/// Takes the times of one attempt.
pub(crate) struct Clock {
    doing: Option<(Doing, Instant)>,
    timings: Timings,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { doing: None, timings: Timings::default() }
    }

    /// Ends the current activity and begins `next`.
    pub(crate) fn enter(&mut self, next: Doing) {
        let now = Instant::now();
        self.end(now);
        self.doing = Some((next, now));
    }

    /// The times so far; the current phase is the last.
    pub(crate) fn stop(mut self) -> Timings {
        self.end(Instant::now());
        self.timings
    }

    /// Code of a timeout in the current activity.
    pub(crate) fn code_of_timeout(&self, proxied: bool) -> Code {
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
    pub(crate) fn waited_for(&self) -> &'static str {
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
