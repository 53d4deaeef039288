//! Guarantees of the manifests themselves; no server is needed.

use std::fs;

use serde_json::Value;
use tests::programs::workspace;

fn crds() -> Vec<Value> {
    let folder = fs::read_dir(workspace().join("config/crd")).unwrap();
    let texts = folder.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let crds: Vec<Value> = texts.map(|text| serde_saphyr::from_str(&text).unwrap()).collect();
    assert!(crds.len() >= 9, "{} CRDs", crds.len());
    crds
}

/// Calls `visit` with the path of every field and its schema.
fn fields(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        visit(&path, field);
        fields(field, &path, visit);
        fields(&field["items"], &format!("{path}[]"), visit);
    }
}

fn every_field(mut visit: impl FnMut(&str, &Value)) {
    for crd in crds() {
        let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        fields(root, crd["metadata"]["name"].as_str().unwrap(), &mut visit);
    }
}

#[test]
fn every_field_says_in_a_sentence_what_it_is() {
    every_field(|path, field| {
        if [".apiVersion", ".kind", ".metadata"].iter().any(|own| path.ends_with(own)) {
            return;
        }
        let text = field["description"].as_str().unwrap_or_default();
        assert!(text.ends_with('.') && text.len() >= 4, "{path}: {text:?}");
    });
}

#[test]
fn every_list_is_bounded() {
    every_field(|path, field| {
        assert!(field["type"] != "array" || field["maxItems"].is_u64(), "{path} has no maxItems");
    });
}

#[test]
fn every_number_of_32_bits_that_users_write_is_bounded() {
    let mut seen = 0;
    every_field(|path, field| {
        if path.contains(".spec.") && field["format"] == "int32" {
            seen += 1;
            let holds =
                |bound: &str| field[bound].as_i64().is_some_and(|it| i32::try_from(it).is_ok());
            assert!(holds("minimum") && holds("maximum"), "{path} has no minimum or maximum");
        }
    });
    assert!(seen > 15, "{seen} numbers");
}

/// An object inside of an open one would be pruned if it were not open itself.
#[test]
fn open_objects_are_open_all_the_way_down() {
    let mut seen = 0;
    every_field(|path, field| {
        let tke = path.contains("platform.tkestack.io") && !path.ends_with(".metadata");
        for schema in [field, &field["items"]] {
            if tke && schema["properties"].is_object() {
                seen += 1;
                let open = &schema["x-kubernetes-preserve-unknown-fields"];
                assert_eq!(open, &Value::Bool(true), "{path}");
            }
        }
    });
    assert!(seen > 20, "{seen} objects");
}

#[test]
fn every_crd_is_labelled_as_ours() {
    for crd in crds() {
        let label = &crd["metadata"]["labels"]["app.kubernetes.io/managed-by"];
        assert_eq!(label, "infra-controller-manager");
    }
}

/// Objects are not converted between versions: what one schema does not name would be dropped.
#[test]
fn all_versions_of_a_crd_have_one_schema_and_print_alike() {
    let mut several = 0;
    for crd in crds() {
        let [first, others @ ..] = &**crd["spec"]["versions"].as_array().unwrap() else { panic!() };
        for other in others {
            several += 1;
            assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
            for part in ["schema", "additionalPrinterColumns", "subresources"] {
                assert_eq!(other[part], first[part], "{} {part}", crd["metadata"]["name"]);
            }
        }
    }
    assert_eq!(
        several, 10,
        "two of Cluster, Machine, AWSCluster; one of the template and each identity"
    );
}
