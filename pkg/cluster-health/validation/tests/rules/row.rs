//! [`Row`]: an object with some of its fields changed, and what is said of it.

use serde_json::{Value, json};
use validation::{Environment, Findings, Kind, Operation, validate};

/// An object that a rule accepts or refuses.
pub(crate) struct Row {
    pub(crate) rule: &'static str,
    base: fn() -> Value,
    edits: Value,
    old: Option<Value>,
    environment: Value,
    expected: Vec<String>,
}

/// `edits` has a value for each path, such as `spec.machines.0.ip`; null takes the field away.
pub(crate) fn row(rule: &'static str, base: fn() -> Value, edits: Value) -> Row {
    Row { rule, base, edits, old: None, environment: json!({}), expected: Vec::new() }
}

impl Row {
    /// The stored object, by its edits of the same base: this is an update.
    pub(crate) fn was(self, edits: Value) -> Self {
        Self { old: Some(edits), ..self }
    }

    /// Changes of the environment in which there is nothing and every check passes.
    pub(crate) fn given(self, environment: Value) -> Self {
        Self { environment, ..self }
    }

    /// Everything that is said, in order: errors, then warnings.
    pub(crate) fn says(self, expected: &[&str]) -> Self {
        Self { expected: expected.iter().map(ToString::to_string).collect(), ..self }
    }

    pub(crate) fn is_refusal(&self) -> bool {
        !self.expected.is_empty()
    }

    pub(crate) fn holds(&self) {
        let Self { rule, edits, old, environment, expected, .. } = self;
        let said = self.judge();
        let said: Vec<String> = lines(&said);
        assert_eq!(&said, expected, "{rule} of {edits}, was {old:?}, given {environment}");
    }

    pub(crate) fn judge(&self) -> Findings {
        let (object, old) = (self.object(), self.stored());
        let operation = match &old {
            Some(old) => Operation::Update { old },
            None => Operation::Create,
        };
        let environment = environment_of(self.known());
        validate(Kind::of(&object).unwrap(), &object, operation, &environment)
    }

    /// The object under judgement.
    pub(crate) fn object(&self) -> Value {
        edited((self.base)(), &self.edits)
    }

    /// The object that it replaces.
    pub(crate) fn stored(&self) -> Option<Value> {
        self.old.as_ref().map(|edits| edited((self.base)(), edits))
    }

    /// The environment, in the file format of the command `validate`.
    pub(crate) fn known(&self) -> Value {
        let nothing = json!({
            "clusters": [], "machines": [], "clusterCredentials": [], "kubeFedClusters": [],
        });
        edited(nothing, &self.environment)
    }
}

pub(crate) fn environment_of(json: Value) -> Environment {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn lines(findings: &Findings) -> Vec<String> {
    let errors = findings.errors.iter().map(ToString::to_string);
    let warnings = findings.warnings.iter().map(|warning| format!("warning: {warning}"));
    errors.chain(warnings).collect()
}

/// All rows hold, and are handed on.
pub(crate) fn all_hold(rows: Vec<Row>) {
    rows.iter().for_each(Row::holds);
}

pub(crate) fn edited(mut object: Value, edits: &Value) -> Value {
    for (path, value) in edits.as_object().unwrap() {
        set(&mut object, path, value.clone());
    }
    object
}

fn set(object: &mut Value, path: &str, value: Value) {
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = object;
    for name in parents.split('.').filter(|name| !name.is_empty()) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
    }
    match (name.parse::<usize>(), value) {
        (Ok(index), Value::Null) => drop(place.as_array_mut().unwrap().remove(index)),
        (Ok(index), value) if place.as_array().unwrap().len() == index => {
            place.as_array_mut().unwrap().push(value);
        }
        (Ok(index), value) => place[index] = value,
        (Err(_), Value::Null) => drop(place.as_object_mut().unwrap().remove(name)),
        (Err(_), value) => place[name] = value,
    }
}
