//! `Warning` headers of the API server, such as that a field or an API is deprecated: each text once in
//! the life of the process (`rule:server-warnings-are-told-once`). Read by the attempt layer.

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::WARNING;
use parking_lot::Mutex;
use tracing::info;

/// More different texts are not remembered, and then not told either: somebody writes what he likes.
const KINDS: usize = 256;
/// More of one text is not told.
const LENGTH: usize = 1024;

/// The process's: several clients are warned of the same things.
pub(crate) static WARNINGS: ServerWarnings = ServerWarnings::new();

/// What was told so far.
pub(crate) struct ServerWarnings(Mutex<BTreeSet<String>>);

impl ServerWarnings {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Tells what is new in the headers of an answer.
    pub(crate) fn tell(&self, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            let Some(text) = value.to_str().ok().and_then(text) else { continue };
            if self.is_new(&text) {
                info!(v = 2, warning = %text, "The API server warns");
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut told = self.0.lock();
        told.len() < KINDS && told.insert(text.to_owned())
    }
}

/// What is quoted in `299 - "text"`, the one code that Kubernetes sends.
fn text(header: &str) -> Option<String> {
    let rest = header.trim().strip_prefix("299 ")?;
    let (_, quoted) = rest.split_once(" \"")?;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while text.len() < LENGTH {
        match characters.next()? {
            '"' => break,
            '\\' => text.push(characters.next()?),
            plain => text.push(plain),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_text_is_what_is_quoted() {
        for (header, expected) in [
            (r#"299 - "v1 Endpoints is deprecated""#, Some("v1 Endpoints is deprecated")),
            (r#"299 kube "unknown field \"spec.x\"" "date""#, Some("unknown field \"spec.x\"")),
            (r#"199 - "something else""#, None),
            (r#"299 - "without an end"#, None),
            ("299 -", None),
            ("", None),
        ] {
            assert_eq!(text(header).as_deref(), expected, "{header}");
        }
        let long = format!("299 - \"{}\"", "x".repeat(100_000));
        assert_eq!(text(&long).unwrap().len(), LENGTH);
    }

    #[test]
    fn each_text_is_told_once_and_only_so_many() {
        let warnings = ServerWarnings::new();
        let log = log_capture::Capture::begin();
        let mut headers = HeaderMap::new();
        for text in ["one", "two", "one"] {
            let value = HeaderValue::from_str(&format!("299 - {text:?}")).unwrap();
            headers.append(WARNING, value);
        }
        warnings.tell(&headers);
        warnings.tell(&headers);
        let told = log.with("The API server warns");
        assert_eq!(told.len(), 2, "{told:?}");
        for number in 0..2 * KINDS {
            warnings.is_new(&number.to_string());
        }
        assert_eq!(warnings.0.lock().len(), KINDS);
    }
}
