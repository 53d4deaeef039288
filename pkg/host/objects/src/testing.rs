//! A naive API server of one kind for the tests of this crate: one map, one counter of versions,
//! and whatever goes wrong on the way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_server_double::{Asked, Reply};
use client::CallError;
use http::Method;
use kube_api::Resource;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::object::{Object, Schema};
use crate::object_client::ObjectClient;
use crate::patch;

/// Time limit of one attempt.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(5);

pub(crate) const WIDGETS: Resource = Resource::namespaced("example.org", "v1", "Widget", "widgets");

/// A kind whose types know less than its objects have.
#[derive(Debug)]
pub(crate) enum Widget {}

impl Schema for Widget {
    type Body = Fields;
    type Status = Status;
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fields {
    pub(crate) spec: Spec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) sizes: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) ready: bool,
}

/// Fate of one request.
pub(crate) enum Fault {
    /// The request is carried out, and the answer is lost.
    LostAnswer,
    /// The request is never carried out, and the client does not learn that.
    LostRequest,
    /// The request is never carried out, and its time limit is over when the client learns that.
    LostAtTheLimit,
    /// The request never leaves.
    NotSent,
    /// Something answers so instead of the server.
    Answered(u16, Value),
    /// Somebody else changes the object first.
    Overtaken(fn(&mut Value)),
}

#[derive(Default)]
pub(crate) struct State {
    /// By `namespace/name`.
    pub(crate) objects: BTreeMap<String, Value>,
    pub(crate) version: u64,
    /// For the next writes, one each; `None` is no fault.
    pub(crate) faults: VecDeque<Option<Fault>>,
    /// For the next reads.
    pub(crate) read_faults: VecDeque<Option<Fault>>,
    /// Method, path with query, and body.
    pub(crate) seen: Vec<(Method, String, Value)>,
}

/// The server; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Server(pub(crate) Arc<Mutex<State>>);

impl Server {
    /// With one widget `ns/a` that has fields which the type does not know.
    pub(crate) fn with_widget() -> Self {
        let server = Self::default();
        server.0.lock().insert(json!({
            "metadata": {"namespace": "ns", "name": "a", "uid": "u1", "labels": {"foreign": "yes"}},
            "spec": {"sizes": {"s": 1}, "colour": "red"},
        }));
        server
    }

    pub(crate) fn client<S: Schema>(&self) -> ObjectClient<S> {
        let client = ObjectClient::new(self.kube(), WIDGETS, "test", ATTEMPT);
        client.own_writes();
        client
    }

    pub(crate) fn kube(&self) -> kube::Client {
        let state = self.clone();
        api_server_double::client(move |asked| state.answer(asked))
    }

    pub(crate) fn widget<S: Schema>(&self) -> Arc<Object<S>> {
        Arc::new(Object::read(self.raw()).unwrap())
    }

    /// The widget `ns/a` as the server has it.
    pub(crate) fn raw(&self) -> Value {
        self.0.lock().objects["ns/a"].clone()
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.0.lock().faults.push_back(Some(fault));
    }

    pub(crate) fn writes(&self) -> usize {
        self.0.lock().seen.iter().filter(|(method, ..)| method != Method::GET).count()
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let (method, path, body) = (asked.method(), asked.path(), asked.json());
        let mut state = self.0.lock();
        state.seen.push((method.clone(), asked.head.uri.to_string(), body.clone()));
        let read = method == Method::GET;
        let faults = if read { &mut state.read_faults } else { &mut state.faults };
        let fault = faults.pop_front().flatten();
        match fault {
            Some(Fault::LostRequest) => return timeout(settled_at()),
            Some(Fault::LostAtTheLimit) => return timeout(Instant::now()),
            Some(Fault::NotSent) => return fails(CallError::NotSent("refused".into())),
            Some(Fault::Answered(code, body)) => return Reply::Json(code, body),
            Some(Fault::Overtaken(change)) => state.change_as_another(change),
            Some(Fault::LostAnswer) => {
                drop(state.carry_out(method, path, body));
                return fails(CallError::Transport {
                    source: "connection reset".into(),
                    settled_at: Some(settled_at()),
                });
            }
            None => {}
        }
        let (code, body) = state.carry_out(method, path, body);
        Reply::Json(code, body)
    }
}

fn fails(error: CallError) -> Reply {
    Reply::Fails(error.into())
}

fn timeout(settled_at: Instant) -> Reply {
    fails(CallError::Timeout { settled_at: Some(settled_at) })
}

impl State {
    pub(crate) fn insert(&mut self, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.version.to_string().into();
        if metadata["uid"].is_null() {
            metadata["uid"] = format!("u{}", self.version).into();
        }
        let key = format!(
            "{}/{}",
            metadata["namespace"].as_str().unwrap(),
            metadata["name"].as_str().unwrap()
        );
        let held = metadata["finalizers"].as_array().is_some_and(|list| !list.is_empty())
            || metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|grace| grace > 0);
        if metadata["deletionTimestamp"].is_null() || held {
            self.objects.insert(key, object.clone());
        } else {
            self.objects.remove(&key);
        }
        object
    }

    pub(crate) fn change_as_another(&mut self, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.objects.get("ns/a").cloned() {
            change(&mut object);
            self.insert(object);
        }
    }

    fn carry_out(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let steps: Vec<_> = path.split('/').collect();
        // "", apis, group, version, namespaces, ns, widgets[, name[, status]]
        let (namespace, name, status) =
            (steps[5], steps.get(7).copied().unwrap_or_default(), steps.len() == 9);
        if *method == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            if self.objects.contains_key(&format!("{namespace}/{name}")) {
                return refusal(409, "AlreadyExists", &name);
            }
            return (201, self.insert(body));
        }
        let Some(live) = self.objects.get(&format!("{namespace}/{name}")).cloned() else {
            return refusal(404, "NotFound", name);
        };
        let wanted =
            if *method == Method::DELETE { &body["preconditions"] } else { &body["metadata"] };
        let differs =
            |field: &str| !wanted[field].is_null() && wanted[field] != live["metadata"][field];
        if *method != Method::GET && (differs("uid") || differs("resourceVersion")) {
            return refusal(409, "Conflict", name);
        }
        match *method {
            Method::GET => (200, live),
            Method::DELETE => self.delete(live),
            _ => {
                let mut new = live.clone();
                patch::apply(&mut new, &body);
                (200, self.update(&live, new, status))
            }
        }
    }

    /// The status path takes the status alone, the other one everything else.
    fn update(&mut self, live: &Value, mut new: Value, status: bool) -> Value {
        if status {
            let wanted = new["status"].take();
            new = live.clone();
            new["status"] = wanted;
        } else {
            match live.get("status") {
                Some(kept) => new["status"] = kept.clone(),
                None => drop(new.as_object_mut().unwrap().remove("status")),
            }
        }
        new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if new == *live { new } else { self.insert(new) }
    }

    fn delete(&mut self, mut live: Value) -> (u16, Value) {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        live["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        let held = live["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let pending = self.insert(live);
        if held { (200, pending) } else { (200, json!({"kind": "Status", "status": "Success"})) }
    }
}

pub(crate) fn refusal(code: u16, reason: &str, name: &str) -> (u16, Value) {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": reason,
        "details": {"name": name, "kind": "widgets"}});
    (code, body)
}

/// When the server has given up a request of this moment.
fn settled_at() -> Instant {
    Instant::now() + ATTEMPT
}
