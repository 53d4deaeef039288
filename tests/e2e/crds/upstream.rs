//! Upstream's objects: the CRDs of `config/crd` have each field of upstream's CRDs with its type, take
//! what upstream stores, and give it back whole in each version.

use std::fs;

use serde_json::{Value, json};
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::programs::workspace;

const OF_AWS: &str = "tests/cluster-api-provider-aws/awsclusters.yaml";
const OURS: &str = "config/crd/infrastructure.cluster.x-k8s.io_awsclusters.yaml";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

fn read(path: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(workspace().join(path)).unwrap()).unwrap()
}

/// The schemas of all versions of a CRD.
fn schemas(path: &str) -> Vec<Value> {
    let versions = read(path)["spec"]["versions"].as_array().unwrap().clone();
    versions.iter().map(|version| version["schema"]["openAPIV3Schema"].clone()).collect()
}

fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// Adds the paths at which ours lacks a field of upstream, has another type, or fewer words.
fn compare(theirs: &Value, ours: &Value, path: &str, found: &mut Vec<String>, seen: &mut u32) {
    *seen += 1;
    // A contract chooses the type of zones.
    let is_free = is_open(ours) && ours.get("type").is_none();
    if theirs["type"] != ours["type"] && !is_free {
        found.push(format!("{path}: {} is not {}", ours["type"], theirs["type"]));
    }
    if let Some(words) = ours["enum"].as_array() {
        for word in theirs["enum"].as_array().into_iter().flatten() {
            if !words.contains(word) {
                found.push(format!("{path}: {word} is missing"));
            }
        }
    }
    if ours.get("default").is_some() && ours["default"] != theirs["default"] {
        found.push(format!("{path}: has a default of its own"));
    }
    for (name, field) in theirs["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match ours["properties"].get(name) {
            Some(held) => compare(field, held, &path, found, seen),
            None if is_open(ours) => {}
            None => found.push(format!("{path} is missing")),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if theirs[inner].is_object() && (ours[inner].is_object() || !is_open(ours)) {
            compare(&theirs[inner], &ours[inner], &format!("{path}[]"), found, seen);
        }
    }
}

#[test]
fn each_field_of_upstream_has_its_type_and_its_words_and_no_other_default() {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut all = |theirs: &[Value], ours: &Value| {
        for theirs in theirs {
            compare(theirs, ours, "", &mut found, &mut seen);
        }
    };
    let of_aws = schemas(OF_AWS);
    all(&of_aws, &schemas(OURS)[0]);
    // The template of upstream has the spec of an AWSCluster of the same version.
    let template = |theirs: &Value| {
        let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
        json!({"properties": {"template": {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"labels": strings, "annotations": strings}},
            "spec": theirs["properties"]["spec"],
        }}}, "type": "object"})
    };
    let templates: Vec<_> = of_aws.iter().map(template).collect();
    let file = format!("config/crd/{INFRASTRUCTURE}_awsclustertemplates.yaml");
    all(&templates, &schemas(&file)[0]["properties"]["spec"]);
    let of_core = schemas("tests/cluster-api-core/clusters.yaml");
    all(&of_core, &schemas("config/crd/cluster.x-k8s.io_clusters.yaml")[0]);
    assert!(found.is_empty() && seen > 450, "{seen} fields, {found:#?}");
}

/// A value of each field of a schema.
fn filled(schema: &Value, name: &str) -> Value {
    let lists: Vec<_> = [schema]
        .into_iter()
        .chain(schema["allOf"].as_array().into_iter().flatten())
        .filter_map(|it| it["enum"].as_array())
        .collect();
    if let [first, others @ ..] = &*lists {
        let word = first.iter().find(|word| others.iter().all(|list| list.contains(word)));
        return word.unwrap().clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let mut made: Value =
                fields.map(|(name, field)| (name.clone(), filled(field, name))).collect();
            if schema["additionalProperties"].is_object() {
                made["key"] = filled(&schema["additionalProperties"], "");
            }
            made
        }
        Some("array") => json!([filled(&schema["items"], name)]),
        Some("boolean") => json!(true),
        Some("integer") => json!(schema["minimum"].as_i64().unwrap_or(1)),
        _ if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ if name.starts_with("ipv6") => json!("fd00::/56"),
        _ if name.to_lowercase().contains("cidr") => json!("10.0.0.0/16"),
        _ if name == "status" => json!("True"),
        _ if name == "healthCheckProtocol" => json!("TCP"),
        _ if name == "carrierGatewayId" => json!("cagw-1"),
        _ if name == "publicIpv4Pool" => json!("ipv4pool-ec2-1"),
        _ => json!("n10"),
    }
}

/// Takes fields of these names away, at every depth.
fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&&**name));
            fields.values_mut().for_each(|inner| without(inner, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| without(inner, names)),
        _ => {}
    }
}

