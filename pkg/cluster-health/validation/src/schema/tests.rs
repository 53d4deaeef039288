use std::collections::BTreeSet;

use super::*;
use crate::Environment;

/// Every field of a kind, with its path.
fn fields(schema: &Schema, path: &str, visit: &mut impl FnMut(&str, &Schema)) {
    visit(path, schema);
    for (name, field) in &schema.properties {
        fields(field, &format!("{path}.{name}"), visit);
    }
    schema.items.iter().for_each(|items| fields(items, &format!("{path}[]"), visit));
}

#[test]
fn the_crd_of_every_kind_is_read_and_says_what_each_required_field_is_for() {
    for kind in Kind::ALL {
        assert!(of(kind).properties.len() > 1, "{kind} has no fields");
        fields(of(kind), "", &mut |path, schema| {
            for name in &schema.required {
                let field = schema.properties.get(name).unwrap();
                let words = field.purpose.is_some() || !field.rules.is_empty();
                assert!(words || schema.required.len() > 1, "{kind}: {path}.{name}");
            }
        });
    }
}

#[test]
fn types_that_an_environment_allows_are_those_of_the_schema() {
    let environment = Environment::default();
    for (kind, types) in
        [(Kind::Cluster, environment.cluster_types), (Kind::Machine, environment.machine_types)]
    {
        assert_eq!(of(kind).at("spec.type").unwrap().words, types, "{kind}");
    }
}

/// A keyword that nothing reads would be a rule of the API server only.
#[test]
fn every_keyword_of_the_crds_is_read_or_needs_no_check() {
    const READ: [&str; 14] = [
        "type",
        "format",
        "enum",
        "allOf",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "maxItems",
        "maxProperties",
        "required",
        "properties",
        "items",
        "additionalProperties",
    ];
    // Rules of the kinds judge the patterns, and what the rules in CEL do.
    const UNREAD: [&str; 5] = ["description", "default", "nullable", "pattern", "x-kubernetes-"];
    fn keywords(schema: &Value, found: &mut BTreeSet<String>) {
        let fields = schema.as_object().unwrap();
        found.extend(fields.keys().cloned());
        let inner = schema["properties"].as_object().into_iter().flat_map(Map::values);
        let all_of = schema["allOf"].as_array().into_iter().flatten();
        let nested = ["items", "additionalProperties"].into_iter().filter_map(|it| fields.get(it));
        inner.chain(all_of).chain(nested).for_each(|schema| keywords(schema, found));
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../config/crd");
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let mut crd: Value = serde_saphyr::from_str(&text).unwrap();
        let root = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        root["properties"].as_object_mut().unwrap().remove("status");
        keywords(root, &mut found);
    }
    let is_known = |keyword: &&String| {
        READ.contains(&&***keyword) || UNREAD.iter().any(|it| keyword.starts_with(it))
    };
    let unknown: Vec<_> = found.iter().filter(|keyword| !is_known(keyword)).collect();
    assert!(unknown.is_empty() && found.len() > READ.len(), "{unknown:?}");
}
