//! [`Reader`]: reads of a member cluster that are no probes, such as its lists, on a connection of
//! their own or one that probes lend, so that no probe waits for them. [`look_around`] asks the addresses that probes do not ask.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use health::{Code, ProbePath, one_line};
use http::{StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::run::Shared;
use crate::client::Client;
use crate::failure::Failure;
use crate::link::{Body, Head, Link};

/// Reads of one member cluster, one at a time. Dropping it closes its connection, or gives it back.
pub struct Reader<'a> {
    shared: &'a Shared,
    client: Arc<Client>,
    link: Option<Link>,
    /// Its connection was that of the probes.
    borrows: bool,
}

/// Answer of a member cluster.
#[derive(Clone, Debug)]
pub struct Read {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// All of the body.
    pub body: Vec<u8>,
    /// The header `Date`: when it was sent, by the clock of the server.
    pub date: Option<Timestamp>,
}

/// A read without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read from the cluster: {detail}")]
pub struct ReadError {
    /// The code of the failure, for metrics.
    pub code: Code,
    /// One line without secrets.
    pub(crate) detail: Box<str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, client: Arc<Client>) -> Self {
        Self { shared, client, link: None, borrows: false }
    }

    pub(super) fn borrowing(shared: &'a Shared, client: Arc<Client>) -> Self {
        let mut session = client.session.lock();
        let link = session.link.take();
        session.is_lent |= link.is_some();
        drop(session);
        Self { shared, client, borrows: link.is_some(), link }
    }

    /// One GET of `path`, with its query, within `limit`, of a body of at most `most` bytes. A
    /// connection that broke or is silent for half of that time is replaced once, and an address
    /// that cannot be reached by the next one.
    ///
    /// # Errors
    /// There was no answer, or it was too long.
    pub async fn get(
        &mut self,
        path: &str,
        most: usize,
        limit: Duration,
    ) -> Result<Read, ReadError> {
        match timeout(limit, self.read(path, most, Instant::now() + limit)).await {
            Ok(read) => read.map_err(ReadError::from),
            Err(_) => Err(ReadError { code: Code::Timeout, detail: "no answer in time".into() }),
        }
    }

    /// One GET of `path` like [`Reader::get`], whose body goes to `take` piece by piece when the
    /// status is 200, until `take` returns false; any other status has no body.
    ///
    /// # Errors
    /// There was no answer, or it was too long, which has the code [`Code::Body`].
    pub async fn get_in_pieces(
        &mut self,
        path: &str,
        most: usize,
        limit: Duration,
        take: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<StatusCode, ReadError> {
        let end = Instant::now() + limit;
        match timeout(limit, self.read_in_pieces(path, most, end, take)).await {
            Ok(read) => read.map_err(ReadError::from),
            Err(_) => Err(ReadError { code: Code::Timeout, detail: "no answer in time".into() }),
        }
    }

    async fn read(&mut self, path: &str, most: usize, end: Instant) -> Result<Read, Failure> {
        // Taken out, so that a read that breaks or is given up takes it along.
        if let Some(link) = self.usable_link() {
            match timeout_at(half_way(end), self.exchange(link, path, most)).await {
                // The next answer would be as long.
                Ok(Err(failure)) if failure.code == Code::Body => return Err(failure),
                Ok(Ok(read)) => return Ok(read),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        let link = open(self.shared, &self.client, end).await?;
        self.exchange(link, path, most).await
    }

    /// An answer that breaks off is not asked for again: what came of it was taken.
    async fn read_in_pieces(
        &mut self,
        path: &str,
        most: usize,
        end: Instant,
        take: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<StatusCode, Failure> {
        let (mut link, head) = self.ask(path, end).await?;
        let (status, mut goes_on) = (head.status(), true);
        if status != StatusCode::OK {
            return Ok(status);
        }
        let mut watched = |bytes: &[u8]| {
            goes_on = take(bytes);
            goes_on
        };
        if link.read_in_pieces(head, most, &mut watched).await? {
            self.link = Some(link);
        } else if goes_on {
            return Err(too_long(most));
        }
        Ok(status)
    }

    async fn ask(&mut self, path: &str, end: Instant) -> Result<(Link, Head), Failure> {
        if let Some(mut link) = self.usable_link() {
            let request = self.client.request(link.endpoint, path)?;
            if let Ok(Ok(head)) = timeout_at(half_way(end), link.send(request)).await {
                return Ok((link, head));
            }
        }
        let mut link = open(self.shared, &self.client, end).await?;
        let head = link.send(self.client.request(link.endpoint, path)?).await?;
        Ok((link, head))
    }

    fn usable_link(&mut self) -> Option<Link> {
        let idle_max = self.shared.limits.idle_max;
        self.link.take().and_then(|mut link| link.is_usable(idle_max).then_some(link))
    }

    /// Keeps the connection when the answer was read to its end.
    async fn exchange(&mut self, mut link: Link, path: &str, most: usize) -> Result<Read, Failure> {
        let head = link.send(self.client.request(link.endpoint, path)?).await?;
        let (status, date) = (head.status(), date(&head));
        match link.read(head, most).await? {
            Body::Whole(body) => {
                self.link = Some(link);
                Ok(Read { status, body, date })
            }
            Body::TooLong => Err(too_long(most)),
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let Some(link) = self.link.take().filter(|_| self.borrows) else { return };
        let mut session = self.client.session.lock();
        if session.is_lent {
            session.is_lent = false;
            session.link = link.at_rest(self.shared.limits.idle_max);
        }
    }
}

fn date(head: &Head) -> Option<Timestamp> {
    let text = head.headers().get(header::DATE)?.to_str().ok()?;
    DateTimeParser::new().parse_timestamp(text).ok()
}

/// Half of the time until `end` is for a connection that is open already.
fn half_way(end: Instant) -> Instant {
    Instant::now() + end.saturating_duration_since(Instant::now()) / 2
}

fn too_long(most: usize) -> Failure {
    Failure { code: Code::Body, detail: format!("the answer is longer than {most} bytes") }
}

/// Opens a connection to the first address that takes one, that of the last good probe before all.
/// Each gets an equal share of the time that is left, and so does the answer.
async fn open(shared: &Shared, client: &Client, end: Instant) -> Result<Link, Failure> {
    let count = client.address_count();
    let first = client.session.lock().learnt.first_endpoint;
    let mut failure = None;
    for number in 0..count {
        let endpoint = first.wrapping_add(number) % count;
        let left = end.saturating_duration_since(Instant::now());
        let share = left / (u32::from(count - number) + 1);
        match timeout(share, shared.open(client, endpoint, share, &mut |_| {})).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(failed)) => failure = Some(failed),
            Err(_) => failure = Some(silent()),
        }
    }
    let none = || Failure { code: Code::BadEndpoint, detail: "there is no address".to_owned() };
    Err(failure.unwrap_or_else(none))
}

fn silent() -> Failure {
    let detail = "no address let a connection be opened in time".to_owned();
    Failure { code: Code::ConnectTimeout, detail }
}

/// Between the two requests to an address that does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// One request on a connection of its own to each address but that of the last good probe, and
/// where that fails another one, each within `limit`: one lost packet is no dead server. Any answer
/// will do. What is learnt is in [`Client::endpoints`].
pub(super) async fn look_around(shared: &Shared, client: &Client, limit: Duration) {
    let (used, path) = {
        let session = client.session.lock();
        (session.learnt.first_endpoint, session.learnt.path.path(Instant::now().into_std()))
    };
    // All at the same time: those that are silent take their time, and others come after them.
    let others = (0..client.address_count()).filter(|&endpoint| endpoint != used);
    join_all(others.map(|endpoint| async move {
        let ask = || is_there(endpoint, path, shared, client, limit);
        let mut answered = ask().await;
        if answered == Some(false) {
            sleep(AGAIN_AFTER).await;
            answered = ask().await;
        }
        if let Some(answered) = answered {
            client.session.lock().learnt.silent.note(endpoint, answered);
        }
    }))
    .await;
}

/// Whether an address answers; `None` when that could not be asked.
async fn is_there(
    endpoint: u8,
    path: ProbePath,
    shared: &Shared,
    client: &Client,
    limit: Duration,
) -> Option<bool> {
    match timeout(limit, ask(endpoint, path, shared, client, limit)).await {
        Ok(Ok(())) => Some(true),
        Ok(Err(Failure { code: Code::OwnLimit, .. })) => None,
        Ok(Err(_)) | Err(_) => Some(false),
    }
}

async fn ask(
    endpoint: u8,
    path: ProbePath,
    shared: &Shared,
    client: &Client,
    limit: Duration,
) -> Result<(), Failure> {
    let mut link = shared.open(client, endpoint, limit, &mut |_| {}).await?;
    link.send(client.request(endpoint, path.request())?).await.map(drop)
}

impl From<Failure> for ReadError {
    fn from(Failure { code, detail }: Failure) -> Self {
        Self { code, detail: one_line(&detail).into() }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.client).finish()
    }
}
