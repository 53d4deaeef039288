//! [`Infrastructure`]: what any object that makes infrastructure says of itself, in the words of
//! every contract of Cluster API. Pure.

use objects::{Dynamic, Object};
use serde::Deserialize;
use serde_json::Value;

use crate::api::Condition;
use crate::api::cluster::Endpoint;

/// The status of an infrastructure object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Infrastructure {
    /// Everything that the cluster needs is there.
    pub(crate) ready: bool,
    /// Where clients reach the API server; empty where it does not say.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Zones, in whichever form.
    pub(crate) failure_domains: Option<Value>,
    /// Why it cannot go on without help, as one word and for people.
    pub(crate) failure: Option<(String, String)>,
    pub(crate) ready_condition: Option<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    ready: bool,
    initialization: Initialization,
    api_endpoints: Vec<Endpoint>,
    failure_domains: Option<Value>,
    error_reason: String,
    error_message: String,
    failure_reason: String,
    failure_message: String,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Initialization {
    provisioned: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    control_plane_endpoint: Endpoint,
}

impl Infrastructure {
    pub(crate) fn read(object: &Object<Dynamic>) -> Result<Self, serde_json::Error> {
        let status = match &object.status {
            Value::Null => Status::default(),
            status => Status::deserialize(status)?,
        };
        let endpoints = if status.api_endpoints.iter().any(Endpoint::is_set) {
            status.api_endpoints
        } else {
            let spec = object.body.get("spec").cloned().unwrap_or_default();
            // A spec in which it is of another form has none.
            let spec = Spec::deserialize(spec).unwrap_or_default();
            vec![spec.control_plane_endpoint]
        };
        let either = |newer: String, older: String| if newer.is_empty() { older } else { newer };
        let reason = either(status.failure_reason, status.error_reason);
        let message = either(status.failure_message, status.error_message);
        let failed = !reason.is_empty() || !message.is_empty();
        Ok(Self {
            ready: status.ready || status.initialization.provisioned,
            endpoints: endpoints.into_iter().filter(Endpoint::is_set).collect(),
            failure_domains: status.failure_domains,
            failure: failed.then_some((reason, message)),
            ready_condition: status.conditions.into_iter().find(|it| it.kind == "Ready"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(spec: Value, status: Value) -> Infrastructure {
        let object = Object::read(json!({
            "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "spec": spec, "status": status,
        }))
        .unwrap();
        Infrastructure::read(&object).unwrap()
    }

    #[test]
    fn readiness_and_endpoint_are_read_in_the_words_of_every_contract() {
        let endpoint = json!({"host": "h", "port": 6443});
        let older = read(json!({}), json!({"ready": true, "apiEndpoints": [endpoint]}));
        let spec = json!({"controlPlaneEndpoint": endpoint});
        let middle = read(spec.clone(), json!({"ready": true}));
        let newer = read(spec, json!({"initialization": {"provisioned": true}}));
        for said in [older, middle, newer] {
            assert!(said.ready);
            assert_eq!(said.endpoints, [Endpoint { host: "h".to_owned(), port: 6443 }]);
        }
        let fresh = read(json!({"controlPlaneEndpoint": {"host": "", "port": 0}}), Value::Null);
        assert_eq!(fresh, Infrastructure::default());
    }

    #[test]
    fn a_failure_is_read_under_its_older_and_its_newer_name() {
        let failure = |status| read(json!({}), status).failure;
        let said = Some(("CreateError".to_owned(), "no room".to_owned()));
        assert_eq!(failure(json!({"errorReason": "CreateError", "errorMessage": "no room"})), said);
        assert_eq!(
            failure(json!({"failureReason": "CreateError", "failureMessage": "no room"})),
            said
        );
        assert_eq!(failure(json!({"errorMessage": "x"})), Some((String::new(), "x".to_owned())));
        assert_eq!(failure(json!({})), None);
    }
}
