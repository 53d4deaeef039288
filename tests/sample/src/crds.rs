//! The CRDs of the sample, as manifests.

use kube_api::Resource;
use serde_json::{Value, json};

/// Value of the label `app.kubernetes.io/managed-by` that makes a CRD ours.
pub const PRODUCT: &str = "infra-controller-manager";

/// The CRD of this kind. Its schema keeps fields that it does not name.
pub fn manifest(resource: &Resource) -> Value {
    let Resource { group, version, kind, plural, .. } = resource;
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {"app.kubernetes.io/managed-by": PRODUCT},
        },
        "spec": {
            "group": group,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(),
                "listKind": format!("{kind}List")},
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": open, "status": open},
                }},
            }],
        },
    })
}
