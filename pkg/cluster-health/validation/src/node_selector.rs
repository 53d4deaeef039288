//! Node selectors, as core/v1 has them.

use crate::findings::Findings;
use crate::place::Place;

const OF_LABELS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const OF_FIELDS: [&str; 2] = ["In", "NotIn"];
/// The only field that a Node can be selected by.
const NAME: &str = "metadata.name";

pub(crate) fn check(selector: &Place<'_>, findings: &mut Findings) {
    if selector.is_absent() {
        return;
    }
    let terms = selector.field("nodeSelectorTerms");
    if terms.items().next().is_none() {
        findings.required(&terms, "must have at least one node selector term");
    }
    for term in terms.items() {
        term.field("matchExpressions").items().for_each(|at| of_label(&at, findings));
        term.field("matchFields").items().for_each(|at| of_field(&at, findings));
    }
}

fn of_label(requirement: &Place<'_>, findings: &mut Findings) {
    let key = requirement.field("key");
    match key.word() {
        None => findings.required(&key, "the key of a label"),
        Some(text) if !is_label_key(text) => findings.invalid(&key, "must be the key of a label"),
        Some(_) => {}
    }
    let values = requirement.field("values");
    let count = values.items().count();
    match operator(requirement, &OF_LABELS, findings) {
        Some("In" | "NotIn") if count == 0 => {
            findings.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        Some("Exists" | "DoesNotExist") if count > 0 => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            findings.forbidden(&values, why);
        }
        Some("Gt" | "Lt") if count != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            findings.required(&values, why);
        }
        Some("Gt" | "Lt") => {
            let is_number =
                |at: &Place<'_>| at.text().is_none_or(|text| text.parse::<i64>().is_ok());
            for value in values.items().filter(|at| !is_number(at)) {
                findings.invalid(&value, "must be an integer when `operator` is 'Lt' or 'Gt'");
            }
        }
        _ => {}
    }
}

fn of_field(requirement: &Place<'_>, findings: &mut Findings) {
    let key = requirement.field("key");
    match key.text() {
        None => findings.required(&key, "the name of a field"),
        Some(NAME) => {}
        Some(_) => findings.not_supported(&key, &key.shown(), [NAME]),
    }
    let values = requirement.field("values");
    let has_operator = operator(requirement, &OF_FIELDS, findings).is_some();
    if has_operator && values.items().count() != 1 {
        findings.required(&values, "must be only one value when `operator` is 'In' or 'NotIn'");
    }
}

/// The operator, if there is such a one.
fn operator<'a>(
    requirement: &Place<'a>,
    known: &[&'static str],
    findings: &mut Findings,
) -> Option<&'a str> {
    let at = requirement.field("operator");
    let Some(text) = at.text() else {
        findings.required(&at, "how values are compared, such as In");
        return None;
    };
    if !known.contains(&text) {
        findings.not_supported(&at, &at.shown(), known.iter().copied());
        return None;
    }
    Some(text)
}

/// `prefix/name`, of which the prefix may be left out.
fn is_label_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let is_end = |character: char| character.is_ascii_alphanumeric();
    let is_inner = |character: char| is_end(character) || matches!(character, '-' | '_' | '.');
    prefix.is_none_or(|prefix| crate::formats::subdomain_problem(prefix).is_none())
        && name.len() <= 63
        && name.chars().all(is_inner)
        && name.starts_with(is_end)
        && name.ends_with(is_end)
}
