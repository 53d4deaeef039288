//! The CRDs of our kinds of infrastructure, as Cluster API's core looks for them.

use std::fs;

use serde_json::Value;
use tests::programs::workspace;

use crate::scene::OUR_KINDS;

const LABELS: [&str; 2] = ["cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"];

fn crds() -> Vec<Value> {
    let read = |kind: &str| {
        let file = format!("config/crd/infrastructure.cluster.x-k8s.io_{kind}.yaml");
        let text = fs::read_to_string(workspace().join(file)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    OUR_KINDS.into_iter().map(read).collect()
}

fn names(crd: &Value) -> [&str; 3] {
    ["kind", "plural", "listKind"].map(|name| crd["spec"]["names"][name].as_str().unwrap())
}

fn versions(crd: &Value) -> &[Value] {
    crd["spec"]["versions"].as_array().unwrap()
}

#[test]
fn scope_is_namespaced() {
    assert_eq!(crds()[0]["spec"]["scope"], "Namespaced");
}

#[test]
fn type_and_object_meta() {
    for crd in crds() {
        for version in versions(&crd) {
            let properties = &version["schema"]["openAPIV3Schema"]["properties"];
            let types = ["apiVersion", "kind", "metadata"].map(|name| &properties[name]["type"]);
            assert_eq!(types, ["string", "string", "object"], "{:?}", names(&crd));
        }
    }
}

#[test]
fn contract_label_names_a_served_version() {
    let crd = crds().remove(0); // identities are of no contract
    let labels = LABELS.iter().filter_map(|label| crd["metadata"]["labels"][label].as_str());
    let labels: Vec<_> = labels.collect();
    // The core takes the newest contract that it knows.
    assert_eq!(labels.len(), 1, "{:?}", names(&crd));
    for named in labels[0].split('_') {
        let found = versions(&crd).iter().find(|version| version["name"] == named);
        assert_eq!(found.map(|it| &it["served"]), Some(&true.into()), "{:?}", names(&crd));
    }
}

#[test]
fn crd_has_the_calculated_name() {
    for crd in crds() {
        let [kind, plural, _] = names(&crd);
        let word = kind.to_lowercase();
        let calculated = match word.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{word}s"),
        };
        assert_eq!(plural, calculated);
        let name = format!("{calculated}.infrastructure.cluster.x-k8s.io");
        assert_eq!(crd["metadata"]["name"], name);
    }
}

#[test]
fn list_kind() {
    for crd in crds() {
        let [kind, _, list] = names(&crd);
        assert_eq!(list, format!("{kind}List"));
    }
}
