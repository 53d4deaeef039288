//! The fields of the CRDs of `config/crd`, for tests that set, change, revert and refuse each of them: [`Crd`] lists
//! them, [`Field`] has the values of one, [`play`] carries out its steps in a [`World`].

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The schema of a CRD, in the version that is stored.
pub struct Crd(Value);

/// A field that decides what a controller does.
#[derive(Clone, Debug)]
pub struct Field {
    /// Names, separated by dots; `[]` after that of a list stands for its first item.
    pub path: &'static str,
    /// Two valid values; `null` for none.
    pub valid: [Value; 2],
    /// A value that the controller refuses; `null` where it refuses none.
    pub refused: Value,
    /// Values of other fields, by path, without which it decides nothing.
    pub given: Vec<(&'static str, Value)>,
    /// The API server lets no update change it: the object is deleted and created with the other value.
    pub is_replaced: bool,
}

/// The place of a controller in which nothing is left to do.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// What the controller does because of its objects.
    pub effects: Vec<String>,
    /// What it tells its users.
    pub reports: Vec<String>,
}

/// A controller with its objects.
pub trait World {
    /// Has these objects from now on, waits until nothing is left to do, and asserts that the controller changed no
    /// field that is not its own. `is_replaced`: the objects are deleted before.
    fn settle(&mut self, objects: &Value, is_replaced: bool) -> impl Future<Output = End>;
}

impl End {
    fn differences(&self, wanted: &Self) -> Vec<String> {
        let lines = |end: &Self| [&end.effects[..], &end.reports].concat();
        let (found, wanted) = (lines(self), lines(wanted));
        let surplus =
            found.iter().filter(|line| !wanted.contains(line)).map(|it| format!("+ {it}"));
        let missing =
            wanted.iter().filter(|line| !found.contains(line)).map(|it| format!("- {it}"));
        surplus.chain(missing).collect()
    }
}

impl Field {
    /// A field with two values and one that is refused.
    pub fn new(path: &'static str, one: impl Into<Value>, other: impl Into<Value>) -> Self {
        let valid = [one.into(), other.into()];
        Self { path, valid, refused: Value::Null, given: Vec::new(), is_replaced: false }
    }

    /// With a value that is refused.
    #[must_use]
    pub fn refuses(self, value: impl Into<Value>) -> Self {
        Self { refused: value.into(), ..self }
    }

    /// While another field has this value.
    #[must_use]
    pub fn given(mut self, path: &'static str, value: impl Into<Value>) -> Self {
        self.given.push((path, value.into()));
        self
    }

    /// No update changes it.
    #[must_use]
    pub fn replaced(self) -> Self {
        Self { is_replaced: true, ..self }
    }
}

/// The steps of a field after which the end is wrong, with the lines that are too many and those that are missing.
///
/// The end after each valid value is that of a new world whose objects always had it, and unlike the one before; the
/// end after the value is taken back is that of the beginning. A value that is refused is reported, and the controller
/// does what it did at the beginning or nothing.
///
/// # Panics
/// A value does not change the end, or a wrong one is not reported.
pub async fn play<W: World>(
    new: impl AsyncFn() -> W,
    objects: &Value,
    field: &Field,
) -> Vec<(String, Vec<String>)> {
    let mut objects = objects.clone();
    for (path, value) in &field.given {
        set(&mut objects, path, value);
    }
    let with = |value: &Value| {
        let mut changed = objects.clone();
        set(&mut changed, field.path, value);
        changed
    };
    let path = field.path;
    let mut deviations = Vec::new();
    let mut differs = |step: &str, found: End, wanted: End| {
        if found != wanted {
            deviations.push((format!("{path}: {step}"), found.differences(&wanted)));
        }
    };
    let mut world = new().await;
    let start = world.settle(&objects, false).await;
    let mut before = start.clone();
    for value in field.valid.iter().filter(|value| !value.is_null()) {
        let wanted = new().await.settle(&with(value), false).await;
        assert_ne!(wanted, before, "{path}: {value} changes nothing");
        let found = world.settle(&with(value), field.is_replaced).await;
        differs(&format!("set {value}"), found, wanted.clone());
        before = wanted;
    }
    differs("revert", world.settle(&objects, field.is_replaced).await, start.clone());
    if !field.refused.is_null() {
        let value = &field.refused;
        let found = world.settle(&with(value), field.is_replaced).await;
        assert_ne!(found.reports, start.reports, "{path}: {value} is not refused");
        if !found.effects.is_empty() {
            let wanted = End { effects: start.effects.clone(), ..found.clone() };
            differs(&format!("refuse {value}"), found, wanted);
        }
        differs("revert after refusal", world.settle(&objects, field.is_replaced).await, start);
    }
    deviations
}

