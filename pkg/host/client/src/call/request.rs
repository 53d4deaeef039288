//! A request as the layers of a client see it: whether it is a watch or a write, how long it may take,
//! how far it got ([`Progress`]), and what the layers have in common ([`Sender`]).

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri};
use http_body::Body as _;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Ordinary calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Lists, which may carry a whole collection.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// Request extension: bounds ONE attempt, from leaving the throttle to the end of the answer's
/// headers. Without it an attempt gets 30 s, a list 60 s, and a watch has no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttemptTimeout(pub(crate) Duration);

/// Request extension: asked once, after every wait in the client, immediately before the request
/// goes to the wire, and in the same poll as the caller's own future. `false` withdraws the
/// request. What was true when the caller asked for the call may not be any more when the throttle
/// lets it go.
#[derive(Clone)]
pub struct SendCheck(pub Arc<dyn Fn() -> bool + Send + Sync>);

/// Request extension: when the work began that the request is part of. In the line before the
/// throttle older work goes first (`rule:the-oldest-goes-first`); without this it began now.
#[derive(Clone, Copy, Debug)]
pub struct WaitingSince(pub Instant);

/// The caller's [`SendCheck`] said no.
#[derive(Debug, thiserror::Error)]
#[error("the request was cancelled before it was sent")]
pub(crate) struct Withdrawn;

pub(crate) fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

pub(crate) fn is_mutating(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE)
}

/// Time limit of one attempt, `None` for a watch.
pub(crate) fn attempt_timeout<B>(request: &Request<B>) -> Option<Duration> {
    if let Some(AttemptTimeout(limit)) = request.extensions().get() {
        return Some(*limit);
    }
    if is_watch(request) {
        return None;
    }
    // kube's `Api` notes the verb; a raw request has none.
    let is_list = request.extensions().get::<&'static str>().is_some_and(|v| v.starts_with("list"));
    Some(if is_list { LIST_TIMEOUT } else { CALL_TIMEOUT })
}

/// Sets the parameter `timeout` of `uri`: the limit is computed where the request is sent, and nothing
/// else knows it.
pub(crate) fn set_timeout(uri: &mut Uri, timeout: Duration) -> Result<(), http::Error> {
    set_parameter(uri, "timeout=", &format!("{}ms", timeout.as_millis()))
}

/// Has the server judge a write and store nothing.
pub(crate) fn set_dry_run(uri: &mut Uri) -> Result<(), http::Error> {
    set_parameter(uri, "dryRun=", "All")
}

/// Sets a parameter in place of one that the caller gave; `name` ends with its sign.
fn set_parameter(uri: &mut Uri, name: &str, value: &str) -> Result<(), http::Error> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let mut target =
        String::with_capacity(path.len() + query.len() + "?&".len() + name.len() + value.len());
    target.extend([path, "?"]);
    let others = query.split('&');
    for pair in others.filter(|pair| !pair.is_empty() && !pair.starts_with(name)) {
        target.extend([pair, "&"]);
    }
    target.extend([name, value]);
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target)?);
    *uri = Uri::from_parts(parts)?;
    Ok(())
}

/// Time for a request to travel to the server, whose own clock starts when it arrives. An
/// assumption: one that takes longer must be cancelled by the reset right behind it
/// (`rule:writes-end-with-their-timeout`). The leader's fence keeps as much of the lease, or a
/// quarter of a lease under 4 s.
pub const TRAVEL: Duration = Duration::from_secs(1);

/// How long after it left a write may still be carried out by the server, which was given `timeout`
/// for it and gets it within the travel time.
pub fn applicable_for(timeout: Duration) -> Duration {
    timeout.saturating_add(TRAVEL)
}

/// The state of one attempt; put into the request's extensions.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The request has a body that the connection asks for, as every write has.
    is_asked_for: bool,
    /// When the attempt is given up; `None` for a watch.
    deadline: Option<Instant>,
    state: Mutex<State>,
}

/// One lock over both, so that whoever sees that the body was taken sees until when it counts.
#[derive(Debug)]
struct State {
    body: BodyState,
    settled_at: Option<Instant>,
}

/// Leaves [`Kept`](Self::Kept) once: the connection, the fence and the end of the attempt compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Kept,
    Taken,
    Refused,
    GivenUp,
}

/// How far a request got whose attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The connection never took the body and never will: the server cannot act on the request.
    NotSent,
    /// The fence had closed when the body was asked for.
    Refused,
    /// The request may have been sent; the server may act on it until then, `None` without an end.
    MayHaveLeft(Option<Instant>),
}

impl Progress {
    pub(crate) fn new(request: &Request<Body>, deadline: Option<Instant>) -> Self {
        Self {
            is_asked_for: is_mutating(request.method()) || !request.body().is_end_stream(),
            deadline,
            state: Mutex::new(State { body: BodyState::Kept, settled_at: None }),
        }
    }

    /// When the attempt is given up; `None` for a watch.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time left until the attempt's own deadline.
    pub(crate) fn time_left(&self) -> Duration {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }

