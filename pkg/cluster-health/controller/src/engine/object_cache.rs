//! [`Objects`]: the cached objects of a flavour, what their schema keeps, and what their annotations say.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use health::{EvidenceSource, Objective};
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
/// The annotation with what the health of one cluster is judged by: `beat` or `probe`.
const EVIDENCE: &str = "infra-controller-manager/evidence";

/// The key of an object, and the name of its annotation.
type Annotation = (Arc<str>, &'static str);
/// UID and annotation of an object.
type Annotated = (Arc<str>, String);

/// The cached objects of a flavour, and what their schema has; set when a run begins.
pub(crate) struct Objects<S: Schema> {
    cache: OnceLock<(Informer<Object<S>>, SchemaIsOurs)>,
    keeps_records: OnceLock<SchemaIsOurs>,
    was_logged: AtomicBool,
    /// UID and annotation of objects whose annotation cannot be used, so that each is reported once.
    unusable: Mutex<HashMap<Annotation, Annotated>>,
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
        let (objective, problem) = self.annotated(object, OBJECTIVE, Objective::parse);
        let problem = problem.map(|why| format!("{why}; --cluster-health-objective is used"));
        (objective.unwrap_or(default), problem)
    }

    /// What the health of the cluster is judged by: by its annotation, or else by probes and its Lease. With it a problem
    /// of the annotation that was not reported before.
    pub(crate) fn evidence_source(&self, object: &Object<S>) -> (EvidenceSource, Option<String>) {
        let (source, problem) = self.annotated(object, EVIDENCE, EvidenceSource::parse);
        let problem = problem.map(|why| format!("{why}; the annotation is ignored"));
        (source.unwrap_or_default(), problem)
    }

    /// The annotation of this name; `None` without one, or when it cannot be used. With it a problem that was not
    /// reported before.
    fn annotated<T>(
        &self,
        object: &Object<S>,
        name: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> (Option<T>, Option<String>) {
        let id = (Arc::clone(&object.metadata.key), name);
        let text = object.metadata.annotations.get(name);
        let (text, error) = match text.map(|text| (text, parse(text))) {
            Some((text, Err(error))) => (text, error),
            usable => {
                self.unusable.lock().remove(&id);
                return (usable.and_then(|(_, parsed)| parsed.ok()), None);
            }
        };
        let reported = (Arc::clone(&object.metadata.uid), text.clone());
        let mut unusable = self.unusable.lock();
        if unusable.get(&id) == Some(&reported) {
            return (None, None);
        }
        unusable.retain(|(key, _), _| {
            self.cache.get().is_some_and(|(cache, _)| cache.get(key).is_some())
        });
        unusable.insert(id, reported);
        (None, Some(format!("annotation {name}: {error}")))
    }
}

/// Whether a change of an object changes an annotation that is read here.
pub(crate) fn is_annotated_otherwise<S: Schema>(old: &Object<S>, new: &Object<S>) -> bool {
    let is_other = |name| old.metadata.annotations.get(name) != new.metadata.annotations.get(name);
    [OBJECTIVE, EVIDENCE].into_iter().any(is_other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster_profile::testing::profile;

    #[test]
    fn an_annotation_that_cannot_be_used_is_reported_once_and_ignored() {
        let objects = Objects::default();
        let object = |text: Option<&str>| {
            profile(|it| {
                it["metadata"]["annotations"] =
                    text.map_or(json!({}), |text| json!({ EVIDENCE: text }));
            })
        };
        let source = |text| objects.evidence_source(&object(text));
        assert_eq!(source(None), (EvidenceSource::Both, None));
        assert_eq!(source(Some("beat")), (EvidenceSource::Beats, None));
        let (both, told) = source(Some("beats"));
        let text = "annotation infra-controller-manager/evidence: \"beats\" is neither \"beat\" nor \"probe\"; \
                    the annotation is ignored";
        assert_eq!((both, told.as_deref()), (EvidenceSource::Both, Some(text)));
        assert_eq!(source(Some("beats")), (EvidenceSource::Both, None));
        assert_eq!(source(Some("probe")), (EvidenceSource::Probes, None));
        assert!(source(Some("beats")).1.is_some(), "it is wrong again");
        assert!(is_annotated_otherwise(&object(Some("beat")), &object(None)));
        assert!(!is_annotated_otherwise(&object(Some("beat")), &object(Some("beat"))));
    }
}
