//! Events as core v1 has them: the body of the POST and of the PATCH.
//!
//! Used by [`crate::deliver`]. `kubectl describe` and every tool that reads events knows core v1;
//! the newer group shows in other columns.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};

use crate::correlate::Observation;
use crate::object::ObjectRef;

/// Who writes the events of one recorder.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// `source.component` and `reportingComponent`.
    pub(crate) component: &'static str,
    /// `reportingInstance`: the identity of this process.
    pub(crate) instance: String,
}

/// The Event to create.
pub(crate) fn body(observation: &Observation, source: &Source) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(observation.name.clone()),
            namespace: Some(observation.object.event_namespace().to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: reference(&observation.object),
        type_: Some(observation.event_type.as_str().to_owned()),
        reason: Some(observation.reason.to_owned()),
        message: Some(observation.message.clone()),
        count: Some(i32::try_from(observation.count).unwrap_or(i32::MAX)),
        first_timestamp: Some(Time(observation.first)),
        last_timestamp: Some(Time(observation.last)),
        source: Some(EventSource { component: Some(source.component.to_owned()), host: None }),
        reporting_component: Some(source.component.to_owned()),
        reporting_instance: Some(source.instance.clone()),
        ..Event::default()
    }
}

/// What changes in an Event that happened again, for the `count`-th time. The message is part of it for folded events,
/// which show the newest one.
pub(crate) fn repeat(observation: &Observation, count: u32) -> Value {
    let Observation { last, message, .. } = observation;
    json!({ "count": count, "lastTimestamp": Time(*last), "message": message })
}

fn reference(object: &ObjectRef) -> ObjectReference {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ObjectReference {
        api_version: some(&object.api_version),
        kind: some(&object.kind),
        namespace: some(&object.namespace),
        name: some(&object.name),
        uid: some(&object.uid),
        ..ObjectReference::default()
    }
}