    /// A write leaves now, and the server will give it up `timeout` after it has arrived. A request
    /// without limit (zero: a read) never settles anything.
    pub(crate) fn leaves(&self, timeout: Duration) {
        self.state.lock().leaves(timeout);
    }

    /// The connection asks for the body, which is when the request really leaves. `false`: it must
    /// not have it, because the attempt has ended.
    #[must_use]
    pub(crate) fn take_body(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if state.body != BodyState::Kept {
            return false;
        }
        state.body = BodyState::Taken;
        state.leaves(timeout);
        true
    }

    /// The fence closed before the connection asked for the body.
    pub(crate) fn refuse_body(&self) {
        let mut state = self.state.lock();
        if state.body == BodyState::Kept {
            state.body = BodyState::Refused;
        }
    }

    /// The attempt has ended without an answer: a body that is still here never leaves.
    pub(crate) fn end(&self) -> Reach {
        let mut state = self.state.lock();
        if state.body == BodyState::Kept && self.is_asked_for {
            state.body = BodyState::GivenUp;
        }
        match state.body {
            BodyState::GivenUp => Reach::NotSent,
            BodyState::Refused => Reach::Refused,
            BodyState::Taken | BodyState::Kept => Reach::MayHaveLeft(state.settled_at),
        }
    }

    /// From when on the server is taken to carry out the write no longer; `None` if none was sent.
    pub(crate) fn settled_at(&self) -> Option<Instant> {
        self.state.lock().settled_at
    }
}

impl State {
    fn leaves(&mut self, timeout: Duration) {
        if !timeout.is_zero() {
            self.settled_at = Instant::now().checked_add(applicable_for(timeout));
        }
    }
}

/// Sends one request, itself or through what stands below it. A trait of our own, because its
/// futures borrow: a stack of tower services would box one per layer and request.
pub(crate) trait Sender: Send + Sync {
    /// Body of the answer.
    type Answer;
    /// The error of a request without an answer.
    type Error;

    /// Sends one request. Giving up the future gives up the request.
    fn send(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Answer>, Self::Error>> + Send;
}

/// Tests script a layer by a function.
#[cfg(test)]
impl<F, Sending, Answer, Error> Sender for F
where
    F: Fn(Request<Body>) -> Sending + Send + Sync,
    Sending: Future<Output = Result<Response<Answer>, Error>> + Send,
{
    type Answer = Answer;
    type Error = Error;

    async fn send(&self, request: Request<Body>) -> Result<Response<Answer>, Error> {
        self(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(uri: &str) -> Request<()> {
        Request::get(uri).body(()).unwrap()
    }

    #[test]
    fn a_watch_is_known_by_its_query() {
        assert!(is_watch(&get("/api/v1/nodes?watch=true&timeoutSeconds=300")));
        assert!(is_watch(&get("/api/v1/nodes?allowWatchBookmarks=true&watch=1")));
        assert!(!is_watch(&get("/api/v1/nodes?allowWatchBookmarks=true")));
        assert!(!is_watch(&get("/api/v1/nodes/watch=true")));
    }

    #[test]
    fn attempts_get_30_s_lists_60_s_watches_no_limit_and_an_explicit_limit_wins() {
        assert_eq!(attempt_timeout(&get("/api/v1/nodes/a")), Some(CALL_TIMEOUT));
        assert_eq!(attempt_timeout(&get("/api/v1/nodes?watch=true")), None);

        let mut list = get("/api/v1/nodes");
        list.extensions_mut().insert("list");
        assert_eq!(attempt_timeout(&list), Some(LIST_TIMEOUT));

        list.extensions_mut().insert(AttemptTimeout(Duration::from_secs(5)));
        assert_eq!(attempt_timeout(&list), Some(Duration::from_secs(5)));
    }

    #[test]
    fn the_timeout_joins_the_query_and_replaces_one_that_is_there() {
        for (before, after) in [
            ("/a", "/a?timeout=4750ms"),
            ("/a?", "/a?timeout=4750ms"),
            ("/a?fieldManager=x&force=true", "/a?fieldManager=x&force=true&timeout=4750ms"),
            ("/a?timeout=1h&dryRun=All", "/a?dryRun=All&timeout=4750ms"),
            ("https://api:6443/a?x=%2F", "https://api:6443/a?x=%2F&timeout=4750ms"),
        ] {
            let mut uri: Uri = before.parse().unwrap();
            set_timeout(&mut uri, Duration::from_millis(4_750)).unwrap();
            assert_eq!(uri.to_string(), after);
        }
    }

    #[test]
    fn a_dry_run_is_one_whatever_the_caller_says() {
        for (before, after) in [("/a", "/a?dryRun=All"), ("/a?dryRun=&x=1", "/a?x=1&dryRun=All")] {
            let mut uri: Uri = before.parse().unwrap();
            set_dry_run(&mut uri).unwrap();
            assert_eq!(uri.to_string(), after);
        }
    }

    #[test]
    fn only_the_four_writing_methods_are_mutating() {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(is_mutating(&method), "{method}");
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(!is_mutating(&method), "{method}");
        }
    }
}
