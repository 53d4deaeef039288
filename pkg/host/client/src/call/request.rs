//! What the layers need to know of a request: is it a watch, does it write, how long may it take.
//! Read by the gate, the attempt and the dispatch layer.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use tokio::time::Instant;

/// Ordinary calls (`rule:every-call-ends`).
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
#[error("the request was withdrawn before it left")]
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

/// Sets the parameter `timeout` of `uri`: the limit is judged where the request is sent, and nobody
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
