//! Objects that are made up from the schemas, judged by the library and by an API server that has the CRDs and
//! no webhook.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use kube::Api;
use kube::api::DynamicObject;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value, json};
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use tests::programs::workspace;
use validation::{Environment, Kind, Operation, validate};

use crate::objects;
use crate::server::{Cause, agree, as_a_schema_says, causes, comparable, dry_run};

/// Environment variable with the number of objects.
const COUNT: &str = "RANDOM_OBJECTS";
const IN_CI: usize = 600;
/// Requests under way.
const AT_ONCE: usize = 24;

/// Longer than any text may be whose length is bounded.
const LONG: usize = 2100;

/// Words that rules know, and words that they refuse.
const WORDS: [&str; 30] = [
    "",
    "a",
    "A",
    "a.b",
    "Imported",
    "Baremetal",
    "Edge",
    "Real",
    "Internal",
    "Public",
    "10.0.0.1",
    "10.0.0.2",
    "10.244.0.1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "10.0.0.01",
    "10.244.0.0/16",
    "10.96.0.0/12",
    "fd00::/108",
    "10.244.0.0/16,fd00::/108",
    "10.0.0.0/33",
    "/path",
    "https://h:6443",
    "http://h",
    "ftp://h",
    "https://u:p@h",
    "*",
    "SubjectName",
    "10s",
    "In",
];
/// None is a small whole number with a fraction, as 22.0: no client of Go writes one, and the CEL rules
/// of a ClusterCIDR end with an error at `spec` instead of an answer.
const NUMBERS: [&str; 23] = [
    "0",
    "-1",
    "1",
    "3",
    "4",
    "8",
    "16",
    "22",
    "32",
    "124",
    "255",
    "256",
    "1000",
    "6443",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9007199254740993.0",
    "9223372036854775807",
    "9223372036854775808",
];

struct Maker {
    random: StdRng,
}

impl Maker {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.random_range(0..from.len())]
    }

    /// A value for a schema, now and then of another type.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.random.random_range(0..25) == 0 {
            // The API server takes any list for a string with a format (kube-openapi).
            let list = if schema["format"].is_string() { json!({}) } else { json!([]) };
            return self
                .pick(&[json!(7), json!("x"), list, json!({}), json!(true), json!(0.5)])
                .clone();
        }
        if let Some(words) =
            schema["enum"].as_array().filter(|_| self.random.random_range(0..3) > 0)
        {
            return self.pick(words).clone();
        }
        match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str()) {
            ("string", Some("byte")) => self.pick(&["c2VjcmV0", "", "no base64"]).to_owned().into(),
            ("string", Some("date-time")) => self
                .pick(&["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00", "today"])
                .to_owned()
                .into(),
            ("string", _) if self.random.random_range(0..40) == 0 => "a".repeat(LONG).into(),
            ("string", _) => (*self.pick(&WORDS)).into(),
            ("integer", _) => {
                let text = self.pick::<&str>(&NUMBERS);
                serde_json::from_str(text).unwrap()
            }
            ("boolean", _) => self.random.random_range(0..2).eq(&0).into(),
            ("array", _) => {
                let count = self.random.random_range(0..3);
                (0..count).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            ("object", _) if schema["additionalProperties"].is_object() => json!({"k": "v"}),
            ("object", _) => self.object(schema, depth).into(),
            _ => json!({}),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut made = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required =
                schema["required"].as_array().is_some_and(|it| it.contains(&json!(name)));
            let odds = if required { 12 } else { 3 + 2 * depth.min(2) };
            let is_in = (self.random.random_range(0..odds) == 0) != required;
            if is_in {
                made.insert(name.clone(), self.value(field, depth + 1));
            }
        }
        made
    }

    /// A valid object with one to three random fields, anywhere in it.
    fn bent(&mut self, mut object: Value, schema: &Value) -> Value {
        for _ in 0..self.random.random_range(1..4) {
            self.bend(&mut object, schema, 0);
        }
        object
    }

    fn bend(&mut self, object: &mut Value, schema: &Value, depth: usize) {
        let Some(fields) = object.as_object_mut() else { return };
        let Some(properties) = schema["properties"].as_object() else { return };
        let known =
            |name: &&String| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str());
        let names: Vec<&String> = properties.keys().filter(known).collect();
        if names.is_empty() {
            return;
        }
        let name = (*self.pick(&names)).clone();
        let field = &properties[&name];
        let deeper = self.random.random_range(0..4) > 0;
        match fields.get_mut(&name) {
            Some(inner) if deeper && inner.is_object() => self.bend(inner, field, depth + 1),
            Some(Value::Array(items)) if deeper && !items.is_empty() => {
                let at = self.random.random_range(0..items.len());
                self.bend(&mut items[at], &field["items"], depth + 1);
            }
            _ if self.random.random_range(0..5) == 0 => drop(fields.remove(&name)),
            _ => drop(fields.insert(name, self.value(field, depth))),
        }
    }
}

