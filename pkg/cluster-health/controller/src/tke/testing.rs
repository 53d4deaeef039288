//! Clusters, Machines and options of the tests.

use std::sync::Arc;

use objects::Object;
use probe::{Client, Problem};
use serde_json::{Value, json};

use crate::api::tke::{Cluster, Machine};
use crate::engine::{self, Connection, Connections, ResolvedFrom};
use crate::flags::FLAGS;
use crate::options::{TkeOptions, judge};

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

/// A machine of `cls-1` that runs, with whatever else.
pub(crate) fn machine(edit: impl FnOnce(&mut Value)) -> Object<Machine> {
    let mut object = json!({
        "apiVersion": "platform.tkestack.io/v1", "kind": "Machine",
        "metadata": {"name": "mc-1", "uid": "m1", "resourceVersion": "7"},
        "spec": {"clusterName": "cls-1", "ip": "10.0.0.1", "type": "Baremetal"},
        "status": {"phase": "Running"},
    });
    edit(&mut object);
    Object::read(object).unwrap()
}

/// The defaults but for these flags.
pub(crate) fn options(flags: &[(&str, &str)]) -> TkeOptions {
    let values = flags::Values::from_given(FLAGS, flags.iter().copied()).unwrap();
    judge(&values).unwrap().0.tke.unwrap()
}

/// The Cluster is reached by this client from now on; its objects are not looked at.
pub(crate) fn connect(
    connections: &Connections,
    cluster: &engine::MemberId,
    client: Result<Arc<Client>, Problem>,
) {
    let resolved_from = ResolvedFrom { access: 0, credential: None, secret: None };
    connections.set(cluster, Connection { resolved_from, client, resolved_at: None }, &[]);
}