/// AWSClusters with each field of a version of upstream: the sources of rules are CIDRs in one and
/// groups in the other.
fn whole_aws_clusters(version: &str) -> Vec<Value> {
    let crd = read(OF_AWS);
    let mut versions = crd["spec"]["versions"].as_array().unwrap().iter();
    let schema = &versions.find(|it| it["name"] == version).unwrap()["schema"]["openAPIV3Schema"];
    let sources: [&[&str]; 2] = [
        &["cidrBlocks", "ipv6CidrBlocks"],
        &["sourceSecurityGroupIds", "sourceSecurityGroupRoles"],
    ];
    let made = sources.into_iter().zip(["groups", "ranges"]).map(|(absent, name)| {
        let mut object = filled(schema, "");
        without(&mut object, absent);
        object["apiVersion"] = json!(format!("{INFRASTRUCTURE}/{version}"));
        object["kind"] = json!("AWSCluster");
        object["metadata"] = json!({"name": format!("{name}-{version}"), "namespace": "default"});
        object
    });
    made.collect()
}

/// The objects of upstream's templates and tests, each with a name of its own.
fn templates() -> Vec<Value> {
    let mut all = read("tests/cluster-api-provider-aws/objects.yaml");
    let all = all.as_array_mut().unwrap();
    for (at, object) in all.iter_mut().enumerate() {
        object["metadata"]["name"] = json!(format!("template-{at}"));
    }
    all.clone()
}

/// An object as each of these versions shows it.
fn shown(kubectl: &Kubectl, object: &Value, versions: &[&str]) -> Vec<Value> {
    let (group, _) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let name = object["metadata"]["name"].as_str().unwrap();
    let read = |version: &&str| kubectl.object(&format!("{plural}.{version}.{group} {name}"));
    versions.iter().map(read).collect()
}

fn assert_whole(kubectl: &Kubectl, object: &Value, versions: &[&str]) {
    for read in shown(kubectl, object, versions) {
        for part in ["spec", "status"] {
            assert_eq!(read[part], object[part], "{part} of {}", object["metadata"]["name"]);
        }
    }
}

fn create(kubectl: &Kubectl, object: &Value) {
    kubectl.create(object);
    if let Some(status) = object.get("status") {
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        kubectl.patch_status(&format!("awsclusters.{version}.{group} {name}"), status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_upstream_are_taken_and_come_back_whole_in_each_version() {
    let kubectl = Kubectl::with_crds().await;
    let versions = ["v1beta1", "v1beta2"];
    let whole = versions.into_iter().flat_map(whole_aws_clusters);
    let mut all: Vec<_> = whole.chain(templates()).collect();
    let template =
        json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": all[0]["spec"]}});
    all.push(
        json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "AWSClusterTemplate",
        "metadata": {"name": "whole", "namespace": "default"}, "spec": template}),
    );
    for object in &all {
        create(&kubectl, object);
        let has_oldest = object["kind"] != "AWSClusterTemplate";
        let versions = [&["v1alpha2"][..usize::from(has_oldest)], &versions].concat();
        assert_whole(&kubectl, object, &versions);
    }
    assert!(all.len() > 30, "{} objects", all.len());

    // A template is what the objects of a ClusterClass were made of.
    let of = format!("awsclustertemplates.{INFRASTRUCTURE} whole");
    let other = json!([{"op": "replace", "path": "/spec/template/spec/region", "value": "other"}]);
    let patch = format!("patch {of} --type=json -p {}", other.to_string().replace(' ', ""));
    let refused = kubectl.refused(&patch);
    assert!(refused.contains("a template does not change"), "{refused}");
    kubectl.run(&format!("label {of} a=b"));
}

/// An operator moves from upstream's provider to this program and back.
#[tokio::test(flavor = "multi_thread")]
async fn objects_move_from_upstreams_crd_to_ours_and_back_unchanged() {
    let kubectl = Kubectl::without_crds().await;
    kubectl.run(&format!("create -f {OF_AWS}"));
    let is_aws_cluster = |it: &Value| it["kind"] == "AWSCluster";
    let mut all: Vec<_> = templates().into_iter().filter(is_aws_cluster).collect();
    all.retain(|it| it["apiVersion"].as_str().unwrap().ends_with("/v1beta2"));
    all.extend(whole_aws_clusters("v1beta2"));
    let served = format!("get awsclusters.v1beta2.{INFRASTRUCTURE}");
    poll("the kind is served", async || kubectl.succeeds(&served).then_some(())).await;
    for object in &all {
        create(&kubectl, object);
    }
    // Upstream's CRD writes its defaults into a spec.
    let before: Vec<_> =
        all.iter().map(|object| shown(&kubectl, object, &["v1beta2"]).remove(0)).collect();
    let same = |versions: &[&str]| {
        for object in &before {
            assert_whole(&kubectl, object, versions);
        }
    };
    kubectl.run(&format!("replace -f {OURS}"));
    let oldest = format!("get --raw /apis/{INFRASTRUCTURE}/v1alpha2/awsclusters");
    poll("our versions", async || kubectl.succeeds(&oldest).then_some(())).await;
    same(&["v1alpha2", "v1beta1", "v1beta2"]);
    kubectl.run(&format!("label awsclusters.v1alpha2.{INFRASTRUCTURE} --all kept=by-ours"));
    kubectl.run(&format!("replace -f {OF_AWS}"));
    poll("upstream's versions", async || (!kubectl.succeeds(&oldest)).then_some(())).await;
    same(&["v1beta2"]);
    kubectl.run(&format!(
        "label awsclusters.v1beta2.{INFRASTRUCTURE} --all kept=by-upstream --overwrite"
    ));
}
