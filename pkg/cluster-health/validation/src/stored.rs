//! Errors that the stored object has too, and that the update does not make worse
//! (`rule:stored-errors-are-not-repeated`).

use serde_json::Value;

use super::findings::FieldError;
use crate::findings::Findings;

/// Takes away what was wrong before in the same way, in a part of the spec that did not change.
pub(crate) fn forget(findings: &mut Findings, before: &Findings, object: &Value, old: &Value) {
    let is_old = |error: &FieldError| {
        before.errors.contains(error) && part(object, &error.field) == part(old, &error.field)
    };
    findings.errors.retain(|error| !is_old(error));
    findings.warnings.retain(|warning| !before.warnings.contains(warning));
}

/// The field of the spec that a path leads into, such as `spec.machines`.
fn part<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split(['.', '[']);
    let first = object.get(names.next()?);
    match names.next() {
        Some(second) => first?.get(second),
        None => first,
    }
}
