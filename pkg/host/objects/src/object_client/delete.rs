//! The end of objects: deletions of the very object that was seen, and finalizers.

use std::sync::Arc;

use kube_api::OwnWrite;
use serde_json::{Value, json};

use crate::calls::{Part, Verb};
use crate::error::{Error, Outcome, Why};
use crate::object::{Object, Schema};
use crate::object_client::{ObjectClient, Written};
use crate::object_meta::ObjectMeta;

/// Result of a deletion.
#[derive(Debug)]
pub enum Deletion<S: Schema> {
    /// The object is gone.
    Gone,
    /// The object stays until its finalizers are removed, or its grace period is over.
    Pending(Arc<Object<S>>),
}

impl<S: Schema> ObjectClient<S> {
    /// Deletes the object that was seen, not another that has its name by now; objects that it owns
    /// are deleted after it.
    ///
    /// # Errors
    /// [`Error::outcome`] says whether it may have been deleted.
    pub async fn delete(&self, object: &Object<S>) -> Result<Deletion<S>, Error> {
        let ObjectMeta { key, uid, .. } = &object.metadata;
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": &**uid},
            "propagationPolicy": "Background",
        });
        match self.calls.write(key, Part::Main, Verb::Delete, &options).await {
            Ok(answer) => self.deleted(object, answer),
            Err(error) => match error.why {
                Why::Gone => Ok(self.gone(object)),
                Why::Conflict { .. } => self.look_again(object, error).await,
                _ if error.outcome() == Outcome::Unknown => self.look_again(object, error).await,
                _ => Err(error),
            },
        }
    }

    /// The server answers with a `Status` when the object is gone, or else with the object.
    fn deleted(&self, object: &Object<S>, answer: Value) -> Result<Deletion<S>, Error> {
        if answer["kind"] == "Status" {
            return Ok(self.gone(object));
        }
        match Object::read(answer) {
            Ok(pending) => {
                self.note(&pending);
                let pending = Arc::new(pending);
                self.answered.keep(&pending);
                Ok(Deletion::Pending(pending))
            }
            Err(error) => {
                Err(self.calls.error("delete", &object.metadata.key, Why::Unreadable(error)))
            }
        }
    }

    async fn look_again(&self, object: &Object<S>, error: Error) -> Result<Deletion<S>, Error> {
        match self.read(&object.metadata.key).await {
            Ok(Some(now)) if now.metadata.uid != object.metadata.uid => Ok(self.gone(object)),
            Ok(Some(now)) if now.metadata.deleting() => {
                self.note(&now);
                Ok(Deletion::Pending(now))
            }
            Ok(None) => Ok(self.gone(object)),
            Ok(Some(_)) | Err(_) => Err(error),
        }
    }

    fn gone(&self, object: &Object<S>) -> Deletion<S> {
        let metadata = &object.metadata;
        self.answered.forget(&metadata.key);
        self.note_write(&metadata.key, OwnWrite::deleted(Arc::clone(&metadata.uid)));
        Deletion::Gone
    }
}

impl<S: Schema> ObjectClient<S> {
    /// Makes sure that this finalizer holds the object.
    ///
    /// # Errors
    /// [`Why::Deleting`]: its deletion was asked for, so nothing may be built on it any more.
    /// Otherwise as [`ObjectClient::change`].
    pub async fn add_finalizer(
        &self,
        object: &Arc<Object<S>>,
        finalizer: &str,
    ) -> Result<Written<S>, Error> {
        self.change_main(object, |object, draft| {
            if object.metadata.has_finalizer(finalizer) {
                return Ok(());
            }
            if object.metadata.deleting() {
                return Err(Why::Deleting);
            }
            draft.metadata.finalizers.push(finalizer.to_owned());
            Ok(())
        })
        .await
    }

    /// Takes this finalizer away, and no other; `None` when the object is gone, which it may be
    /// for having had no other.
    pub async fn remove_finalizer(
        &self,
        object: &Arc<Object<S>>,
        finalizer: &str,
    ) -> Result<Option<Written<S>>, Error> {
        let removed = self.change_main(object, |_, draft| {
            draft.metadata.finalizers.retain(|held| held != finalizer);
            Ok(())
        });
        match removed.await {
            Err(Error { why: Why::Gone, .. }) => Ok(None),
            other => other.map(Some),
        }
    }
}
