//! Changes of an object: from the copy in the cache, and from a fresh one after each conflict.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::calls::{Part, Verb};
use crate::error::{Error, Outcome, Why};
use crate::object::{Draft, Object, Schema, change_of, status_change_of};
use crate::object_client::{ObjectClient, Written};
use crate::patch::{between, lay};

/// Number of attempts, as in client-go's `RetryOnConflict`.
const ATTEMPTS: u32 = 5;
/// Times the number of the attempt.
const PAUSE: Duration = Duration::from_millis(10);

impl<S: Schema> ObjectClient<S> {
    /// Brings an object to what `edit` makes of it; its status is not touched.
    ///
    /// `edit` is called with the object and a draft to change: first with the given copy, or a
    /// newer one from the answer to an earlier write, and again with a fresh one after a conflict
    /// or an unknown outcome. It decides from what it is given, not from what it saw before. A
    /// draft left as it was sends nothing.
    ///
    /// # Errors
    /// [`Error::outcome`] says whether it may have been written. Trying again is safe in any case.
    pub async fn change(
        &self,
        object: &Arc<Object<S>>,
        mut edit: impl FnMut(&Object<S>, &mut Draft<S>),
    ) -> Result<Written<S>, Error> {
        self.change_main(object, |object, draft| {
            edit(object, draft);
            Ok(())
        })
        .await
    }

    /// Changes the subresource `status` and nothing else, as [`ObjectClient::change`] does the rest.
    pub async fn change_status(
        &self,
        object: &Arc<Object<S>>,
        mut edit: impl FnMut(&Object<S>, &mut S::Status),
    ) -> Result<Written<S>, Error> {
        self.settle(object, Part::Status, |object| {
            let mut status = object.status.clone();
            edit(object, &mut status);
            status_change_of(object, &status).map_err(|_| Why::Encode)
        })
        .await
    }

    /// [`ObjectClient::change`] with an edit that may refuse.
    pub(super) async fn change_main(
        &self,
        object: &Arc<Object<S>>,
        mut edit: impl FnMut(&Object<S>, &mut Draft<S>) -> Result<(), Why>,
    ) -> Result<Written<S>, Error> {
        self.settle(object, Part::Main, |object| {
            let mut draft = Draft::of(object);
            edit(object, &mut draft)?;
            change_of(object, &draft).map_err(|_| Why::Encode)
        })
        .await
    }

    async fn settle(
        &self,
        object: &Arc<Object<S>>,
        part: Part,
        mut edit: impl FnMut(&Object<S>) -> Result<Option<Value>, Why>,
    ) -> Result<Written<S>, Error> {
        let mut settling = Settling::new(self, object);
        for attempt in 1.. {
            let change = edit(&settling.current).map_err(|why| settling.fail(why))?;
            // Also after the last attempt: it may be what the read shows.
            let Some(patch) = change else { return settling.unchanged() };
            if attempt > ATTEMPTS {
                break;
            }
            let key = &settling.current.metadata.key;
            match self.write(key, part, Verb::MergePatch, &patch).await {
                Ok(object) => return Ok(Written { object, changed: true }),
                Err(error) => settling.after(error, attempt).await?,
            }
        }
        Err(settling.fail(Why::Conflict { attempts: ATTEMPTS }))
    }
}

/// One object on its way to what it shall be.
struct Settling<'a, S: Schema> {
    client: &'a ObjectClient<S>,
    current: Arc<Object<S>>,
    unknown: Option<UnknownAttempt>,
    /// Whether an attempt had an unknown outcome.
    was_unknown: bool,
}

/// An attempt that may yet be carried out (`rule:doubt-ends-with-the-version`).
#[derive(Clone, Copy)]
struct UnknownAttempt {
    /// The version on which it rests.
    version: u64,
    settled_at: Option<Instant>,
}

impl UnknownAttempt {
    /// A read that began at `read` and showed `version` proves that it was carried out, or never
    /// will be.
    fn ends(&self, read: Instant, version: u64) -> bool {
        self.version != version || self.settled_at.is_some_and(|settled| settled <= read)
    }
}

impl<'a, S: Schema> Settling<'a, S> {
    fn new(client: &'a ObjectClient<S>, object: &Arc<Object<S>>) -> Self {
        Self { client, current: client.answered.newest(object), unknown: None, was_unknown: false }
    }

