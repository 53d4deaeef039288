//! CRDs with the fields of TKEStack's own types and no others (tkestack/tke,
//! api/platform/v1/types.go), as strict as an aggregated API server: what a schema does not have is
//! dropped, and refused by server-side apply.

use serde_json::{Map, Value, json};

/// `Cluster`, `ClusterCredential` and `Machine`.
pub(crate) fn all() -> Vec<Value> {
    let (spec, status) = (cluster_spec(), cluster_status());
    let cluster = json!({"spec": spec, "status": status});
    let machine = json!({"spec": machine_spec(), "status": machine_status()});
    vec![
        crd("clusters", "Cluster", &cluster, true),
        crd("clustercredentials", "ClusterCredential", &credential(), false),
        crd("machines", "Machine", &machine, true),
    ]
}

fn crd(plural: &str, kind: &str, properties: &Value, has_status: bool) -> Value {
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    // Its API server selects credentials by this field.
    let selectable = if has_status { json!([]) } else { json!([{"jsonPath": ".clusterName"}]) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.platform.tkestack.io")},
        "spec": {
            "group": "platform.tkestack.io", "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "selectableFields": selectable,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    })
}

fn of(kind: &str, fields: &[&str]) -> Map<String, Value> {
    fields.iter().map(|&field| (field.to_owned(), json!({"type": kind}))).collect()
}

fn object(fields: Vec<Map<String, Value>>, more: &Value) -> Value {
    let mut properties: Map<_, _> = fields.into_iter().flatten().collect();
    properties.extend(more.as_object().unwrap().clone());
    json!({"type": "object", "properties": properties})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A list that upstream merges by `type`.
fn by_type(items: &Value) -> Value {
    let mut items = items.clone();
    items["required"] = json!(["type"]);
    json!({
        "type": "array", "items": items,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    })
}

fn map(values: &Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

fn quantities() -> Value {
    map(&json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
    }))
}

fn text() -> Value {
    json!({"type": "string"})
}

fn conditions() -> Value {
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let times = json!({"lastProbeTime": time, "lastTransitionTime": time});
    by_type(&object(vec![of("string", &["type", "status", "reason", "message"])], &times))
}

fn cluster_spec() -> Value {
    let texts = [
        "tenantID",
        "displayName",
        "type",
        "version",
        "networkType",
        "networkDevice",
        "clusterCIDR",
        "serviceCIDR",
        "dnsDomain",
    ];
    let machine = object(
        vec![
            of("string", &["ip", "username", "password", "privateKey", "passPhrase"]),
            of("integer", &["port"]),
        ],
        &json!({"labels": map(&text())}),
    );
    object(
        vec![of("string", &texts)],
        &json!({
            "finalizers": list(&text()),
            "publicAlternativeNames": list(&text()),
            "properties": object(
                vec![of("integer", &["maxClusterServiceNum", "maxNodePodNum"])],
                &json!({"oversoldRatio": map(&text())}),
            ),
            "machines": list(&machine),
            "dockerExtraArgs": map(&text()),
            "kubeletExtraArgs": map(&text()),
            "apiServerExtraArgs": map(&text()),
            "controllerManagerExtraArgs": map(&text()),
            "schedulerExtraArgs": map(&text()),
            "clusterCredentialRef": object(vec![of("string", &["name"])], &json!({})),
        }),
    )
}

fn cluster_status() -> Value {
    let address =
        object(vec![of("string", &["type", "host"]), of("integer", &["port"])], &json!({}));
    let replicas = of("integer", &["desired", "current", "available", "updated"]);
    let component = object(
        vec![of("string", &["type"])],
        &json!({"replicas": object(vec![replicas], &json!({}))}),
    );
    let resource = json!({
        "capacity": quantities(), "allocatable": quantities(), "allocated": quantities(),
    });
    object(
        vec![
            of("boolean", &["locked"]),
            of("string", &["version", "phase", "message", "reason", "serviceCIDR", "dnsIP"]),
            of("integer", &["nodeCIDRMaskSize"]),
        ],
        &json!({
            "conditions": conditions(),
            // Upstream merges them by `type` too and has several of one type all the same, which
            // its API server takes and a CRD would not.
            "addresses": list(&address),
            "resource": object(vec![], &resource),
            "components": by_type(&component),
            "registryIPs": list(&text()),
        }),
    )
}

fn credential() -> Value {
    let texts = [
        "tenantID",
        "clusterName",
        "etcdCACert",
        "etcdCAKey",
        "etcdAPIClientCert",
        "etcdAPIClientKey",
        "caCert",
        "caKey",
        "clientCert",
        "clientKey",
        "token",
        "bootstrapToken",
        "certificateKey",
    ];
    Value::Object(of("string", &texts))
}

fn machine_spec() -> Value {
    let texts = [
        "tenantID",
        "clusterName",
        "type",
        "ip",
        "username",
        "password",
        "privateKey",
        "passPhrase",
    ];
    let more = json!({"finalizers": list(&text()), "labels": map(&text())});
    object(vec![of("string", &texts), of("integer", &["port"])], &more)
}

fn machine_status() -> Value {
    let info = [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ];
    let address = object(vec![of("string", &["type", "address"])], &json!({}));
    object(
        vec![of("boolean", &["locked"]), of("string", &["phase", "message", "reason"])],
        &json!({
            "conditions": conditions(),
            "addresses": list(&address),
            "machineInfo": object(vec![of("string", &info)], &json!({})),
        }),
    )
}
