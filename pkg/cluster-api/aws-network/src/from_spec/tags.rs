//! What AWS and we allow as tags.

use crate::spec::Spec;
use crate::spec_error::SpecError;

/// AWS allows 50 tags on a resource; no resource carries more than ten of ours.
const MOST: usize = 40;

pub(super) fn check(spec: &Spec, errors: &mut Vec<SpecError>) {
    check_all("spec.additionalTags", &spec.additional_tags, errors);
    for (index, subnet) in spec.subnets.iter().enumerate() {
        check_all(&format!("spec.network.subnets[{index}].tags"), &subnet.tags, errors);
    }
}

fn check_all(path: &str, tags: &crate::identity::Tags, errors: &mut Vec<SpecError>) {
    if tags.len() > MOST {
        errors.push(SpecError::new(path, format!("it has {} tags, more than {MOST}", tags.len())));
    }
    for (key, value) in tags {
        if let Some(problem) = problem(key, value) {
            errors.push(SpecError::new(format!("{path}[{key:?}]"), problem));
        }
    }
}

fn problem(key: &str, value: &str) -> Option<&'static str> {
    let allowed = |text: &str| {
        text.chars().all(|letter| letter.is_alphanumeric() || " _.:/=+-@".contains(letter))
    };
    if key.is_empty() || key.chars().count() > 128 {
        Some("a key has 1 to 128 characters")
    } else if value.chars().count() > 256 {
        Some("a value has at most 256 characters")
    } else if !allowed(key) || !allowed(value) {
        Some("only letters, digits, spaces and _.:/=+-@ are allowed")
    } else if key.to_ascii_lowercase().starts_with("aws:") {
        Some("keys that begin with \"aws:\" are reserved by AWS")
    } else {
        None
    }
}
