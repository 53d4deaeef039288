//! In which form a page answers: as text, or as the JSON that is asked for by its full name.

use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use serving::{Reply, reply};

/// A form that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

impl Form {
    /// The first one acceptable. JSON is a document of a version, so that it must be named:
    /// `application/json;as=<kind>;v=v1beta1;g=config.k8s.io`.
    pub(super) fn wanted(headers: &HeaderMap, kind: &str) -> Option<Self> {
        let Some(accepted) = headers.get(ACCEPT) else { return Some(Self::Text) };
        let accepted = accepted.to_str().unwrap_or_default().to_ascii_lowercase();
        accepted.split(',').find_map(|range| Self::of(range, &kind.to_ascii_lowercase()))
    }

    fn of(range: &str, kind: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        match parts.next()? {
            "text/plain" | "text/*" | "*/*" => Some(Self::Text),
            "application/json" => {
                let named: Vec<&str> = parts.collect();
                let needed = [&format!("as={kind}"), "v=v1beta1", "g=config.k8s.io"];
                needed.iter().all(|part| named.contains(part)).then_some(Self::Json)
            }
            _ => None,
        }
    }
}

/// The answer to who accepts neither.
pub(super) fn refused(kind: &str) -> Reply {
    let message = format!(
        "only the following media types are accepted: text/plain, \
         application/json;as={kind};v=v1beta1;g=config.k8s.io"
    );
    reply::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", &message)
}
