//! The requests that a rule matches.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, header};

use super::encoding::Encoding;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// GET, PATCH, ….
    pub method: Method,
    /// Path without the query: `/api/v1/nodes/a`.
    pub path: String,
    /// Query without the `?`; empty without a query.
    pub query: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Request {
    /// The first value of a query parameter, as it was sent (not decoded).
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A watch: its answer has no end.
    pub fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), Some("true" | "1"))
    }

    /// A watch that begins with the objects there are.
    pub fn is_watch_list(&self) -> bool {
        self.is_watch() && matches!(self.parameter("sendInitialEvents"), Some("true" | "1"))
    }

    /// The body as JSON; null when the body is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The client's name for itself; empty when it gives none.
    pub fn user_agent(&self) -> &str {
        self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("")
    }

    /// Whether it asks for protobuf before anything else.
    pub fn wants_protobuf(&self) -> bool {
        Encoding::asked_for(&self.headers) == Encoding::Protobuf
    }

    /// Whether it brings a bearer token.
    pub fn has_token(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
    }
}

type Condition = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// Conditions that all must hold.
#[derive(Clone, Default)]
pub struct Match(Vec<Condition>);

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of this method.
    pub fn method(method: Method) -> Self {
        Self::any().and(move |request| request.method == method)
    }

    /// PATCHes of single Nodes, not of their status.
    pub fn node_patches() -> Self {
        Self::method(Method::PATCH)
            .path_prefix("/api/v1/nodes/")
            .and(|request| !request.path["/api/v1/nodes/".len()..].contains('/'))
    }

    /// GETs of one Node.
    pub fn node_gets() -> Self {
        Self::method(Method::GET).path_prefix("/api/v1/nodes/")
    }

    /// Lists of Nodes, as pages or as the beginning of a watch.
    pub fn node_lists() -> Self {
        Self::method(Method::GET)
            .path("/api/v1/nodes")
            .and(|request| !request.is_watch() || request.is_watch_list())
            // A candidate's question whether the cluster had a leader before is not of the cache.
            .and(|request| !request.user_agent().ends_with("/leader-election"))
    }

    /// Watches of Nodes, with or without the objects there are.
    pub fn node_watches() -> Self {
        Self::method(Method::GET).path("/api/v1/nodes").and(Request::is_watch)
    }

    /// Requests of leader election: everything about Leases but the looks of the readiness check.
    pub fn leases() -> Self {
        Self::any()
            .path_prefix("/apis/coordination.k8s.io/v1/")
            .and(|request| !request.user_agent().ends_with("/readiness"))
    }

    /// POSTs of core Events.
    pub fn events() -> Self {
        Self::method(Method::POST)
            .path_prefix("/api/v1/namespaces/")
            .and(|request| request.path.ends_with("/events"))
    }

    /// Adds the condition that the path is equal.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        let path = path.to_owned();
        self.and(move |request| request.path == path)
    }

    /// Adds the condition that the path begins with this prefix.
    #[must_use]
    pub fn path_prefix(self, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        self.and(move |request| request.path.starts_with(&prefix))
    }

    /// Adds the condition that the query contains this text.
    #[must_use]
    pub fn query_contains(self, part: &str) -> Self {
        let part = part.to_owned();
        self.and(move |request| request.query.contains(&part))
    }

    /// Adds the condition that the body contains this text.
    #[must_use]
    pub fn body_contains(self, part: &str) -> Self {
        let part = part.to_owned();
        self.and(move |request| String::from_utf8_lossy(&request.body).contains(&part))
    }

    /// Adds a condition.
    #[must_use]
    pub fn and(mut self, condition: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.0.push(Arc::new(condition));
        self
    }

    /// Whether all conditions hold.
    pub fn fits(&self, request: &Request) -> bool {
        self.0.iter().all(|condition| condition(request))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Match({} conditions)", self.0.len())
    }
}
