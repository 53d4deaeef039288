//! [`Field`]: a field of an object, which may be missing or of any type.

use std::fmt::Write as _;

use serde_json::Value;

const NOTHING: &Value = &Value::Null;
/// How much of a text an error repeats.
const SHOWN_CHARS: usize = 80;

/// A field: its path, as the API server prints it, and what stands there.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    pub(crate) fn root(object: &'a Value) -> Self {
        Self { path: String::new(), value: object }
    }

    /// The field of this name. Where this is no object it is missing.
    pub(crate) fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{name}", self.path),
            value: self.value.get(name).unwrap_or(NOTHING),
        }
    }

    /// The field that this path of names leads to.
    pub(crate) fn at(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |field, name| field.field(name))
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items
            .iter()
            .enumerate()
            .map(move |(index, value)| Self { path: format!("{path}[{index}]"), value })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// `null` says the same as leaving a field out.
    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// A text that says something.
    pub(crate) fn word(&self) -> Option<&'a str> {
        self.text().filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self) -> Option<i64> {
        whole(self.value)
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// The value, for an error: a text in quotes, a number, or the word for its type. A text
    /// that may hold a password before an `@` is not shown (`rule:secrets-are-not-echoed`).
    pub(crate) fn shown(&self) -> String {
        match self.value {
            Value::String(text) if text.contains('@') => "\"(hidden)\"".to_owned(),
            Value::String(text) => quoted(text),
            Value::Null => "\"\"".to_owned(),
            Value::Bool(_) | Value::Number(_) => self.value.to_string(),
            Value::Array(_) | Value::Object(_) => format!("\"{}\"", type_of(self.value)),
        }
    }
}

/// Up to here the API server takes what is written with a fraction or an exponent for a whole number.
const MOST_BY_FRACTION: f64 = 9_007_199_254_740_991.0;

/// A whole number, also one that is written as `22.0`.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    let by_fraction = || {
        let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() <= MOST_BY_FRACTION;
        let number = value.as_f64().filter(is_whole)?;
        format!("{number:.0}").parse().ok()
    };
    value.as_i64().or_else(by_fraction)
}

/// The word for a type of JSON.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if whole(value).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// In quotes and on one line, cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for character in text.chars().take(SHOWN_CHARS) {
        match character {
            '"' | '\\' => {
                shown.push('\\');
                shown.push(character);
            }
            _ if character.is_control() => {
                // Writing to a text does not fail.
                let _written = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown.push('"');
    shown
}
