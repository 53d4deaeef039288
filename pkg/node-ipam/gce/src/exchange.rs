//! [`Exchange`]: one call of the API, from its turn to its answer. What is called stands in
//! `client.rs`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex as SyncMutex;
use resilience::{Fence, Rate, TokenBucket};
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};
use transport::SendPermit;

use super::error::{GceError, classify};
use super::metadata::{Answer, Channel};
use super::metrics::Metrics;
use super::tokens::Tokens;

/// One request and its answer.
const LIMIT: Duration = Duration::from_secs(30);

/// State that all calls share.
pub(crate) struct Exchange {
    pub(crate) channel: Channel,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) fence: Fence,
    /// Refuses every write (`rule:dry-run-writes-nothing-to-google`).
    pub(crate) dry_run: bool,
    pub(crate) agent: HeaderValue,
}

/// Asked when a write is about to be sent: whether it is still wanted.
pub type IsWanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// One call.
pub(crate) struct Call<'a> {
    /// The label of metrics.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    /// JSON; empty for none.
    pub(crate) body: Bytes,
    /// The object of the call, for errors.
    pub(crate) what: &'a str,
    /// For writes.
    pub(crate) is_wanted: Option<IsWanted<'a>>,
}

impl<'a> Call<'a> {
    /// A read.
    pub(crate) fn get(name: &'static str, url: &'a str, what: &'a str) -> Self {
        Self { name, method: Method::GET, url, body: Bytes::new(), what, is_wanted: None }
    }
}

impl Exchange {
    /// Makes a call and reads its answer. After a 401 it is made once more with a new token:
    /// a token can be revoked, or expire while a call waits.
    pub(crate) async fn make<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, GceError> {
        if self.dry_run && !call.method.is_safe() {
            return Err(GceError::DryRun);
        }
        let mut bearer = self.tokens.bearer().await?;
        let mut answer = self.send(call, &bearer).await;
        if answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::UNAUTHORIZED) {
            self.tokens.forget(&bearer).await;
            bearer = self.tokens.bearer().await?;
            answer = self.send(call, &bearer).await;
        }
        let read = answer.and_then(|answer| read(&answer, call.what));
        self.metrics.called(call.name, &read);
        if read.as_ref().is_err_and(GceError::slows_all) {
            self.limits.throttled();
        }
        read
    }

    async fn send(&self, call: &Call<'_>, bearer: &HeaderValue) -> Result<Answer, GceError> {
        let request = self.request(call, bearer)?;
        let _turn = self.limits.turn().await;
        if let Some(is_wanted) = call.is_wanted {
            // Asked last: waiting for a turn can take longer than a lease.
            self.fence.check().map_err(GceError::not_sent)?;
            if !is_wanted() {
                return Err(GceError::Withdrawn);
            }
        }
        self.channel.ask(request, LIMIT).await
    }

    /// A write is asked about until its bytes have left (`rule:held-up-writes-are-asked-again`).
    pub(crate) fn request(
        &self,
        call: &Call<'_>,
        bearer: &HeaderValue,
    ) -> Result<Request<Full<Bytes>>, GceError> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(call.url)
            .header(AUTHORIZATION, bearer)
            .header(USER_AGENT, &self.agent)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(Full::from(call.body.clone()))
            .map_err(GceError::not_sent)?;
        if call.is_wanted.is_some() {
            let fence = self.fence.clone();
            request.extensions_mut().insert(SendPermit::new(move || fence.check().is_ok()));
        }
        Ok(request)
    }
}

fn read<T: DeserializeOwned>(answer: &Answer, what: &str) -> Result<T, GceError> {
    if !answer.status.is_success() {
        return Err(classify(answer.status, answer.retry_after, &answer.body, what));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|error| GceError::unanswered(format!("the answer cannot be read: {error}")))
}

/// Most calls under way at once.
pub const CALLS_AT_ONCE: usize = 32;

/// Below the 25 in a second that a project may read of a region unless it asks for more.
const RATE: Rate = Rate { per_second: 20.0, burst: 60 };

/// Shared by all calls.
pub(crate) struct Limits {
    slots: Semaphore,
    bucket: SyncMutex<TokenBucket>,
    /// First come, first served: tokio's lock is fair.
    line: Mutex<()>,
}

impl Limits {
    pub(crate) fn new() -> Self {
        let bucket = SyncMutex::new(TokenBucket::new(RATE, Instant::now()));
        Self { slots: Semaphore::new(CALLS_AT_ONCE), bucket, line: Mutex::default() }
    }

    /// Waits until a call may be sent. The call is under way until what is returned is dropped,
    /// always `Some`: the semaphore is never closed.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let _first = self.line.lock().await;
        let slot = self.slots.acquire().await.ok();
        loop {
            let taken = self.bucket.lock().take(Instant::now());
            match taken {
                Ok(()) => return slot,
                Err(wait) => sleep(wait).await,
            }
        }
    }

    /// Google has refused a call as one too many.
    pub(crate) fn throttled(&self) {
        self.bucket.lock().throttled(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// `rule:google-is-called-within-limits`
    #[tokio::test(start_paused = true)]
    async fn so_many_calls_are_under_way_and_the_next_waits_for_one_to_end() {
        let limits = Limits::new();
        let mut turns = Vec::new();
        for _ in 0..CALLS_AT_ONCE {
            turns.push(limits.turn().await);
        }
        let wait = timeout(Duration::from_secs(600), limits.turn()).await;
        assert!(wait.is_err(), "one more than there may be");
        turns.pop();
        timeout(Duration::from_secs(1), limits.turn()).await.expect("one has ended");
    }

    /// `rule:google-is-called-within-limits`
    #[tokio::test(start_paused = true)]
    async fn calls_that_end_at_once_are_paced() {
        let (limits, start) = (Limits::new(), Instant::now());
        for _ in 0..160 {
            drop(limits.turn().await);
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
    }
}
