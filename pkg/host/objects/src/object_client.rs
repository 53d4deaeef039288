//! [`ObjectClient`]: reads and writes the whole objects of one kind. It creates and applies whole
//! manifests here (for server-side apply the server lays our fields over the object); `change` and
//! `delete` have the rest.

mod change;
mod delete;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kube_api::{OwnWrite, OwnWrites, Resource};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::calls::{Calls, Part, Verb};
use crate::error::{Error, Outcome, Why};
use crate::object::{Draft, Object, Schema};
use crate::own_writes::{Answered, OpenWrites};

pub use change::Merge;
pub use delete::Deletion;

/// Reads and writes the whole objects of one kind on behalf of one controller. Cheap to clone.
///
/// Every write is guarded by the UID and, where it rests on what was read, by the version of its
/// object (`rule:writes-are-guarded`), so none undoes what others did, and repeating one is safe.
/// The leader's fence, the throttle and the identity are those of the `kube::Client` it is given.
///
/// A change begins with the newest copy that an answer brought when that is newer than the one it
/// is given.
pub struct ObjectClient<S: Schema> {
    calls: Calls,
    /// Empty until somebody asks for them.
    writes: Arc<OnceLock<OwnWrites>>,
    answered: Answered<S>,
}

/// Result of a write.
#[derive(Debug)]
pub struct Written<S: Schema> {
    /// The newest known copy: what the server answered, or what was there already.
    pub object: Arc<Object<S>>,
    /// False when nothing was different, and so nothing was sent.
    pub changed: bool,
}

impl<S: Schema> ObjectClient<S> {
    /// `client` comes from [`client::Clients`]; `manager` is the field manager of all writes, at
    /// most 128 characters; `timeout` bounds one attempt of one request.
    pub fn new(
        client: kube::Client,
        resource: Resource,
        manager: impl Into<String>,
        timeout: Duration,
    ) -> Self {
        let calls = Calls::new(client, resource, manager.into(), timeout);
        Self { calls, writes: Arc::default(), answered: Answered::default() }
    }

    /// Keeps no copy of what answers bring: for a client that only applies and merges, whose writes
    /// do not begin with one.
    #[must_use]
    pub fn keeping_no_answers(self) -> Self {
        Self { answered: Answered::nothing(), ..self }
    }

    /// Notes the writes of unknown outcome here.
    #[must_use]
    pub fn noting(mut self, open: &OpenWrites) -> Self {
        self.calls.open = open.clone();
        self
    }

    /// An `ObjectClient` through another client of the same server, such as one behind another throttle.
    /// Both share [`ObjectClient::own_writes`].
    #[must_use]
    pub fn through(&self, client: kube::Client) -> Self {
        Self { calls: self.calls.through(client), ..self.clone() }
    }

    /// The kind.
    pub fn resource(&self) -> &Resource {
        &self.calls.resource
    }

    /// The last own write of each key that no cache is known to show yet. All clones add to it,
    /// from the first call of this on: earlier writes are not awaited.
    pub fn own_writes(&self) -> &OwnWrites {
        self.writes.get_or_init(OwnWrites::default)
    }

    /// The writes of unknown outcome, through all clones.
    pub fn open_writes(&self) -> &OpenWrites {
        &self.calls.open
    }