    /// The object is as it shall be.
    fn unchanged(self) -> Result<Written<S>, Error> {
        if self.unknown.is_some() {
            return Err(self.fail(Why::Conflict { attempts: 1 }));
        }
        Ok(Written { object: self.current, changed: self.was_unknown })
    }

    /// Reads the object again when that can help.
    async fn after(&mut self, error: Error, attempt: u32) -> Result<(), Error> {
        self.client.answered.forget(&self.current.metadata.key);
        let unknown = error.outcome() == Outcome::Unknown;
        if unknown {
            let version = self.current.metadata.resource_version;
            self.unknown = Some(UnknownAttempt { version, settled_at: error.settled_at() });
            self.was_unknown = true;
        } else if !matches!(error.why, Why::Conflict { .. }) {
            // A deletion ends every doubt about what was written before it.
            return Err(if matches!(error.why, Why::Gone) { error } else { self.fail(error.why) });
        }
        debug!(logger = "objects", err = %error, attempt, "Reading the object again");
        sleep(PAUSE * attempt).await;
        let began = Instant::now();
        match self.client.read(&self.current.metadata.key).await {
            Ok(Some(fresh)) if fresh.metadata.uid == self.current.metadata.uid => {
                self.take(fresh, began);
                Ok(())
            }
            Ok(_) => Err(self.error(Why::Gone)),
            Err(_) if unknown => Err(error),
            Err(read) => Err(self.fail(read.why)),
        }
    }

    fn take(&mut self, fresh: Arc<Object<S>>, began: Instant) {
        let version = fresh.metadata.resource_version;
        if self.unknown.take_if(|doubt| doubt.ends(began, version)).is_some() {
            // Ours may be in it, so a cache must show at least this.
            self.client.note(&fresh);
        }
        self.current = fresh;
    }

    fn fail(&self, why: Why) -> Error {
        match self.unknown {
            Some(UnknownAttempt { settled_at, .. }) if why.outcome() != Outcome::Unknown => {
                self.error(Why::Open { last: Box::new(why), settled_at })
            }
            _ => self.error(why),
        }
    }

    fn error(&self, why: Why) -> Error {
        self.client.calls.error("change", &self.current.metadata.key, why)
    }
}

impl<S: Schema> ObjectClient<S> {
    /// Has the server store this version of an object again, unchanged: in the version in which the
    /// kind is stored now.
    ///
    /// # Errors
    /// [`Why::Conflict`]: the object was changed since. [`Error::outcome`] says whether it may have
    /// been stored.
    pub async fn store_again(&self, key: &str, uid: &str, version: &str) -> Result<(), Error> {
        let same = json!({"metadata": {"uid": uid, "resourceVersion": version}});
        self.write(key, Part::Main, Verb::MergePatch, &same).await.map(drop)
    }
}

/// Fields for an object of a kind whose schema is not ours.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Wanted values of fields; all other fields stay. An empty text removes a text.
    pub fields: Value,
    /// The whole object on which the fields rest ([`crate::Object::whole`]).
    pub over: Value,
    /// Part of the object that has the fields.
    pub part: Part,
}

impl<S: Schema> ObjectClient<S> {
    /// Sends what the fields change, once, for this version of this object only
    /// (`rule:writes-are-guarded`). Fields that change nothing send nothing.
    ///
    /// # Errors
    /// [`Why::Conflict`]: the object was changed since. [`Error::outcome`] says whether it may have
    /// been written.
    pub async fn merge(&self, key: &str, merge: &Merge) -> Result<(), Error> {
        let Merge { fields, over, part } = merge;
        let (uid, version) = (&over["metadata"]["uid"], &over["metadata"]["resourceVersion"]);
        if !fields.is_object() || !uid.is_string() || !version.is_string() {
            return Err(self.calls.error("patch", key, Why::Encode));
        }
        let Some(mut patch) = between(over, &lay(over, fields)) else { return Ok(()) };
        patch["metadata"]["uid"] = json!(uid);
        patch["metadata"]["resourceVersion"] = json!(version);
        self.write(key, *part, Verb::MergePatch, &patch).await.map(drop)
    }
}
