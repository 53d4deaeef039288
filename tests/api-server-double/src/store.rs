//! [`Store`]: a server that keeps what it is sent, for tests in which several clients meet.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::Method;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::reply::Reply;

/// Objects by their path, each with a version of its own. Reads, lists without regard to selectors,
/// creations, replacements and deletions, with their preconditions; a list has no watch.
#[derive(Default)]
pub struct Store(Mutex<Objects>);

#[derive(Default)]
struct Objects {
    objects: BTreeMap<String, Value>,
    version: u64,
}

impl Store {
    /// Answers like a server that keeps objects.
    pub fn answer(&self, asked: &Asked) -> Reply {
        self.0.lock().unwrap().answer(asked)
    }

    /// Deletes every object of this name, like another client.
    pub fn remove(&self, name: &str) {
        let end = format!("/{name}");
        self.0.lock().unwrap().objects.retain(|path, _| !path.ends_with(&end));
    }
}

impl Objects {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let (path, known) = (asked.path(), self.objects.get(asked.path()).cloned());
        match (asked.method().clone(), known) {
            (Method::GET, Some(object)) => Reply::Json(200, object),
            (Method::GET, None) => self.list(&format!("{path}/")),
            (Method::DELETE, Some(object)) => {
                let wanted = &asked.json()["preconditions"]["resourceVersion"];
                if !wanted.is_null() && *wanted != version(&object) {
                    return Reply::failure(409, "Conflict");
                }
                self.objects.remove(path);
                Reply::Json(200, object)
            }
            (Method::POST, _) => {
                let object = asked.json();
                let name = object["metadata"]["name"].as_str().unwrap();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return Reply::failure(409, "AlreadyExists");
                }
                self.keep(path, object)
            }
            (Method::PUT, Some(object)) if version(&object) == version(&asked.json()) => {
                self.keep(path.to_owned(), asked.json())
            }
            (Method::PUT, Some(_)) => Reply::failure(409, "Conflict"),
            _ => Reply::failure(404, "NotFound"),
        }
    }

    /// The list of a collection; the path of an absent object looks like an empty collection.
    fn list(&self, prefix: &str) -> Reply {
        if !prefix.ends_with("s/") {
            return Reply::failure(404, "NotFound");
        }
        let within = self.objects.iter().filter(|(path, _)| path.starts_with(prefix));
        let items: Vec<_> = within.map(|(_, object)| object.clone()).collect();
        let version = self.version.to_string();
        Reply::Json(200, json!({"metadata": {"resourceVersion": version}, "items": items}))
    }

    fn keep(&mut self, path: String, mut object: Value) -> Reply {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["uid"] = format!("uid of {path}").into();
        self.objects.insert(path, object.clone());
        Reply::Json(200, object)
    }
}

fn version(object: &Value) -> Value {
    object["metadata"]["resourceVersion"].clone()
}
