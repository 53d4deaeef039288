//! [`ObjectClient`]: reads and writes the whole objects of one kind.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use model::{OwnWrite, OwnWrites, Resource};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::calls::{Calls, Part, Verb};
use crate::{Error, Object, Schema, Why};

mod apply;
mod change;
mod create;
mod delete;
mod finalizers;

pub use apply::Apply;
pub use create::Created;
pub use delete::{Deletion, Propagation};

/// Reads and writes the whole objects of one kind on behalf of one controller. Cheap to clone.
///
/// Every write is guarded by the UID and, where it rests on what was read, by the version of its
/// object (`rule:writes-are-guarded`), so none undoes what others did, and repeating one is safe.
/// The leader's fence, the throttle and the identity are those of the `kube::Client` it is given.
///
/// Writes are noted in [`ObjectClient::own_writes`], for the informer of the same kind.
pub struct ObjectClient<S> {
    calls: Calls,
    writes: OwnWrites,
    whole_updates: bool,
    schema: PhantomData<fn() -> S>,
}

/// What a write came to.
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
        Self { calls, writes: OwnWrites::default(), whole_updates: false, schema: PhantomData }
    }

    /// Changes objects by PUT instead of merge PATCH, for an identity that may update and not
    /// patch. Of no effect on a kind with [`Schema::KEPT_OF_SPEC`].
    #[must_use]
    pub fn with_whole_updates(mut self) -> Self {
        self.whole_updates = true;
        self
    }

    /// The same objects through another client, such as one behind another throttle; they share
    /// [`ObjectClient::own_writes`].
    #[must_use]
    pub fn through(&self, client: kube::Client) -> Self {
        Self { calls: self.calls.through(client), ..self.clone() }
    }

    /// The kind.
    pub fn resource(&self) -> &Resource {
        &self.calls.resource
    }

    /// The last own write of each key that no cache is known to show yet. All clones add to it.
    pub fn own_writes(&self) -> &OwnWrites {
        &self.writes
    }

    /// Waits until the server no longer carries out any write of unknown outcome so far, which is
    /// at most the time limit of one attempt: for a controller that stops, before its lease is
    /// given back.
    pub async fn settled(&self) {
        while let Some(open_until) = self.calls.open_until()
            && open_until > Instant::now()
        {
            sleep_until(open_until).await;
        }
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
                Ok(Arc::new(object))
            }
            Err(error) => {
                if let Some(Ok(version)) = version {
                    self.writes.note(key, OwnWrite::version(version));
                }
                Err(self.calls.error("read", key, Why::Unreadable(error)))
            }
        }
    }

    fn note(&self, object: &Object<S>) {
        let metadata = &object.metadata;
        let gone = metadata.deleting() && metadata.finalizers.is_empty();
        let write = if gone {
            OwnWrite::deleted(Arc::clone(&metadata.uid))
        } else {
            OwnWrite::version(metadata.resource_version)
        };
        self.writes.note(&metadata.key, write);
    }
}

impl<S> Clone for ObjectClient<S> {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
            writes: self.writes.clone(),
            whole_updates: self.whole_updates,
            schema: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests;
