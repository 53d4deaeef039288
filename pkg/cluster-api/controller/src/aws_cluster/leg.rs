//! One leg of a pass of an AWSCluster, and what it has met.

use std::sync::Arc;
use std::time::Duration;

use aws::{AttemptHooks, CallError, look, run_attempt};
use aws_network::{Identity, Memory, Outcome, Pass, Planned, Problem, Rest, Timestamp};
use events::EventType;
use objects::Object;
use parking_lot::Mutex;

use super::admission::Access;
use super::aws_clusters::AwsClusters;
use super::denial::{Denial, denial};
use super::stored_memory;
use super::write_events::{self, Told};
use crate::api::aws_cluster::AwsCluster;
use crate::api::cluster::is_paused;
use crate::api::{GROUP, PAUSED_ANNOTATION};

/// A leg that has ended.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) pass: Pass,
    pub(super) rest: Rest,
    /// What stood in the way before it.
    pub(super) before: Vec<Problem>,
    /// Why nothing could be read with the credentials that there are, or could not.
    pub(super) denied: Option<Denial>,
    /// It was broken off, since the process is asked to stop or its user wants something else by
    /// now: nothing follows from how it ended.
    pub(super) is_broken_off: bool,
}

impl Leg {
    /// One in which nothing was done, since the pass rests for so long.
    pub(super) fn at_rest(pass: Pass, left: Duration) -> Self {
        let (rest, before) = (Rest::For(left.as_secs().max(1)), pass.problems());
        Self { pass, rest, before, denied: None, is_broken_off: false }
    }
}

/// What a look has shown.
#[derive(Debug)]
pub(super) struct Look {
    /// The pass with all that it needs to plan, or what could not be read.
    pub(super) looked: Result<Pass, Vec<Problem>>,
    pub(super) denied: Option<Denial>,
    pub(super) now: Timestamp,
}

struct Here<'a> {
    clusters: &'a AwsClusters,
    object: &'a Arc<Object<AwsCluster>>,
    identity: &'a Identity,
    denied: Mutex<Option<Denial>>,
}

impl AwsClusters {
    /// Leads a pass until it rests.
    pub(super) async fn lead(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        mut pass: Pass,
        access: &Access,
    ) -> Leg {
        let here = Here { clusters: self, object, identity, denied: Mutex::default() };
        let executor = access.executor(identity);
        let before = pass.problems();
        let rest = Box::pin(run_attempt(&mut pass, &executor, &here)).await;
        let is_broken_off = here.is_over();
        let denied = here.denied.into_inner().or_else(|| access.doubt.clone());
        Leg { pass, rest, before, denied, is_broken_off }
    }

    /// Reads what a pass needs to plan, and writes nothing.
    pub(super) async fn look(
        &self,
        object: &Arc<Object<AwsCluster>>,
        identity: &Identity,
        pass: &Pass,
        access: &Access,
    ) -> Look {
        let here = Here { clusters: self, object, identity, denied: Mutex::default() };
        let looked = Box::pin(look(pass, &access.executor(identity), &here)).await;
        Look { looked, now: here.now(), denied: here.denied.into_inner() }
    }

    /// Whether it was paused, or its deletion was asked for, since a leg of it began. A leg may take
    /// ten minutes.
    fn has_turned(&self, begun: &Object<AwsCluster>, identity: &Identity) -> bool {
        let Some(now) = self.cache.get(&begun.metadata.key) else { return false };
        let namespace = now.metadata.namespace().unwrap_or_default();
        let clusters = self.clusters.get(GROUP, "Cluster").objects;
        let cluster = clusters.get(&format!("{namespace}/{}", identity.cluster));
        now.metadata.annotations.contains_key(PAUSED_ANNOTATION)
            || now.metadata.deleting() != begun.metadata.deleting()
            || cluster.is_some_and(|cluster| is_paused(&cluster))
    }
}

impl AttemptHooks for Here<'_> {
    async fn store(&self, memory: &Memory) -> bool {
        let stored = self.clusters.client.change_status(self.object, |_, status| {
            stored_memory::write(memory, status);
        });
        match stored.await {
            Ok(_) => true,
            Err(error) => {
                tracing::info!(%error, "Creations that have to be known after a crash wait until the status can be written");
                false
            }
        }
    }

    fn is_over(&self) -> bool {
        self.clusters.stop.is_cancelled() || self.clusters.has_turned(self.object, self.identity)
    }

    fn unread(&self, error: &CallError) {
        if let Some(denial) = denial(error) {
            *self.denied.lock() = Some(denial);
        }
    }

    fn wrote(&self, planned: &Planned, outcome: &Outcome) {
        let is_repair = write_events::is_repaired(self.object);
        if is_repair {
            self.clusters.metrics.repaired(&planned.action, outcome);
        }
        let told = write_events::told(&planned.action, outcome, is_repair);
        let Some(Told { is_done, reason, message }) = told else { return };
        let severity = if is_done { EventType::Normal } else { EventType::Warning };
        self.clusters.tell(self.object, severity, reason, &message);
    }
}
