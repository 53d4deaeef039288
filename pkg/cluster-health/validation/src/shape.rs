//! The types that fields have.

use serde_json::Value;

use super::findings::Findings;
use super::formats::{cidr, decoded, is_date_time};
use super::place::{Place, type_of};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    /// A whole number from the one to the other.
    Integer(i64, i64),
    Boolean,
    /// A text that holds bytes in base64, secret ones as a rule.
    Bytes,
    Object,
    /// An object of texts.
    Texts,
    /// A list of so many items at most.
    List(usize),
}

/// The range of 32 bits. The API server refuses other numbers without naming the field, so the schemas have these bounds
/// too.
pub(crate) const INT32: Shape = Shape::Integer(i32::MIN as i64, i32::MAX as i64);
/// The range of 64 bits, the only whole numbers that the API server reads.
pub(crate) const INT64: Shape = Shape::Integer(i64::MIN, i64::MAX);
/// A TCP port.
pub(crate) const PORT: Shape = Shape::Integer(1, 65_535);
/// A TCP port, or 0 of one that is left to others.
pub(crate) const PORT_OR_NONE: Shape = Shape::Integer(0, 65_535);

/// A field by its path, in which `[]` stands for every item, and its type.
pub(crate) type Field = (&'static str, Shape);

/// Names every field of another type, those around it first.
pub(crate) fn check(object: &Place<'_>, fields: &[Field], findings: &mut Findings) {
    for (path, shape) in fields {
        each(object.clone(), path.split('.'), &mut |place| one(place, *shape, findings));
    }
}

/// The API server takes no empty one.
fn is_base64(text: &str) -> bool {
    !text.is_empty() && decoded(text).is_some()
}

/// Calls `visit` with each place that a path of names leads to.
pub(crate) fn each<'a>(
    place: Place<'a>,
    mut names: std::str::Split<'_, char>,
    visit: &mut impl FnMut(&Place<'a>),
) {
    let Some(name) = names.next() else { return visit(&place) };
    match name.strip_suffix("[]") {
        Some(list) => place.field(list).items().for_each(|item| each(item, names.clone(), visit)),
        None => each(place.field(name), names, visit),
    }
}

fn in_range(place: &Place<'_>, least: i64, most: i64, findings: &mut Findings) {
    if place.number().is_some_and(|number| !(least..=most).contains(&number)) {
        findings.invalid(place, &format!("must be between {least} and {most}, inclusive"));
    }
}

fn one(place: &Place<'_>, shape: Shape, findings: &mut Findings) {
    let found = place.value();
    let wanted = match (shape, found) {
        (_, Value::Null)
        | (Shape::Text, Value::String(_))
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Object, Value::Object(_)) => return,
        (Shape::Integer(least, most), Value::Number(_)) if place.number().is_some() => {
            return in_range(place, least, most, findings);
        }
        (Shape::Bytes, Value::String(text)) if is_base64(text) => return,
        (Shape::List(most), Value::Array(items)) => {
            if items.len() > most {
                findings.too_many(place, items.len(), most);
            }
            return;
        }
        (Shape::Texts, Value::Object(texts)) => {
            let others = texts.keys().map(|key| place.field(key));
            let others = others.filter(|place| !matches!(place.value(), Value::String(_)));
            return others.for_each(|at| findings.type_invalid(&at, type_of(at.value()), "string"));
        }
        // What is in it may be secret.
        (Shape::Bytes, Value::String(_)) => {
            return findings.type_invalid(place, "string", "byte (base64)");
        }
        (Shape::Text | Shape::Bytes, _) => "string",
        (Shape::Integer(..), _) => "integer",
        (Shape::Boolean, _) => "boolean",
        (Shape::Object | Shape::Texts, _) => "object",
        (Shape::List(_), _) => "array",
    };
    findings.type_invalid(place, type_of(found), wanted);
}

/// Limits of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A list of supported values.
    Words(&'static [&'static str]),
    /// At most so many characters.
    Longest(usize),
    /// At least so many.
    Shortest(usize),
    /// A CIDR.
    Cidr,
    /// A time with its date.
    DateTime,
    /// An object of so many keys at most.
    Keys(usize),
    /// An object whose texts have so many characters at most.
    Values(usize),
}

/// Judges every field of a table, by its path from `at`.
pub(crate) fn check_limit(
    at: &Place<'_>,
    limits: &[(&'static str, Limit)],
    findings: &mut Findings,
) {
    for (path, limit) in limits {
        each(at.clone(), path.split('.'), &mut |place| limit_of(place, *limit, findings));
    }
}

fn limit_of(at: &Place<'_>, limit: Limit, findings: &mut Findings) {
    let length = |text: &str| text.chars().count();
    let keys = at.value().as_object();
    match limit {
        Limit::Words(words) => {
            if at.text().is_some_and(|text| !words.contains(&text)) {
                findings.not_supported(at, &at.shown(), words.iter().copied());
            }
        }
        Limit::Longest(most) => {
            if at.text().is_some_and(|text| length(text) > most) {
                findings.too_long(at, most);
            }
        }
        Limit::Shortest(least) => {
            if at.text().is_some_and(|text| length(text) < least) {
                findings.invalid(at, &format!("should be at least {least} chars long"));
            }
        }
        Limit::Cidr => {
            if at.text().is_some_and(|text| cidr(text).is_none()) {
                findings.type_invalid(at, "string", "cidr (such as 10.0.0.0/16)");
            }
        }
        Limit::DateTime => {
            if at.text().is_some_and(|text| !is_date_time(text)) {
                findings.type_invalid(at, "string", "date-time (such as 2026-01-02T03:04:05Z)");
            }
        }
        Limit::Keys(most) => {
            if let Some(keys) = keys.filter(|keys| keys.len() > most) {
                findings.too_many(at, keys.len(), most);
            }
        }
        Limit::Values(most) => {
            for key in keys.into_iter().flat_map(|keys| keys.keys()) {
                limit_of(&at.field(key), Limit::Longest(most), findings);
            }
        }
    }
}
