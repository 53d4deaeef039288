//! [`Api`]: a management API that is a function.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api_server_double::{Asked, Reply};
use client::CallError;
use futures::FutureExt as _;
use http::Method;
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
    /// More writes of status at once are refused by 429.
    at_once: Mutex<Option<usize>>,
    under_way: AtomicUsize,
    /// The most writes of status that were under way together since [`Api::allow_at_once`].
    most_under_way: AtomicUsize,
    throttled: AtomicUsize,
    writes: AtomicUsize,
    written: Mutex<HashMap<String, String>>,
    /// The newest of each path.
    applied: Mutex<HashMap<String, Value>>,
    events: Mutex<Vec<String>>,
    /// UIDs and versions of objects that can be read.
    versions: Mutex<HashMap<String, (String, u64)>>,
    forbids_reads: AtomicBool,
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

    /// From now on more writes of status at once are refused by 429, and are to come back after a
    /// second.
    pub(crate) fn allow_at_once(&self, most: Option<usize>) {
        *self.at_once.lock() = most;
        self.most_under_way.store(0, Ordering::Relaxed);
    }

    pub(crate) fn most_under_way(&self) -> usize {
        self.most_under_way.load(Ordering::Relaxed)
    }

    /// How many writes were refused by 429.
    pub(crate) fn throttled(&self) -> usize {
        self.throttled.load(Ordering::Relaxed)
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// The health that the object tells.
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

    /// The status of a cluster of the fake flavour that was written last.
    pub(crate) fn fake(&self, key: &str) -> Option<Value> {
        self.status(&super::KIND, key)
    }

    /// The status of the object of this key that was written last.
    pub(crate) fn status(&self, kind: &Resource, name: &str) -> Option<Value> {
        self.sent(kind, name).map(|mut object| object["status"].take())
    }

    /// The object that was sent last with its status.
    pub(crate) fn sent(&self, kind: &Resource, name: &str) -> Option<Value> {
        let path = format!("{}/status", kind.object_path(name));
        self.applied.lock().get(&path).cloned()
    }

    /// Reasons of the events, oldest first.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    /// The version of an object, for whoever reads it.
    pub(crate) fn set_version(&self, key: &str, uid: &str, version: u64) {
        self.versions.lock().insert(key.to_owned(), (uid.to_owned(), version));
    }

    /// Nobody may read an object from now on.
    pub(crate) fn forbid_reads(&self) {
        self.forbids_reads.store(true, Ordering::Relaxed);
    }

    fn read(&self, key: &str) -> Reply {
        if self.forbids_reads.load(Ordering::Relaxed) {
            return Reply::failure(403, "Forbidden");
        }
        let versions = self.versions.lock();
        let Some((uid, version)) = versions.get(key) else {
            return Reply::failure(404, "NotFound");
        };
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        let metadata = json!({
            "namespace": namespace, "name": name, "uid": uid,
            "resourceVersion": version.to_string(),
        });
        Reply::Json(200, json!({ "metadata": metadata }))
    }

    /// What becomes of a request.
    pub(super) fn answer(self: &Arc<Self>, asked: &Asked) -> Reply {
        let is_created = asked.method() == Method::POST;
        if self.hanging.load(Ordering::Relaxed) && !is_created {
            return Reply::Silence;
        }
        if self.refusing.load(Ordering::Relaxed) {
            return Reply::failure(503, "ServiceUnavailable");
        }
        if asked.path().contains("/events") {
            let event = asked.json();
            let reason = if is_created { &event["reason"] } else { &Value::Null };
            self.events.lock().push(reason.as_str().unwrap_or("another one").to_owned());
            return Reply::Json(201, event);
        }
        if asked.method() == Method::GET {
            let place: Vec<_> = asked.path().split('/').collect();
            return self.read(&format!("{}/{}", place[5], place[7]));
        }
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        if self.at_once.lock().is_some_and(|most| under_way > most) {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            self.throttled.fetch_add(1, Ordering::Relaxed);
            return Reply::RetryAfter(429, 1, json!({"kind": "Status", "code": 429}));
        }
        self.most_under_way.fetch_max(under_way, Ordering::Relaxed);
        let (api, asked, takes) = (Arc::clone(self), asked.clone(), *self.writes_take.lock());
        let written = async move {
            tokio::time::sleep(takes).await;
            api.under_way.fetch_sub(1, Ordering::Relaxed);
            api.write(&asked)
        };
        Reply::Later(written.boxed())
    }

    fn write(&self, asked: &Asked) -> Reply {
        let (path, mut object) = (asked.path(), asked.json());
        let place: Vec<_> = path.trim_end_matches("/status").rsplit('/').collect();
        let key = format!("{}/{}", place[2], place[0]);
        if self.open.lock().as_ref().is_some_and(|open| key.starts_with(open)) {
            let settled_at = Some(Instant::now() + Duration::from_secs(6));
            return Reply::Fails(CallError::Timeout { settled_at }.into());
        }
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.applied.lock().insert(path.to_owned(), object.clone());
        let health = object["status"]["health"].as_str().unwrap_or_default().to_owned();
        self.written.lock().insert(key, health);
        object["metadata"]["resourceVersion"] = "1".into();
        Reply::Json(200, object)
    }
}
