//! Addresses that a new Cluster has in its status, which the API server drops: copied to its spec. Pure.

use serde_json::{Value, json};
use validation::Kind;

use super::review::Subject;

/// The JSON patch for a new Cluster whose status alone has addresses, as TKEStack's own users make it.
pub(super) fn patch(subject: &Subject) -> Option<Value> {
    let Subject { kind: Kind::Cluster, object, old: None, .. } = subject else { return None };
    let list = |part: &str| object[part]["addresses"].as_array().filter(|list| !list.is_empty());
    if !object["spec"].is_object() || list("spec").is_some() {
        return None;
    }
    let addresses = list("status")?;
    Some(json!([{"op": "add", "path": "/spec/addresses", "value": addresses}]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(object: &Value, old: Option<Value>) -> Option<Value> {
        let (kind, object) = (Kind::of(object).unwrap(), object.clone());
        patch(&Subject { kind, object, old, is_dry_run: false })
    }

    #[test]
    fn addresses_that_only_the_status_of_a_new_cluster_has_are_copied_to_its_spec() {
        let addresses = json!([{"type": "Real", "host": "10.0.0.1", "port": 6443}]);
        let cluster = |spec: Value, status: Value| {
            json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
                "spec": spec, "status": status})
        };
        let in_status = json!({"addresses": addresses});
        let expected = json!([{"op": "add", "path": "/spec/addresses", "value": addresses}]);
        for spec in [json!({}), json!({"addresses": []}), json!({"addresses": null})] {
            let made = patched(&cluster(spec, in_status.clone()), None);
            assert_eq!(made.as_ref(), Some(&expected));
        }
        for (spec, status) in [
            (json!({"addresses": addresses}), json!({"addresses": [{"type": "Real"}]})),
            (json!({}), json!({})),
            (json!({}), json!({"addresses": []})),
            (json!({}), json!({"addresses": "x"})),
            (Value::Null, in_status.clone()),
        ] {
            assert_eq!(patched(&cluster(spec, status), None), None);
        }
        let changed = cluster(json!({}), in_status.clone());
        assert_eq!(patched(&changed, Some(json!({}))), None);
        let machine = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Machine",
            "spec": {}, "status": in_status});
        assert_eq!(patched(&machine, None), None);
    }
}
