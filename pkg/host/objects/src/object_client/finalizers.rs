//! Finalizers: ours is there before anything is made that outlives the object, and goes last.

use std::sync::Arc;

use super::{ObjectClient, Written};
use crate::{Error, Object, Schema, Why};

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
    ///
    /// # Errors
    /// As [`ObjectClient::change`].
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