impl Crd {
    /// The CRD in this file, below the directory of the repository.
    pub fn read(file: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    fn parse(text: &str) -> Self {
        // Comments may stand in a document of their own.
        let mut all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        all.retain(|it| !it.is_null());
        let mut versions = all[0]["spec"]["versions"].as_array_mut().unwrap().iter_mut();
        let stored = versions.find(|version| version["storage"] == true).unwrap();
        Self(stored["schema"]["openAPIV3Schema"].take())
    }

    /// The paths of all fields below the field `root` that have a value of their own. `*` stands for the fields that an
    /// object may have besides those of its schema.
    pub fn leaves(&self, root: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        leaves(self.schema(root), root, &mut found);
        found
    }

    /// Asserts that each field below one of `roots` is in one place of two: among the fields of a table, whose paths begin
    /// with `object`, or below an exception. The fields below exceptions, with a value of each.
    ///
    /// # Panics
    /// A field is in neither or in both places, or an exception or a field of the table is not in the CRD.
    pub fn is_complete(
        &self,
        roots: &[&str],
        object: &str,
        table: &[Field],
        exceptions: &[(&str, &str)],
    ) -> Vec<(String, Value)> {
        let path =
            |field: &Field| field.path.strip_prefix(object)?.strip_prefix('.').map(str::to_owned);
        let is_of_roots = |path: &String| {
            roots.iter().any(|root| root.is_empty() || path.starts_with(&format!("{root}.")))
        };
        let known: BTreeSet<_> = table.iter().filter_map(path).filter(is_of_roots).collect();
        let all: BTreeSet<_> = roots.iter().flat_map(|root| self.leaves(root)).collect();
        let is_below = |leaf: &str, place: &str| {
            let rest = leaf.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
        };
        let is_excepted = |leaf: &&String| exceptions.iter().any(|(it, _)| is_below(leaf, it));
        let excepted: BTreeSet<_> = all.iter().filter(is_excepted).cloned().collect();
        let missing: Vec<_> =
            all.iter().filter(|it| !known.contains(*it) && !excepted.contains(*it)).collect();
        assert!(missing.is_empty(), "fields without a row or an exception: {missing:#?}");
        let surplus: Vec<_> = known.difference(&all).chain(known.intersection(&excepted)).collect();
        assert!(surplus.is_empty(), "rows of no field, or of one with an exception: {surplus:#?}");
        for (place, reason) in exceptions {
            assert!(all.iter().any(|leaf| is_below(leaf, place)), "unused exception {place}");
            assert!(reason.len() > 10, "exception {place} has no reason");
        }
        excepted.into_iter().map(|leaf| (format!("{object}.{leaf}"), self.sample(&leaf))).collect()
    }

    fn schema(&self, path: &str) -> &Value {
        let names = path.split('.').filter(|name| !name.is_empty());
        names.fold(&self.0, |schema, name| match name.strip_suffix("[]") {
            Some(list) => &schema["properties"][list]["items"],
            None => &schema["properties"][name],
        })
    }

    fn sample(&self, leaf: &str) -> Value {
        if leaf.ends_with('*') { "kept".into() } else { sample(self.schema(leaf)) }
    }
}

fn leaves(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    if is_open && !schema["properties"].is_null() {
        found.insert(below("*"));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if field["properties"].is_null() {
            found.insert(below(name));
        }
        leaves(field, &below(name), found);
        leaves(&field["items"], &format!("{}[]", below(name)), found);
    }
}

/// A value that the schema allows.
fn sample(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("byte")) => "a2VwdA==".into(),
        (Some("string"), Some("date-time")) => "2026-01-01T00:00:00Z".into(),
        (Some("string"), _) => "kept".into(),
        (Some("integer"), _) => schema["minimum"].as_i64().unwrap_or(1).max(1).into(),
        (Some("boolean"), _) => true.into(),
        (Some("array"), _) => json!([sample(&schema["items"])]),
        _ => match &schema["additionalProperties"] {
            Value::Object(of) => json!({"kept": sample(&Value::Object(of.clone()))}),
            _ => json!({}),
        },
    }
}

/// Sets the field at a path, in the first item of each list on the way; `null` takes it away.
pub fn set(object: &mut Value, path: &str, value: &Value) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    if rest.is_empty() {
        let fields = object.as_object_mut().unwrap();
        if value.is_null() {
            fields.remove(first);
        } else {
            let name = if first == "*" { "fieldOfOthers" } else { first };
            fields.insert(name.to_owned(), value.clone());
        }
        return;
    }
    let next = match first.strip_suffix("[]") {
        Some(list) => {
            if object[list].is_null() {
                object[list] = json!([{}]);
            }
            &mut object[list][0]
        }
        None => &mut object[first],
    };
    set(next, rest, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_crd_are_those_of_the_version_that_is_stored() {
        let version = |field: &str, stored: bool| {
            let spec = json!({"properties": {field: {"type": "string"}}});
            let schema = json!({"openAPIV3Schema": {"properties": {"spec": spec}}});
            json!({"storage": stored, "schema": schema})
        };
        let crd = json!({"spec": {"versions": [version("older", false), version("newer", true)]}});
        assert_eq!(Crd::parse(&crd.to_string()).leaves("spec"), ["spec.newer".to_owned()].into());
    }
}
