use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::shape::Shape;

/// Adds every field of a schema, with its type.
fn collect(schema: &Value, path: &str, fields: &mut BTreeMap<String, Shape>) {
    // One without a type holds anything.
    let Some(of_type) = schema["type"].as_str() else { return };
    let shape = match (of_type, schema["format"].as_str()) {
        ("string", Some("byte")) => Bytes,
        ("string", _) => Text,
        ("integer", _) => Integer,
        ("boolean", _) => Boolean,
        ("array", _) => List(schema["maxItems"].as_u64().unwrap().try_into().unwrap()),
        _ if schema["additionalProperties"]["type"] == "string" => Texts,
        _ => Object,
    };
    fields.insert(path.to_owned(), shape);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        collect(field, &format!("{path}.{name}"), fields);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], &format!("{path}[]"), fields);
    }
}

/// What stands in an AWSCluster more than once.
fn below_networks() -> BTreeMap<String, Shape> {
    let mut fields = BTreeMap::new();
    let mut add = |at: &str, table: &[Field]| {
        fields.extend(table.iter().map(|&(path, shape)| (format!("{at}.{path}"), shape)));
    };
    for network in ["spec.network", "spec.networkSpec"] {
        add(network, aws_cluster::NETWORK);
        for rules in ["additionalControlPlaneIngressRules", "additionalNodeIngressRules"] {
            add(&format!("{network}.{rules}[]"), aws_cluster::RULE);
        }
    }
    add("spec.controlPlaneLoadBalancer.ingressRules[]", aws_cluster::RULE);
    fields
}

/// rule:wrong-types-are-told-first
#[test]
fn fields_and_their_types_are_those_of_the_schemas_that_are_shipped() {
    for (kind, crd) in [
        (
            Kind::Cluster,
            include_str!("../../../../../config/crd/platform.tkestack.io_clusters.yaml"),
        ),
        (
            Kind::ClusterCredential,
            include_str!("../../../../../config/crd/platform.tkestack.io_clustercredentials.yaml"),
        ),
        (
            Kind::Machine,
            include_str!("../../../../../config/crd/platform.tkestack.io_machines.yaml"),
        ),
        (
            Kind::KubeFedCluster,
            include_str!("../../../../../config/crd/core.kubefed.io_kubefedclusters.yaml"),
        ),
        (
            Kind::ClusterCidr,
            include_str!("../../../../../config/crd/networking.x-k8s.io_clustercidrs.yaml"),
        ),
        (
            Kind::AwsCluster,
            include_str!(
                "../../../../../config/crd/infrastructure.cluster.x-k8s.io_awsclusters.yaml"
            ),
        ),
        (
            Kind::KubeFedConfig,
            include_str!("../../../../../config/crd/core.kubefed.io_kubefedconfigs.yaml"),
        ),
    ] {
        let crd: Value = serde_saphyr::from_str(crd).unwrap();
        let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut shipped = BTreeMap::new();
        for (name, field) in root["properties"].as_object().unwrap() {
            if !["apiVersion", "kind", "metadata", "status"].contains(&&**name) {
                collect(field, name, &mut shipped);
            }
        }
        let mut known: BTreeMap<String, Shape> = of(kind)
            .iter()
            .filter(|(path, _)| !path.starts_with("metadata"))
            .map(|&(path, shape)| (path.to_owned(), shape))
            .collect();
        if kind == Kind::AwsCluster {
            known.extend(below_networks());
        }
        assert_eq!(known, shipped, "{kind}");
    }
}
