//! [`Asked`]: one request as the server saw it.

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::Value;
use tokio::time::Instant;

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Number of requests before this one.
    pub number: usize,
    /// Time of arrival.
    pub at: Instant,
    /// The request without its body. In memory its extensions are those that the client gave it.
    pub head: Parts,
    /// The body, which may be empty.
    pub body: Bytes,
}

impl Asked {
    /// The HTTP method.
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// The query, empty when absent.
    pub fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// A header, empty when it is absent or no text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// The body, null when it is empty or no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
