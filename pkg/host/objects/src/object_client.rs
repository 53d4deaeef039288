//! [`ObjectClient`]: reads and writes the whole objects of one kind.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kube_api::{OwnWrite, OwnWrites, Resource};
use serde_json::Value;

use crate::calls::{Calls, Part, Verb};
use crate::error::{Error, Why};
use crate::object::{Object, Schema};
use crate::own_writes::{Answered, OpenWrites};

mod change;
mod create;
mod delete;

pub use change::Merge;
pub use create::{Apply, Created};
pub use delete::{Deletion, Propagation};

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

#[cfg(test)]
mod tests;