/// A kind: a good object, its schema and where it is stored.
struct Sort {
    good: Value,
    schema: Value,
    api: Api<DynamicObject>,
}

async fn sorts(kubectl: &Kubectl) -> Vec<Sort> {
    let client = kubectl.plane.client().await;
    let mut sorts = Vec::new();
    for good in objects::all() {
        let (group, _) = good["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let plural = format!("{}s", good["kind"].as_str().unwrap().to_lowercase());
        let path = workspace().join(format!("config/crd/{group}_{plural}.yaml"));
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let (api, _) = api(&client, &good).await;
        sorts.push(Sort { good, schema, api });
    }
    sorts
}

/// By the object alone, as the API server judges it by the CRD.
fn by_library(object: &Value) -> BTreeSet<Cause> {
    let kind = Kind::of(object).unwrap();
    let findings = validate(kind, object, Operation::Create, &Environment::default());
    let errors = findings.errors.iter();
    errors.map(|error| as_a_schema_says(&error.field, error.error_type.reason())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_random_objects_the_library_and_the_crds_refuse_the_same_fields() {
    let count = std::env::var(COUNT).ok().and_then(|text| text.parse().ok()).unwrap_or(IN_CI);
    let seed = std::env::var("RANDOM_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or(550_791);
    let kubectl = Kubectl::with_crds().await;
    kubectl.run("create namespace fed");
    let sorts = sorts(&kubectl).await;
    let mut maker = Maker { random: StdRng::seed_from_u64(seed) };
    let mut objects = Vec::new();
    for index in 0..count {
        let sort = &sorts[index % sorts.len()];
        let mut object = if index % 4 == 0 {
            let mut made = Value::Object(maker.object(&sort.schema, 0));
            for field in ["apiVersion", "kind", "metadata"] {
                made[field] = sort.good[field].clone();
            }
            made
        } else {
            maker.bent(sort.good.clone(), &sort.schema)
        };
        object.as_object_mut().unwrap().remove("status");
        objects.push((sort.api.clone(), object));
    }
    let answers = stream::iter(objects).map(|(api, object)| async move {
        // What is no object of its kind at all is not sent.
        let sent: Option<DynamicObject> = serde_json::from_value(object.clone()).ok();
        let found = causes(api.create(&dry_run(), &sent?).await);
        Some((object, found))
    });
    let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
    let (mut wrong, mut refused, mut asked) = (Vec::new(), 0, 0);
    for (object, found) in answers.into_iter().flatten() {
        asked += 1;
        let expected = by_library(&object);
        let found = comparable(found, &expected);
        refused += usize::from(!expected.is_empty());
        if !agree(&found, &expected) {
            wrong.push(format!("{object}\n  server {found:?}\n  library {expected:?}"));
        }
    }
    println!("seed {seed}: {asked} objects, {refused} refused, {} differ", wrong.len());
    wrong.truncate(20);
    assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n"));
    assert!(refused * 10 > asked && refused < asked, "{refused} of {asked} are refused");
}
