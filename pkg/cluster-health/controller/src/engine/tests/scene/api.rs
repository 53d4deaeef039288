//! [`Api`]: a management API that is a function.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use client::CallError;
use futures::future::pending;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_api::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::tke::{CLUSTERS, MACHINES};

/// The management API.
#[derive(Default)]
pub(crate) struct Api {
    refusing: AtomicBool,
    hanging: AtomicBool,
    /// Writes of objects whose keys begin so have no answer, and may be carried out for a while.
    open: Mutex<Option<String>>,
    writes_take: Mutex<Duration>,
    writes: AtomicUsize,
    written: Mutex<HashMap<String, String>>,
    /// The newest of each path.
    applied: Mutex<HashMap<String, Value>>,
    events: Mutex<Vec<String>>,
    /// UIDs and versions of objects that can be read.
    versions: Mutex<HashMap<String, (String, u64)>>,
}

impl Api {
    pub(crate) fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::Relaxed);
    }

    /// Writes of status get no answer from now on.
    pub(crate) fn hang(&self) {
        self.hanging.store(true, Ordering::Relaxed);
    }

    /// From now on it stays open what becomes of writes of objects whose keys begin so.
    pub(crate) fn leave_open(&self, keys: &str) {
        *self.open.lock() = Some(keys.to_owned());
    }

    /// Writes of status take so long from now on.
    pub(crate) fn delay_writes(&self, time: Duration) {
        *self.writes_take.lock() = time;
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// The standing that the object tells.
    pub(crate) fn written(&self, key: &str) -> Option<String> {
        self.written.lock().get(key).cloned()
    }

    /// The status of the Machine of this name as it was applied last.
    pub(crate) fn machine(&self, name: &str) -> Option<Value> {
        self.status(&MACHINES, name)
    }

    /// The status of a Cluster that was written last.
    pub(crate) fn cluster(&self, name: &str) -> Option<Value> {
        self.status(&CLUSTERS, name)
    }

    fn status(&self, kind: &Resource, name: &str) -> Option<Value> {
        let path = format!("{}/status", kind.object_path(name));
        self.applied.lock().get(&path).map(|object| object["status"].clone())
    }

    /// Reasons of the events, oldest first.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    /// The version of an object, for whoever reads it.
    pub(crate) fn set_version(&self, key: &str, uid: &str, version: u64) {
        self.versions.lock().insert(key.to_owned(), (uid.to_owned(), version));
    }

    fn read(&self, key: &str) -> (u16, Value) {
        match self.versions.lock().get(key) {
            Some((uid, version)) => {
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                let version = version.to_string();
                (
                    200,
                    json!({"metadata": {
                        "namespace": namespace, "name": name, "uid": uid, "resourceVersion": version,
                    }}),
                )
            }
            None => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})),
        }
    }

    pub(super) async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, CallError> {
        let (head, body) = request.into_parts();
        let body =
            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if self.hanging.load(Ordering::Relaxed) && head.method != Method::POST {
            return pending().await;
        }
        let (code, answer) = if self.refusing.load(Ordering::Relaxed) {
            (503, json!({"kind": "Status", "code": 503, "reason": "ServiceUnavailable"}))
        } else if head.uri.path().contains("/events") {
            let reason = if head.method == Method::POST { &body["reason"] } else { &Value::Null };
            self.events.lock().push(reason.as_str().unwrap_or("another one").to_owned());
            (201, body)
        } else if head.method == Method::GET {
            let place: Vec<_> = head.uri.path().split('/').collect();
            self.read(&format!("{}/{}", place[5], place[7]))
        } else {
            let takes = *self.writes_take.lock();
            tokio::time::sleep(takes).await;
            let path = head.uri.path();
            let place: Vec<_> = path.trim_end_matches("/status").rsplit('/').collect();
            let key = format!("{}/{}", place[2], place[0]);
            if self.open.lock().as_ref().is_some_and(|open| key.starts_with(open)) {
                let settled_at = Some(Instant::now() + Duration::from_secs(6));
                return Err(CallError::Timeout { settled_at });
            }
            self.writes.fetch_add(1, Ordering::Relaxed);
            self.applied.lock().insert(path.to_owned(), body.clone());
            let standing = body["status"]["standing"].as_str().unwrap_or_default().to_owned();
            self.written.lock().insert(key, standing);
            let mut object = body;
            object["metadata"]["resourceVersion"] = "1".into();
            (200, object)
        };
        let body = Body::from(answer.to_string().into_bytes());
        Ok(Response::builder().status(code).body(body).expect("a valid answer"))
    }
}
