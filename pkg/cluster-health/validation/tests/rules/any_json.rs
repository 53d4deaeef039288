//! rule:any-json-is-survived

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use validation::{Environment, Findings, Kind, Operation, validate};

use crate::objects::all;
use crate::row::lines;

/// Words that mean something somewhere, and some that are nearly so.
const WORDS: [&str; 40] = [
    "",
    "Imported",
    "Baremetal",
    "10.0.0.1",
    "10.0.0.0/16",
    "10.0.0.0/16,fd00::/48",
    "fd00::/120",
    "::ffff:1.2.3.4/96",
    "10.0.0.0/33",
    ",",
    "cls-1",
    "cc-1",
    "one",
    "https://a:1/b",
    "http://[::1]:x",
    "a@b",
    "://",
    "https://",
    "[",
    "]:",
    "é/日本",
    "*",
    "SubjectName",
    "In",
    "Gt",
    "metadata.name",
    "10s",
    "-9223372036854775808ns",
    "Internal",
    "Real",
    "/p",
    "Physical",
    "c2VjcmV0",
    "LS0tLS1CRUdJTg==",
    "1e999999",
    "9999999999999999999999",
    "-1m",
    "global",
    "a\nb",
    "True",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        (-2_i64..300).prop_map(|number| json!(number)),
        prop::sample::select(&WORDS[..]).prop_map(|word| json!(word)),
        any::<String>().prop_map(Value::String),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![prop::sample::select(keys()), any::<String>()];
    leaf().prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every key of the objects that nothing is wrong with.
fn keys() -> Vec<String> {
    fn collect(value: &Value, keys: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, field)| {
                keys.push(key.clone());
                collect(field, keys);
            }),
            Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
            _ => {}
        }
    }
    let mut keys: Vec<String> =
        ["status", "features", "ha", "tke", "thirdParty", "vip", "properties"]
            .map(str::to_owned)
            .to_vec();
    for object in all() {
        collect(&object, &mut keys);
    }
    keys
}

/// An object that nothing is wrong with, with a few places of it overwritten.
fn broken() -> impl Strategy<Value = Value> {
    let places = vec((any::<prop::sample::Index>(), json_value()), 0..4);
    (prop::sample::select(all().to_vec()), places).prop_map(|(mut object, places)| {
        for (at, value) in places {
            let mut paths = Vec::new();
            pointers(&object, "", &mut paths);
            let path = at.get(&paths).clone();
            *object.pointer_mut(&path).unwrap() = value;
        }
        object
    })
}

fn pointers(value: &Value, at: &str, paths: &mut Vec<String>) {
    paths.push(at.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(key, field)| pointers(field, &format!("{at}/{}", escaped(key)), paths));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), paths));
        }
        _ => {}
    }
}

fn any_object() -> impl Strategy<Value = Value> {
    prop_oneof![3 => broken(), 1 => json_value()]
}

fn judged(kind: Kind, object: &Value, old: &Value, environment: &Environment) -> Vec<Findings> {
    let operations = [Operation::Create, Operation::Update { old }];
    operations.map(|operation| validate(kind, object, operation, environment)).to_vec()
}

proptest! {
    #[test]
    fn any_json_is_judged_and_twice_alike(
        object in any_object(), old in any_object(), known in vec(any_object(), 0..4),
        limits in (0_u64..4, any::<u64>(), 0_u64..4),
    ) {
        let shared = || Some(known.iter().cloned().map(Arc::new).collect());
        let environment = Environment {
            clusters: shared(),
            machines: shared(),
            cluster_credentials: shared(),
            kube_fed_clusters: shared(),
            licence: validation::Licence { max_clusters: limits.0, max_nodes: limits.1, max_cpus: limits.2 },
            ..Environment::default()
        };
        for kind in Kind::ALL {
            let first = judged(kind, &object, &old, &environment);
            prop_assert_eq!(&judged(kind, &object, &old, &environment), &first);
            for error in first.iter().flat_map(|findings| &findings.errors) {
                prop_assert!(!error.field.is_empty() || !object.is_object(), "{:?}", error);
            }
            for findings in &first {
                let unchecked = findings.unchecked.iter().map(ToString::to_string);
                for line in lines(findings).into_iter().chain(unchecked) {
                    prop_assert!(!line.contains('\n'), "{:?}", line);
                }
            }
        }
    }

    #[test]
    fn an_object_that_stays_as_it_is_stored_is_never_refused(object in any_object()) {
        for kind in Kind::ALL {
            let operation = Operation::Update { old: &object };
            let findings = validate(kind, &object, operation, &Environment::default());
            prop_assert_eq!(findings, Findings::default());
        }
    }
}
