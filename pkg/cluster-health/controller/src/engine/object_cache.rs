//! [`Objects`]: the cached objects of a flavour, what their schema keeps, and the objectives that they
//! name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use health::Objective;
use informer::Informer;
use kube_api::Resource;
use objects::{Object, Schema};
use parking_lot::Mutex;
use tracing::info;

use super::flavour::{MemberId, SchemaIsOurs};

/// The label of a CRD whose status has the field `availability`. A server refuses an apply with a field
/// that the schema lacks, as that of an earlier release.
pub(crate) const KEEPS_AVAILABILITY: &str = "infra-controller-manager/keeps-availability";
/// The annotation with the objective of one cluster, as a percentage; 0 for none.
const OBJECTIVE: &str = "infra-controller-manager/objective";

/// UID and annotation of an object.
type Annotated = (Arc<str>, String);

/// The cached objects of a flavour, and what their schema has; set when a run begins.
pub(crate) struct Objects<S: Schema> {
    cache: OnceLock<(Informer<Object<S>>, SchemaIsOurs)>,
    keeps_records: OnceLock<SchemaIsOurs>,
    was_logged: AtomicBool,
    /// UID and annotation of objects whose annotation cannot be used, so that each is reported once.
    unusable: Mutex<HashMap<Arc<str>, Annotated>>,
}

impl<S: Schema> Default for Objects<S> {
    fn default() -> Self {
        Self {
            cache: OnceLock::new(),
            keeps_records: OnceLock::new(),
            was_logged: AtomicBool::default(),
            unusable: Mutex::default(),
        }
    }
}

impl<S: Schema> Objects<S> {
    /// Reads objects from this cache. Each run creates its flavours, so it is set once.
    pub(crate) fn set(&self, cache: &Informer<Object<S>>, schema_is_ours: SchemaIsOurs) {
        self.cache.get_or_init(|| (cache.clone(), schema_is_ours));
    }

    /// Sets whether the schema has a field for the record, at this moment.
    pub(crate) fn keep_records_where(&self, schema_has_the_field: SchemaIsOurs) {
        self.keeps_records.get_or_init(|| schema_has_the_field);
    }

    /// The object of this cluster; `None` when it is gone or another object has its name.
    pub(crate) fn get(&self, cluster: &MemberId) -> Option<Arc<Object<S>>> {
        let object = self.cache.get()?.0.get(&cluster.key)?;
        (object.metadata.uid == cluster.uid).then_some(object)
    }

    /// Whether the schema of the kind is ours at this moment.
    pub(crate) fn schema_is_ours(&self) -> bool {
        self.cache.get().is_some_and(|(_, schema_is_ours)| schema_is_ours())
    }

    /// The record to write to `status.availability`; `None`, with one log line, where the schema of the
    /// kind would drop it.
    pub(crate) fn kept<'a>(&self, record: Option<&'a str>, kind: &Resource) -> Option<&'a str> {
        let record = record?;
        let keeps = |has: &SchemaIsOurs| self.schema_is_ours() && has();
        if self.keeps_records.get().is_some_and(keeps) {
            return Some(record);
        }
        if !self.was_logged.swap(true, Ordering::Relaxed) {
            let crd = format!("{}.{}", kind.plural, kind.group);
            info!(
                crd,
                "The CRD has no status.availability: the availability of its members counts from the start of this process; apply the CRD of config/crd to keep it"
            );
        }
        None
    }

    /// The objective of the cluster: that of its annotation, or else `default`. With it a problem of the
    /// annotation that was not reported before.
    pub(crate) fn objective(
        &self,
        object: &Object<S>,
        default: Option<Objective>,
    ) -> (Option<Objective>, Option<String>) {
        let (key, uid) = (&object.metadata.key, &object.metadata.uid);
        let Some(text) = annotation(object) else {
            self.unusable.lock().remove(key);
            return (default, None);
        };
        let error = match Objective::parse(text) {
            Ok(objective) => {
                self.unusable.lock().remove(key);
                return (objective, None);
            }
            Err(error) => error,
        };
        let reported = (Arc::clone(uid), text.to_owned());
        let mut unusable = self.unusable.lock();
        if unusable.get(key) == Some(&reported) {
            return (default, None);
        }
        unusable
            .retain(|key, _| self.cache.get().is_some_and(|(cache, _)| cache.get(key).is_some()));
        unusable.insert(Arc::clone(key), reported);
        let problem =
            format!("annotation {OBJECTIVE}: {error}; --cluster-health-objective is used");
        (default, Some(problem))
    }
}

/// Whether a change of an object changes its objective.
pub(crate) fn is_another_objective<S: Schema>(old: &Object<S>, new: &Object<S>) -> bool {
    annotation(old) != annotation(new)
}

fn annotation<S: Schema>(object: &Object<S>) -> Option<&str> {
    object.metadata.annotations.get(OBJECTIVE).map(String::as_str)
}
