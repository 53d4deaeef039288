//! Answers that the proxy makes up, in the API server's own form.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::encoding::Encoding;

/// A made-up answer: a `Status` object with this code.
#[derive(Debug, Clone)]
pub struct Canned {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Value,
}

impl Canned {
    /// An answer with the reason that the API server gives with this code.
    pub fn status(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "the proxy forbids it"),
            404 => ("NotFound", "not found, says the proxy"),
            409 => ("Conflict", "the object has been modified, says the proxy"),
            410 => ("Expired", "too old resource version: 1 (2)"),
            422 => ("Invalid", "invalid, says the proxy"),
            429 => ("TooManyRequests", "too many requests, please try again later"),
            500 => ("InternalError", "an internal error, says the proxy"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the request did not complete within the allotted timeout"),
            _ => ("", "an answer of the proxy"),
        };
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        let status = StatusCode::from_u16(code).expect("an HTTP status");
        Self { status, headers: Vec::new(), body }
    }

    /// Sets reason and message.
    #[must_use]
    pub fn because(mut self, reason: &str, message: &str) -> Self {
        self.body["reason"] = reason.into();
        self.body["message"] = message.into();
        self
    }

    /// Sets `details` of the Status object.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.body["details"] = details;
        self
    }

    /// Sets `Retry-After: seconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.headers.push((header::RETRY_AFTER, seconds.into()));
        self
    }

    /// The answer as an event of a watch.
    pub(super) fn event(&self, encoding: Encoding) -> Bytes {
        encoding.error(&self.body)
    }

    pub(super) fn response(&self, encoding: Encoding) -> Response<Bytes> {
        let mut response = encoding.response(encoding.status(&self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers.iter().cloned());
        response
    }
}
