//! [`Store`]: a server that keeps what it is sent, for tests in which several clients meet.

use std::collections::{BTreeMap, HashMap};

use futures::stream::{StreamExt as _, unfold};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::asked::Asked;
use crate::reply::Reply;

/// Objects by their path, each with a version of its own. Reads, lists and watches without regard to selectors,
/// creations, replacements, merge patches and deletions, with their preconditions; a list is not streamed.
#[derive(Default)]
pub struct Store(Mutex<Objects>);

struct Objects {
    by_path: BTreeMap<String, Value>,
    version: u64,
    /// What watches show, with the path of the object.
    events: watch::Sender<Vec<(String, Value)>>,
}

impl Default for Objects {
    /// The versions 0 and 1 have meanings of their own.
    fn default() -> Self {
        Self { by_path: BTreeMap::new(), version: 8, events: watch::Sender::default() }
    }
}

impl Store {
    /// Answers like a server that keeps objects.
    pub fn answer(&self, asked: &Asked) -> Reply {
        self.0.lock().answer(asked)
    }

    /// The object at a path.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().by_path.get(path).cloned()
    }

    /// Keeps an object at a path, like another client; returns its version.
    pub fn put(&self, path: &str, object: Value) -> Value {
        version(&self.0.lock().keep(path, object))
    }

    /// Deletes every object of this name, like another client.
    pub fn remove(&self, name: &str) {
        let end = format!("/{name}");
        let mut objects = self.0.lock();
        let gone: Vec<_> =
            objects.by_path.keys().filter(|path| path.ends_with(&end)).cloned().collect();
        for path in gone {
            objects.delete(&path);
        }
    }
}

impl Objects {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let (path, known) = (asked.path(), self.by_path.get(asked.path()).cloned());
        match (asked.method().clone(), known) {
            (Method::GET, Some(object)) => Reply::Json(200, object),
            (Method::GET, None) if asked.query().contains("sendInitialEvents") => {
                Reply::failure(400, "BadRequest")
            }
            (Method::GET, None) if asked.query().contains("watch=true") => self.watch(asked),
            (Method::GET, None) => self.list(path),
            (Method::DELETE, Some(object)) => {
                let wanted = &asked.json()["preconditions"]["resourceVersion"];
                if !wanted.is_null() && *wanted != version(&object) {
                    return Reply::failure(409, "Conflict");
                }
                Reply::Json(200, self.delete(path))
            }
            (Method::POST, _) => {
                let object = asked.json();
                let name = object["metadata"]["name"].as_str().unwrap();
                let path = format!("{path}/{name}");
                if self.by_path.contains_key(&path) {
                    return Reply::failure(409, "AlreadyExists");
                }
                Reply::Json(200, self.keep(&path, object))
            }
            (Method::PUT, Some(object)) if version(&object) == version(&asked.json()) => {
                Reply::Json(200, self.keep(path, asked.json()))
            }
            (Method::PUT, Some(_)) => Reply::failure(409, "Conflict"),
            (Method::PATCH, _) => self.patch(path, &asked.json()),
            _ => not_found(path),
        }
    }

    /// The list of a collection; the path of an absent object looks like an empty collection.
    fn list(&self, path: &str) -> Reply {
        if !path.ends_with('s') {
            return not_found(path);
        }
        let within = self.by_path.iter().filter(|(of, _)| is_within(path, of));
        let items: Vec<_> = within.map(|(_, object)| object.clone()).collect();
        let version = self.version.to_string();
        Reply::Json(200, json!({"metadata": {"resourceVersion": version}, "items": items}))
    }

    fn watch(&self, asked: &Asked) -> Reply {
        let query: HashMap<_, _> = form_urlencoded::parse(asked.query().as_bytes()).collect();
        let after: u64 = query.get("resourceVersion").map_or(0, |it| it.parse().unwrap());
        let path = asked.path().to_owned();
        let events = unfold((self.events.subscribe(), 0), move |(mut log, mut next)| {
            let path = path.clone();
            async move {
                loop {
                    let (of, event) =
                        log.wait_for(|log| log.len() > next).await.ok()?[next].clone();
                    next += 1;
                    let at = version(&event["object"]);
                    if at.as_str()?.parse::<u64>().ok()? > after && is_within(&path, &of) {
                        return Some((event, (log, next)));
                    }
                }
            }
        });
        Reply::Watch(events.boxed())
    }

    /// The path of the status takes the status alone, the other one everything else.
    fn patch(&mut self, path: &str, patch: &Value) -> Reply {
        let (path, is_status) = match path.strip_suffix("/status") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let Some(known) = self.by_path.get(path).cloned() else {
            return not_found(path);
        };
        let wanted = &patch["metadata"];
        let differs =
            |field: &str| !wanted[field].is_null() && wanted[field] != known["metadata"][field];
        if differs("uid") || differs("resourceVersion") {
            return Reply::failure(409, "Conflict");
        }
        let mut changed = known.clone();
        merge(&mut changed, patch);
        let (mut new, other) =
            if is_status { (known.clone(), changed) } else { (changed, known.clone()) };
        match other.get("status") {
            Some(status) => new["status"] = status.clone(),
            None => drop(new.as_object_mut().unwrap().remove("status")),
        }
        Reply::Json(200, if new == known { known } else { self.keep(path, new) })
    }

    /// An object that is being deleted goes with its last finalizer.
    fn keep(&mut self, path: &str, mut object: Value) -> Value {
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if !metadata["deletionTimestamp"].is_null() && !is_held {
            return self.delete(path);
        }
        self.version += 1;
        let known = self.by_path.get(path);
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.version.to_string().into();
        if metadata["uid"].is_null() {
            metadata["uid"] = format!("uid of {path}").into();
        }
        self.show(path, kind, &object);
        self.by_path.insert(path.to_owned(), object.clone());
        object
    }

    fn delete(&mut self, path: &str) -> Value {
        self.version += 1;
        let mut object = self.by_path.remove(path).unwrap();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.show(path, "DELETED", &object);
        object
    }

    fn show(&self, path: &str, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        self.events.send_modify(|events| events.push((path.to_owned(), event)));
    }
}

/// Whether a collection, of one namespace or of all, has the object at this path.
fn is_within(collection: &str, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    let of_all = parent.split_once("/namespaces/").and_then(|(start, rest)| {
        let (_, plural) = rest.split_once('/')?;
        Some(format!("{start}/{plural}"))
    });
    parent == collection || of_all.is_some_and(|of_all| of_all == collection)
}

/// Says that there is no object at a path, with its name and the plural of its kind.
fn not_found(path: &str) -> Reply {
    let mut steps = path.rsplit('/');
    let details = json!({"name": steps.next(), "kind": steps.next()});
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404,
        "reason": "NotFound", "message": "not found", "details": details,
    });
    Reply::Json(404, status)
}

/// Carries out a merge patch, as the API server does.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().unwrap();
    for (field, change) in patch {
        if change.is_null() {
            fields.remove(field);
        } else {
            merge(fields.entry(field.clone()).or_insert(Value::Null), change);
        }
    }
}

fn version(object: &Value) -> Value {
    object["metadata"]["resourceVersion"].clone()
}