    /// A consistent read, which shows all writes that were answered before; `None` when there is
    /// no object of this key (name, or `namespace/name`).
    ///
    /// # Errors
    /// Nothing is known of the object.
    pub async fn read(&self, key: &str) -> Result<Option<Arc<Object<S>>>, Error> {
        match self.calls.read(key).await {
            Ok(whole) => match Object::read(whole) {
                Ok(object) => Ok(Some(Arc::new(object))),
                Err(error) => Err(self.calls.error("read", key, error.into())),
            },
            Err(Error { why: Why::Gone, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One attempt to write, whose answer is an object.
    async fn write(
        &self,
        key: &str,
        part: Part,
        verb: Verb,
        body: &Value,
    ) -> Result<Arc<Object<S>>, Error> {
        let answer = self.calls.write(key, part, verb, body).await?;
        let version = answer["metadata"]["resourceVersion"].as_str().map(str::parse);
        match Object::read(answer) {
            Ok(object) => {
                self.note(&object);
                let object = Arc::new(object);
                // A new object is seldom changed at once.
                if verb != Verb::Create {
                    self.answered.keep(&object);
                }
                Ok(object)
            }
            Err(error) => {
                if let Some(Ok(version)) = version {
                    self.note_write(key, OwnWrite::version(version));
                }
                Err(self.calls.error("read", key, Why::Unreadable(error)))
            }
        }
    }

    fn note(&self, object: &Object<S>) {
        let metadata = &object.metadata;
        let write = if metadata.has_ended() {
            OwnWrite::deleted(Arc::clone(&metadata.uid))
        } else {
            OwnWrite::version(metadata.resource_version)
        };
        self.note_write(&metadata.key, write);
    }

    fn note_write(&self, key: &str, write: OwnWrite) {
        if let Some(writes) = self.writes.get() {
            writes.note(key, write);
        }
    }
}

impl<S: Schema> Clone for ObjectClient<S> {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
            writes: Arc::clone(&self.writes),
            answered: self.answered.clone(),
        }
    }
}

/// Attempts whose outcome a read could not tell.
const ATTEMPTS: u32 = 3;
/// Times the number of the attempt.
const PAUSE: Duration = Duration::from_millis(10);

/// An object that is there now.
#[derive(Debug)]
pub enum Created<S: Schema> {
    /// The object was created from the draft.
    New(Arc<Object<S>>),
    /// The object existed, or an attempt of unknown outcome created it; it may differ from the
    /// draft.
    Existing(Arc<Object<S>>),
}

impl<S: Schema> ObjectClient<S> {
    /// Makes an object of this key (name, or `namespace/name`). A status in it is not taken by
    /// kinds that have the subresource.
    ///
    /// # Errors
    /// [`Why::Exists`] when there is one. [`Error::outcome`] says whether it may have been made.
    pub async fn create(&self, key: &str, draft: &Draft<S>) -> Result<Arc<Object<S>>, Error> {
        let body = self.manifest(key, draft).map_err(|why| self.calls.error("create", key, why))?;
        self.write(key, Part::Main, Verb::Create, &body).await
    }

    /// Makes an object unless there is one of this key. After an unknown outcome it looks, and
    /// tries again when it is absent: a name is given once.
    pub async fn create_if_absent(&self, key: &str, draft: &Draft<S>) -> Result<Created<S>, Error> {
        let mut attempt = 1;
        loop {
            let error = match self.create(key, draft).await {
                Ok(object) => return Ok(Created::New(object)),
                Err(error) => error,
            };
            if error.outcome() != Outcome::Unknown && !matches!(error.why, Why::Exists) {
                return Err(error);
            }
            if let Ok(Some(object)) = self.read(key).await {
                self.note(&object);
                return Ok(Created::Existing(object));
            }
            if attempt == ATTEMPTS {
                return Err(error);
            }
            sleep(PAUSE * attempt).await;
            attempt += 1;
        }
    }

    fn manifest(&self, key: &str, draft: &Draft<S>) -> Result<Value, Why> {
        let mut manifest = serde_json::to_value(draft).map_err(|_| Why::Encode)?;
        self.identify(&mut manifest, key);
        Ok(manifest)
    }

    /// Says in a manifest which object it is.
    pub(super) fn identify(&self, manifest: &mut Value, key: &str) {
        let resource = &self.calls.resource;
        manifest["apiVersion"] = json!(resource.api_version());
        manifest["kind"] = json!(resource.kind);
        match key.split_once('/') {
            Some((namespace, name)) => {
                manifest["metadata"]["namespace"] = json!(namespace);
                manifest["metadata"]["name"] = json!(name);
            }
            None => manifest["metadata"]["name"] = json!(key),
        }
    }
}

/// Arguments of a server-side apply.
#[derive(Clone, Debug)]
pub struct Apply {
    /// The fields that this field manager owns from now on, all of them: one that it left out and
    /// owned before is removed. `apiVersion`, `kind` and the name are filled in.
    pub fields: Value,
    /// The object's UID: no other object of its name is changed, and none is made. `None` makes
    /// one where it is absent.
    pub uid: Option<String>,
    /// Takes the fields that others own. Without it such fields are [`Why::Owned`].
    pub force: bool,
    /// Part of the object that has the fields.
    pub part: Part,
}

impl<S: Schema> ObjectClient<S> {
    /// Applies fields once. The server makes no new version when nothing is different.
    ///
    /// The object's version is no precondition: the server lays the fields over whatever version
    /// it has. So an attempt of unknown outcome may still be carried out after a later one, up to
    /// the time limit of one attempt; apply from one place at a time.
    ///
    /// # Errors
    /// [`Error::outcome`] says whether it may have been applied.
    pub async fn apply(&self, key: &str, apply: &Apply) -> Result<Arc<Object<S>>, Error> {
        let mut manifest = apply.fields.clone();
        if !manifest.is_object() || manifest.get("metadata").is_some_and(|m| !m.is_object()) {
            return Err(self.calls.error("apply", key, Why::Encode));
        }
        self.identify(&mut manifest, key);
        if let Some(uid) = &apply.uid {
            manifest["metadata"]["uid"] = Value::from(&**uid);
        }
        self.write(key, apply.part, Verb::Apply { force: apply.force }, &manifest).await
    }
}

#[cfg(test)]
mod tests;
