//! Writes to the rules of security groups, folded.

use crate::observed::Observed;
use crate::rule::{Rule, Source};

pub(super) fn add(seen: &mut Observed, group: &str, rules: &[Rule]) {
    seen.security_groups
        .edit_where(|found| found.id == group, |found| found.rules.extend_from_slice(rules));
}

pub(super) fn describe(seen: &mut Observed, group: &str, rules: &[Rule]) {
    remove(seen, group, rules);
    add(seen, group, rules);
}

pub(super) fn remove(seen: &mut Observed, group: &str, rules: &[Rule]) {
    seen.security_groups.edit_where(
        |found| found.id == group,
        |found| found.rules.retain(|old| rules.iter().all(|rule| rule.key != old.key)),
    );
}

/// AWS deletes a group only when no other names it; its own rules, which may name itself, go with
/// it.
pub(super) fn delete_group(seen: &mut Observed, group: &str) {
    seen.security_groups.remove_where(|found| found.id == group);
    let named = Source::Group(group.to_owned());
    seen.security_groups
        .edit_where(|_| true, |found| found.rules.retain(|rule| rule.key.source != named));
}
