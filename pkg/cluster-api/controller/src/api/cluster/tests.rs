use serde_json::json;

use super::Dialect::{V1Alpha2, V1Beta2};
use super::*;
use crate::api::{CLUSTER_FINALIZER, DIALECT_ANNOTATION};

fn spec(json: Value) -> ClusterSpec {
    serde_json::from_value(json).unwrap()
}

fn cluster(json: Value) -> Object<Cluster> {
    Object::read(json).unwrap()
}

/// rule:the-dialect-is-remembered
#[test]
fn the_dialect_is_that_of_the_writer_until_it_is_remembered() {
    let older = json!({"apiVersion": "i/v1alpha2", "kind": "K", "name": "n"});
    let newer = json!({"apiGroup": "i", "kind": "K", "name": "n"});
    let between = json!({"apiVersion": "i/v1beta1", "kind": "K", "name": "n"});
    let owns = |version: &str| {
        json!([{"apiVersion": "cluster.x-k8s.io/v1alpha3", "fieldsV1": {"f:metadata": {}}},
            {"apiVersion": "cluster.x-k8s.io/v1alpha2", "subresource": "status",
                "fieldsV1": {"f:spec": {"f:infrastructureRef": {}}}},
            {"apiVersion": format!("cluster.x-k8s.io/{version}"),
                "fieldsV1": {"f:spec": {"f:infrastructureRef": {"f:kind": {}}}}}])
    };
    let first = |version: &str| json!([{"apiVersion": version, "fieldsV1": {"f:metadata": {}}}]);
    let (none, held) = (json!([]), CLUSTER_FINALIZER);
    for (remembered, finalizer, writers, reference, expected) in [
        (None, "", owns("v1alpha2"), &between, V1Alpha2),
        (None, "", owns("v1beta1"), &older, V1Beta2),
        (None, "", owns("v1beta2"), &newer, V1Beta2),
        (None, "", first("cluster.x-k8s.io/v1alpha2"), &json!(null), V1Alpha2),
        (None, "", none.clone(), &older, V1Alpha2),
        (None, "", none.clone(), &between, V1Beta2),
        (None, "", none.clone(), &newer, V1Beta2),
        (None, "", none.clone(), &json!(null), V1Beta2),
        // Held by an earlier release, which went by the form.
        (None, held, owns("v1beta1"), &between, V1Alpha2),
        (None, held, owns("v1alpha2"), &newer, V1Beta2),
        (Some("v1alpha2"), held, owns("v1beta2"), &newer, V1Alpha2),
        (Some("v1beta2"), "", owns("v1alpha2"), &older, V1Beta2),
        (Some("unknown"), held, owns("v1alpha2"), &newer, V1Beta2),
    ] {
        let annotations = remembered.map(|name| json!({DIALECT_ANNOTATION: name}));
        let row = format!("{remembered:?} {finalizer:?} {writers} {reference}");
        let object = cluster(json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u",
            "resourceVersion": "1", "finalizers": [finalizer], "annotations": annotations,
            "managedFields": writers}, "spec": {"infrastructureRef": reference}}));
        assert_eq!(dialect(&object), expected, "{row}");
    }
}

/// Earlier releases took the dialect from the form of references.
#[test]
fn the_form_of_the_references_gives_the_dialect_of_a_stored_cluster() {
    let older = json!({"apiVersion": "i/v1", "kind": "K", "name": "n"});
    let newer = json!({"apiGroup": "i", "kind": "K", "name": "n"});
    for (fields, dialect) in [
        (json!({"infrastructureRef": older}), Dialect::V1Alpha2),
        (json!({"infrastructureRef": newer}), Dialect::V1Beta2),
        (json!({"controlPlaneRef": newer}), Dialect::V1Beta2),
        (json!({"infrastructureRef": older, "controlPlaneRef": newer}), Dialect::V1Alpha2),
        (json!({"topology": {}}), Dialect::V1Beta2),
        (json!({}), Dialect::V1Alpha2),
    ] {
        assert_eq!(spec(fields.clone()).dialect_by_form(), dialect, "{fields}");
    }
}

#[test]
fn what_happened_once_is_read_in_the_words_of_both_dialects() {
    let status = |json| serde_json::from_value::<ClusterStatus>(json).unwrap();
    let older = status(json!({"infrastructureReady": true, "controlPlaneInitialized": true}));
    assert!(older.infrastructure_was_ready() && older.control_plane_was_initialized());
    let newer = status(json!({"initialization":
        {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}));
    assert!(newer.infrastructure_was_ready() && newer.control_plane_was_initialized());
    let neither = status(json!({"infrastructureReady": false, "initialization": {}}));
    assert!(!neither.infrastructure_was_ready() && !neither.control_plane_was_initialized());
}

#[test]
fn the_published_endpoint_counts_before_that_of_the_spec_and_an_empty_one_is_none() {
    let made = |spec: Value, status: Value| {
        cluster(
            json!({"metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "spec": spec, "status": status}),
        )
    };
    let of_spec = json!({"controlPlaneEndpoint": {"host": "s", "port": 1}});
    let of_status = json!({"apiEndpoints": [{"host": "p", "port": 2}, {"host": "q", "port": 3}]});
    let host = |cluster: &Object<Cluster>| endpoint(cluster).map(|it| it.host.clone());
    assert_eq!(host(&made(of_spec.clone(), of_status)).as_deref(), Some("p"));
    assert_eq!(host(&made(of_spec, json!({}))).as_deref(), Some("s"));
    let empty = json!({"controlPlaneEndpoint": {"host": "", "port": 0}});
    assert_eq!(host(&made(empty, json!({}))), None);
}

#[test]
fn a_cluster_is_paused_by_its_spec_or_by_an_annotation_of_any_value() {
    let made = |paused: bool, annotations: Value| {
        cluster(
            json!({"metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1",
            "annotations": annotations}, "spec": {"paused": paused}}),
        )
    };
    assert!(is_paused(&made(true, json!({}))));
    assert!(is_paused(&made(false, json!({"cluster.x-k8s.io/paused": ""}))));
    assert!(!is_paused(&made(false, json!({}))));
}
