//! The requests of one kind, one attempt each.

use std::time::Duration;

use client::{Answer, CallError};
use http::{Method, Request, header};
use kube::client::Body;
use kube_api::Resource;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::{Error, Outcome, Why, of_read, of_write};
use crate::own_writes::OpenWrites;

/// The API server's own limit for a write that brings none, which ours all do.
const UNBOUNDED: Duration = Duration::from_secs(34);

/// Part of an object that a request writes, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The subresource `status`.
    Status,
}

/// How a request says what it wants, by its method and content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    MergePatch,
    Apply { force: bool },
    Delete,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Create => Method::POST,
            Self::MergePatch | Self::Apply { .. } => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Create | Self::Delete => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    /// The word that errors and kube's tracing use.
    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::MergePatch => "patch",
            Self::Apply { .. } => "apply",
            Self::Delete => "delete",
        }
    }
}

/// The calls of one controller on one kind.
#[derive(Clone)]
pub(crate) struct Calls {
    client: kube::Client,
    pub(crate) resource: Resource,
    manager: String,
    timeout: Duration,
    pub(crate) open: OpenWrites,
}

impl Calls {
    pub(crate) fn new(
        client: kube::Client,
        resource: Resource,
        manager: String,
        timeout: Duration,
    ) -> Self {
        Self { client, resource, manager, timeout, open: OpenWrites::default() }
    }

    /// Calls of the same kind through another client.
    pub(crate) fn through(&self, client: kube::Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// One consistent read.
    pub(crate) async fn read(&self, key: &str) -> Result<Value, Error> {
        let read = async {
            let path = self.path(key)?;
            let request = Request::get(path).header(header::ACCEPT, "application/json");
            let answer = self.send(request, Body::empty(), "get").await?;
            of_read(&answer, &self.resource.plural, name(key))
        };
        read.await.map_err(|why| self.error("read", key, why))
    }

    /// One attempt to write.
    pub(crate) async fn write(
        &self,
        key: &str,
        part: Part,
        verb: Verb,
        body: &Value,
    ) -> Result<Value, Error> {
        let write = async {
            let uri = self.uri(key, part, verb)?;
            let request = Request::builder()
                .method(verb.method())
                .uri(uri)
                .header(header::CONTENT_TYPE, verb.content_type())
                .header(header::ACCEPT, "application/json");
            let body = Body::from(body.to_string().into_bytes());
            let answer = self.send(request, body, verb.word()).await?;
            of_write(&answer, &self.resource.plural, name(key))
        };
        write.await.map_err(|why| {
            if why.outcome() == Outcome::Unknown {
                let settled_at = why.settled_at().unwrap_or_else(|| Instant::now() + UNBOUNDED);
                self.open.note(settled_at);
            }
            self.error(verb.word(), key, why)
        })
    }

    pub(crate) fn error(&self, verb: &'static str, key: &str, why: Why) -> Error {
        Error { verb, object: format!("{} {key}", self.resource.plural), why }
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: Body,
        word: &'static str,
    ) -> Result<Answer, CallError> {
        let mut request =
            request.body(body).map_err(|error| CallError::NotSent(Box::new(error)))?;
        request.extensions_mut().insert(word);
        client::answer(&self.client, request, self.timeout).await
    }

    fn path(&self, key: &str) -> Result<String, Why> {
        let namespaced = key.contains('/');
        if namespaced != self.resource.namespaced || !key.splitn(2, '/').all(is_name) {
            return Err(Why::Key);
        }
        Ok(self.resource.object_path(key))
    }

    fn uri(&self, key: &str, part: Part, verb: Verb) -> Result<String, Why> {
        let object = self.path(key)?;
        let path = match (verb, part) {
            (Verb::Create, _) => {
                self.resource.collection_path(key.split_once('/').map(|(namespace, _)| namespace))
            }
            (_, Part::Main) => object,
            (_, Part::Status) => format!("{object}/status"),
        };
        if verb == Verb::Delete {
            return Ok(path);
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fieldManager", &self.manager);
        if verb == Verb::Create {
            // Without a field that its schema lacks the object would mean something else.
            query.append_pair("fieldValidation", "Strict");
        }
        if let Verb::Apply { force: true } = verb {
            query.append_pair("force", "true");
        }
        Ok(format!("{path}?{}", query.finish()))
    }
}

/// Name without the namespace.
fn name(key: &str) -> &str {
    key.split_once('/').map_or(key, |(_, name)| name)
}

/// Whether it can be one step of a path and nothing else: names come
/// from references that users write.
fn is_name(text: &str) -> bool {
    let legal = |c: u8| c.is_ascii_alphanumeric() || b"-.:_".contains(&c);
    !["", ".", ".."].contains(&text) && text.bytes().all(legal)
}

#[cfg(test)]
mod tests;
