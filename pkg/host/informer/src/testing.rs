//! An API server for tests of the informer: the test receives each request and answers it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use api_server_double::{Calls, Reply};
use bytes::Bytes;
use futures::channel::mpsc;
use futures::stream::{self, StreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// More than any wait of the informer; time is paused in tests that get this far.
const PATIENCE: Duration = Duration::from_secs(2000);

pub(crate) struct Server {
    calls: Calls,
    comparisons: VecDeque<Call>,
}

/// A request that waits for its answer. Dropped, it is a connection that breaks.
pub(crate) struct Call {
    pub(crate) at: Instant,
    query: HashMap<String, String>,
    inner: api_server_double::Call,
}

impl Server {
    pub(crate) fn new() -> (Client, Self) {
        let (client, calls) = Calls::new();
        (client, Self { calls, comparisons: VecDeque::new() })
    }

    /// The next request that does not compare the store.
    pub(crate) async fn call(&mut self) -> Call {
        loop {
            let call = self.any_call().await;
            if !call.is_comparison() {
                return call;
            }
            self.comparisons.push_back(call);
        }
    }

    /// The next request that compares the store; none may come before it that does not.
    pub(crate) async fn comparison(&mut self) -> Call {
        if let Some(call) = self.comparisons.pop_front() {
            return call;
        }
        let call = self.any_call().await;
        assert!(call.is_comparison(), "{:?}", call.query);
        call
    }

    /// Watches from that version come and end twice; whether the store was compared meanwhile.
    pub(crate) async fn compares_between_watches(&mut self, version: &str, wire: Wire) -> bool {
        let mut wire = wire;
        for _ in 0..2 {
            sleep(Duration::from_secs(2)).await;
            drop(wire);
            wire = self.watch_from(version).await.stream();
        }
        !self.comparisons.is_empty()
    }

    /// The next request.
    pub(crate) async fn any_call(&mut self) -> Call {
        let call = timeout(PATIENCE, self.calls.next()).await;
        let call = call.expect("the informer must send another request");
        let query = form_urlencoded::parse(call.asked.query().as_bytes()).into_owned().collect();
        Call { at: call.asked.at, query, inner: call }
    }

    /// The next request, which must be a streamed list.
    pub(crate) async fn streamed_list(&mut self) -> Call {
        let call = self.call().await;
        assert_eq!(call.get("sendInitialEvents"), Some("true"), "{:?}", call.query);
        call
    }

    /// The next request, which must be a page of a list.
    pub(crate) async fn page(&mut self) -> Call {
        let call = self.call().await;
        assert_eq!(call.get("watch"), None, "{:?}", call.query);
        assert_ne!(call.get("limit"), Some("1"), "{:?}", call.query);
        call
    }

    /// The next request, which must ask for the newest version.
    pub(crate) async fn newest_version(&mut self) -> Call {
        let call = self.call().await;
        assert_eq!(call.get("limit"), Some("1"), "{:?}", call.query);
        call
    }

    /// The next request, which must be a watch from that version.
    pub(crate) async fn watch_from(&mut self, version: &str) -> Call {
        let call = self.call().await;
        assert_eq!(call.get("sendInitialEvents"), None, "{:?}", call.query);
        assert_eq!(call.get("resourceVersion"), Some(version), "{:?}", call.query);
        call
    }

    /// Answers the next request with a whole streamed list, whose stream goes on.
    pub(crate) async fn serve_list(&mut self, version: u64, objects: &[Value]) -> Wire {
        let wire = self.streamed_list().await.stream();
        for object in objects {
            wire.event("ADDED", object);
        }
        wire.end_of_list(version);
        wire
    }
}

impl Call {
    pub(crate) fn path(&self) -> &str {
        self.inner.asked.path()
    }

    pub(crate) fn get(&self, parameter: &str) -> Option<&str> {
        self.query.get(parameter).map(String::as_str)
    }

    fn is_comparison(&self) -> bool {
        self.get("resourceVersionMatch") == Some("Exact")
    }

    pub(crate) fn accept(&self) -> &str {
        self.inner.asked.header("accept")
    }

    /// Answers 200 and leaves the body open.
    pub(crate) fn stream(self) -> Wire {
        self.stream_of("application/json")
    }

    /// Answers 200 in this content type and leaves the body open.
    pub(crate) fn stream_of(self, content_type: &'static str) -> Wire {
        let (sender, frames) = mpsc::unbounded();
        self.inner.answer(Reply::Body(content_type, frames.boxed()));
        Wire(sender)
    }

    pub(crate) fn json(self, code: u16, body: &Value) {
        self.inner.answer(Reply::Json(code, body.clone()));
    }

    /// Answers 200 with a whole body.
    pub(crate) fn body(self, content_type: &'static str, body: impl Into<Bytes>) {
        let body = stream::iter([Ok(body.into())]);
        self.inner.answer(Reply::Body(content_type, body.boxed()));
    }

    pub(crate) fn page(self, version: u64, next: &str, objects: &[Value]) {
        let version = version.to_string();
        let metadata = json!({"resourceVersion": version, "continue": next});
        self.json(200, &json!({"kind": "NodeList", "metadata": metadata, "items": objects}));
    }

    pub(crate) fn refuse(self, code: u16, reason: &str) {
        self.json(code, &status(code, reason));
    }

    pub(crate) fn refuse_for(self, code: u16, seconds: u64) {
        self.inner.answer(Reply::RetryAfter(code, seconds, json!("slow down")));
    }
}

/// The open body of an answer. Dropped, it ends as a server ends a watch.
pub(crate) struct Wire(mpsc::UnboundedSender<Result<Bytes, io::Error>>);

impl Wire {
    pub(crate) fn raw(&self, bytes: impl Into<Bytes>) {
        self.0.unbounded_send(Ok(bytes.into())).expect("the informer must read on");
    }

    pub(crate) fn event(&self, kind: &str, object: &Value) {
        self.raw(format!("{}\n", json!({"type": kind, "object": object})));
    }

    pub(crate) fn bookmark(&self, version: u64) {
        let version = version.to_string();
        self.event("BOOKMARK", &json!({"metadata": {"resourceVersion": version}}));
    }

    pub(crate) fn end_of_list(&self, version: u64) {
        let version = version.to_string();
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": version, "annotations": annotations});
        self.event("BOOKMARK", &json!({"kind": "Node", "metadata": metadata}));
    }

    pub(crate) fn error(&self, code: u16, reason: &str) {
        self.event("ERROR", &status(code, reason));
    }

    pub(crate) fn break_off(self) {
        self.0.unbounded_send(Err(io::Error::other("connection reset"))).unwrap();
    }

    /// The informer has let go of the stream.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"})
}

/// A Node with a UID made of its name.
pub(crate) fn node(name: &str, version: u64) -> Value {
    node_with_uid(name, &format!("uid-{name}"), version)
}

pub(crate) fn node_with_uid(name: &str, uid: &str, version: u64) -> Value {
    let version = version.to_string();
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}, "spec": {}})
}
