//! The answers of a real API server about an object.

use std::collections::BTreeSet;

use kube::api::PostParams;
use kube::core::response::StatusCause;

/// Field and kind of an error.
pub(crate) type Cause = (String, String);

pub(crate) fn dry_run() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Fields whose values are listed in a rule in CEL, which has no reason for a value that is not supported.
const SUPPORTED_BY_CEL: [&str; 2] = ["spec.apiEndpoint", "spec.addresses"];

/// What the API server says without a field, in addition to the error of the field: that it left out CEL since the schema had
/// refused already, and that so many bits do not hold a number.
const SAID_BESIDE: [&str; 3] = [
    "rules were not checked",
    "Checked value must be of type integer",
    "must validate all the schemas (allOf)",
];

/// Every cause of a refusal; none when it is taken.
pub(crate) fn causes<T>(answer: kube::Result<T>) -> BTreeSet<Cause> {
    let status = match answer {
        Ok(_) => return BTreeSet::new(),
        Err(kube::Error::Api(status)) => status,
        Err(error) => panic!("no answer: {error}"),
    };
    assert_eq!(status.code, 422, "{status:?}");
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    let is_comparable =
        |cause: &StatusCause| !SAID_BESIDE.iter().any(|it| cause.message.contains(it));
    let fields: BTreeSet<Cause> = causes
        .iter()
        .filter(|cause| is_comparable(cause))
        .map(|cause| as_a_schema_says(&cause.field, &cause.reason))
        .collect();
    // A refusal must name at least one field, or tests cannot compare it.
    assert!(!fields.is_empty(), "no field is named: {causes:?}");
    fields
}

/// The causes that the library reports too: for a field of another type it reports nothing else.
pub(crate) fn comparable(found: BTreeSet<Cause>, expected: &BTreeSet<Cause>) -> BTreeSet<Cause> {
    // A rule about a list fails, too, when a field of an item is of another type.
    let is_of_another_type = |field: &str| {
        let is_in = |at: &str| at == field || at.starts_with(&format!("{field}["));
        expected.iter().any(|(at, reason)| reason == "FieldValueTypeInvalid" && is_in(at))
    };
    let is_comparable =
        |(field, reason): &Cause| reason == "FieldValueTypeInvalid" || !is_of_another_type(field);
    found.into_iter().filter(is_comparable).collect()
}

/// The cause that a schema gives for an error of the library. A rule in CEL names the list of an item.
pub(crate) fn as_a_schema_says(field: &str, reason: &str) -> Cause {
    let list = field.split_once('[').map_or(field, |(list, _)| list);
    match reason {
        "FieldValueDuplicate" => (list.to_owned(), reason.to_owned()),
        "FieldValueNotSupported" if SUPPORTED_BY_CEL.contains(&list) => {
            (list.to_owned(), "FieldValueInvalid".to_owned())
        }
        // A rule in CEL cannot name an item.
        "FieldValueInvalid" if field.ends_with(".values[0]") => {
            (field.trim_end_matches("[0]").to_owned(), reason.to_owned())
        }
        _ => (field.to_owned(), reason.to_owned()),
    }
}

/// Whether the API server refuses by the CRDs what the library refuses, for some of its causes and no others: a schema
/// speaks before CEL does.
pub(crate) fn agree(found: &BTreeSet<Cause>, expected: &BTreeSet<Cause>) -> bool {
    found.is_subset(expected) && found.is_empty() == expected.is_empty()
}
