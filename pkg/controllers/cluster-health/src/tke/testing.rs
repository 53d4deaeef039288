//! Clusters of the tests.

use objects::Object;
use serde_json::{Value, json};

use crate::api::tke::Cluster;

/// An imported cluster that runs, with whatever else.
pub(crate) fn cluster(edit: impl FnOnce(&mut Value)) -> Object<Cluster> {
    let mut object = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
        "metadata": {"name": "cls-1", "uid": "u1", "resourceVersion": "7"},
        "spec": {"tenantID": "t", "type": "Imported"},
        "status": {"phase": "Running"},
    });
    edit(&mut object);
    Object::read(object).unwrap()
}
