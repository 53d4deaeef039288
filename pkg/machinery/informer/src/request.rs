//! The requests an informer sends, as values.

use std::time::Duration;

use form_urlencoded::Serializer;
use http::header::ACCEPT;
use kube::client::Body;
use model::Cached;

use crate::decode::Accept;

type Request = http::Request<Body>;

/// Objects per page; what every client of the API asks for.
const PAGE: &str = "500";

/// A consistent list as a stream, going on as a watch. That `resourceVersion` is *not set* makes
/// it consistent: the server first learns from etcd how far it has to be.
pub(crate) fn streamed_list<T: Cached>(lifetime: Duration) -> Result<Request, http::Error> {
    let query = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")];
    watch::<T>(lifetime, &query)
}

/// A watch of what comes after that version.
pub(crate) fn watch_from<T: Cached>(
    lifetime: Duration,
    version: u64,
) -> Result<Request, http::Error> {
    watch::<T>(lifetime, &[("resourceVersion", &version.to_string())])
}

/// A page of a consistent list: the first without a token, later ones by the token before.
pub(crate) fn page<T: Cached>(token: Option<&str>) -> Result<Request, http::Error> {
    let mut query = Serializer::new(String::new());
    query.append_pair("limit", PAGE);
    if let Some(token) = token {
        query.append_pair("continue", token);
    }
    get(T::PATH, &query.finish(), "list", Accept::of::<T>().page)
}

fn watch<T: Cached>(lifetime: Duration, more: &[(&str, &str)]) -> Result<Request, http::Error> {
    let query = Serializer::new(String::new())
        .append_pair("watch", "true")
        .append_pair("allowWatchBookmarks", "true")
        .append_pair("timeoutSeconds", &lifetime.as_secs().to_string())
        .extend_pairs(more)
        .finish();
    get(T::PATH, &query, "watch", Accept::of::<T>().stream)
}

/// The verb goes where kube's own calls put it: the client's metrics read it there.
fn get(
    path: &str,
    query: &str,
    verb: &'static str,
    accept: &'static str,
) -> Result<Request, http::Error> {
    http::Request::get(format!("{path}?{query}"))
        .header(ACCEPT, accept)
        .extension(verb)
        .body(Body::empty())
}
