//! Output of the judgements: lines for people, JSON for programs.

use serde_json::{Value, json};

use super::judged::Judged;

/// A line for each error: `field: Type: detail`, after the object's name where there are several.
pub(super) fn errors(judged: &[Judged]) -> String {
    let lines = judged.iter().flat_map(|one| {
        one.findings.errors.iter().map(move |error| format!("{}{error}\n", before(one, judged)))
    });
    lines.collect()
}

/// Warnings, what was not checked, and the sum of it.
pub(super) fn remarks(judged: &[Judged]) -> String {
    let mut lines = Vec::new();
    for one in judged {
        let (findings, before) = (&one.findings, before(one, judged));
        lines.extend(findings.warnings.iter().map(|text| format!("warning: {before}{text}\n")));
        lines.extend(findings.unchecked.iter().map(|unchecked| format!("{before}{unchecked}\n")));
    }
    let wrong = judged.iter().filter(|one| !one.is_valid()).count();
    let sum = match (judged.len(), wrong) {
        (1, 0) => "valid".to_owned(),
        (1, _) => "not valid".to_owned(),
        (all, 0) => format!("all {all} objects are valid"),
        (all, 1) => format!("1 of {all} objects is not valid"),
        (all, wrong) => format!("{wrong} of {all} objects are not valid"),
    };
    lines.concat() + &sum + "\n"
}

fn before(one: &Judged, all: &[Judged]) -> String {
    if all.len() > 1 { format!("{}: ", one.identity) } else { String::new() }
}

/// All of it.
pub(super) fn json(judged: &[Judged]) -> String {
    let objects: Vec<Value> = judged.iter().map(object).collect();
    let all = json!({ "valid": judged.iter().all(Judged::is_valid), "objects": objects });
    format!("{all:#}\n")
}

fn object(judged: &Judged) -> Value {
    let findings = &judged.findings;
    let errors = findings.errors.iter().map(|error| {
        json!({
            "field": error.field,
            "type": error.error_type.to_string(),
            "reason": error.error_type.reason(),
            "detail": error.detail,
        })
    });
    let unchecked = findings.unchecked.iter().map(|unchecked| {
        json!({
            "field": unchecked.field, "question": unchecked.question, "toldBy": unchecked.told_by,
        })
    });
    json!({
        "apiVersion": judged.identity.api_version,
        "kind": judged.identity.kind,
        "namespace": judged.identity.namespace,
        "name": judged.identity.name,
        "errors": errors.collect::<Vec<_>>(),
        "warnings": findings.warnings,
        "notChecked": unchecked.collect::<Vec<_>>(),
    })
}
