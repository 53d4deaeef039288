//! What the layers need to know of a request or answer: is it a watch, does it write, how long may
//! it take, when may it be repeated. Read by the gate, the attempt, the retry and the dispatch
//! layer.

use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request};
use tokio::time::Instant;

/// Ordinary calls (`host.md` 4.2).
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Lists, which may carry a whole collection (`host.md` 4.2).
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// A longer `Retry-After` is a mistake of something in between; the API server asks for seconds.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

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

/// The caller's [`SendCheck`] said no.
#[derive(Debug, thiserror::Error)]
#[error("the request was withdrawn before it left")]
pub(crate) struct Withdrawn;

/// Response extension: when the attempt that got this answer left the throttle. Lets
/// [`answer`](crate::answer) bound the reading of the body by the same limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptStarted(pub(crate) Instant);

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

/// `Retry-After` in whole seconds, the only form the API server uses and stock reads (`host.md`
/// 4.3).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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
    fn retry_after_is_read_in_whole_seconds_only_and_is_bounded() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(&headers)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("0"), Some(Duration::ZERO));
        assert_eq!(read("1.5"), None);
        assert_eq!(read("-1"), None);
        assert_eq!(read("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(read("18446744073709551615"), Some(RETRY_AFTER_MAX));
        assert_eq!(retry_after(&HeaderMap::new()), None);
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
