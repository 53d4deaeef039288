use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::shape::Limit;
use crate::shape::Shape;

/// Adds every field of a schema, with its type.
fn collect(schema: &Value, path: &str, fields: &mut BTreeMap<String, Shape>) {
    // One without a type holds anything.
    let Some(of_type) = schema["type"].as_str() else { return };
    let shape = match (of_type, schema["format"].as_str()) {
        ("string", Some("byte")) => Bytes,
        ("string", _) => Text,
        ("integer", _) => {
            let bound = |name: &str| schema[name].as_i64();
            Integer(bound("minimum").unwrap_or(i64::MIN), bound("maximum").unwrap_or(i64::MAX))
        }
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

/// Adds every limit of a schema that the library has as one.
fn collect_limits(schema: &Value, path: &str, found: &mut BTreeSet<(String, Wanted)>) {
    let number =
        |schema: &Value, name: &str| schema[name].as_u64().map(|it| it.try_into().unwrap());
    let longest = number(schema, "maxLength").map(Wanted::Longest);
    let keys = number(schema, "maxProperties").map(Wanted::Keys);
    let values = number(&schema["additionalProperties"], "maxLength").map(Wanted::Values);
    let time = (schema["format"] == "date-time").then_some(Wanted::DateTime);
    let cidr = (schema["format"] == "cidr").then_some(Wanted::Cidr);
    found.extend(
        [longest, keys, values, time, cidr].into_iter().flatten().map(|it| (path.to_owned(), it)),
    );
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        collect_limits(field, &format!("{path}.{name}"), found);
    }
    if schema["items"].is_object() {
        collect_limits(&schema["items"], &format!("{path}[]"), found);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Longest(usize),
    Keys(usize),
    Values(usize),
    DateTime,
    Cidr,
}

fn wanted(limits: &[(&str, Limit)], at: &str) -> BTreeSet<(String, Wanted)> {
    let wanted = |(path, limit): &(&str, Limit)| {
        let wanted = match *limit {
            Limit::Longest(most) => Wanted::Longest(most),
            Limit::Keys(most) => Wanted::Keys(most),
            Limit::Values(most) => Wanted::Values(most),
            Limit::DateTime => Wanted::DateTime,
            Limit::Cidr => Wanted::Cidr,
            Limit::Words(_) | Limit::Shortest(_) => return None,
        };
        Some((format!("{at}{path}"), wanted))
    };
    limits.iter().filter_map(wanted).collect()
}

fn limits_of(kind: Kind) -> BTreeSet<(String, Wanted)> {
    let mut found = wanted(crate::limits::of(kind), "");
    if kind == Kind::AwsCluster {
        use crate::aws_cluster::{CLUSTER, NETWORK, RULE};
        found.extend(wanted(CLUSTER, ""));
        for network in ["spec.network.", "spec.networkSpec."] {
            found.extend(wanted(NETWORK, network));
            for rules in ["additionalControlPlaneIngressRules", "additionalNodeIngressRules"] {
                found.extend(wanted(RULE, &format!("{network}{rules}[].")));
            }
        }
        found.extend(wanted(RULE, "spec.controlPlaneLoadBalancer.ingressRules[]."));
    }
    found
}

/// Types that occur in an AWSCluster more than once.
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

#[test]
fn fields_their_types_and_bounds_are_those_of_the_schemas_that_are_shipped() {
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
        let (mut shipped, mut limits) = (BTreeMap::new(), BTreeSet::new());
        for (name, field) in root["properties"].as_object().unwrap() {
            if !["apiVersion", "kind", "metadata", "status"].contains(&&**name) {
                collect(field, name, &mut shipped);
                collect_limits(field, name, &mut limits);
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
        assert_eq!(limits_of(kind), limits, "{kind}");
    }
}
