//! Leader election: what would lose or share the lease.

use flags::{Problem, Values};

use crate::flags::lease::election_config;
use crate::flags::table::leader::{
    ALLOW_STOCK_LEASE_NAME, ENABLE_LEADER_MIGRATION, LEADER_ELECT, LEADER_ELECT_RESOURCE_LOCK,
    LEADER_ELECT_RESOURCE_NAME, LEADER_ELECT_RESOURCE_NAMESPACE, LEADER_MIGRATION_CONFIG,
};

/// The lease of the program this one runs beside (rule:stock-lease-is-refused).
const STOCK_LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

pub(super) fn migration(values: &Values, problems: &mut Vec<Problem>) {
    const WHY: &str = "leader migration cannot move controllers to this program; turn node-ipam \
                       off in kube-controller-manager with \
                       --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller, then start this one";
    if values.get(&ENABLE_LEADER_MIGRATION) {
        problems.push(ENABLE_LEADER_MIGRATION.problem(WHY));
    }
    if !values.get(&LEADER_MIGRATION_CONFIG).is_empty() {
        problems.push(LEADER_MIGRATION_CONFIG.problem(WHY));
    }
}

/// Without election none of the lease flags does anything, so none is judged.
pub(super) fn lease(values: &Values, problems: &mut Vec<Problem>) {
    if !values.get(&LEADER_ELECT) {
        return;
    }
    let lock = values.get(&LEADER_ELECT_RESOURCE_LOCK);
    if lock != "leases" {
        problems.push(
            LEADER_ELECT_RESOURCE_LOCK.problem(format!("{lock:?} is not supported; use leases")),
        );
    }
    names(values, problems);
    // Who the candidate is called breaks no rule.
    let found = election_config(values, String::new()).validate();
    problems.extend(found.into_iter().map(|found| Problem::new(found.flag, found.rule)));
}

/// That they are not empty is the elector's rule.
fn names(values: &Values, problems: &mut Vec<Problem>) {
    let namespace = values.get(&LEADER_ELECT_RESOURCE_NAMESPACE);
    let name = values.get(&LEADER_ELECT_RESOURCE_NAME);
    if !name.is_empty() && !is_dns_name(&name, 253, true) {
        problems.push(
            LEADER_ELECT_RESOURCE_NAME.problem(format!("{name:?} is not a valid object name")),
        );
    }
    if !namespace.is_empty() && !is_dns_name(&namespace, 63, false) {
        problems.push(
            LEADER_ELECT_RESOURCE_NAMESPACE
                .problem(format!("{namespace:?} is not a valid namespace")),
        );
    }
    if (namespace.as_str(), name.as_str()) == STOCK_LEASE && !values.get(&ALLOW_STOCK_LEASE_NAME) {
        problems.push(LEADER_ELECT_RESOURCE_NAME.problem(
            "kube-system/kube-controller-manager is the lease of kube-controller-manager; sharing \
             it would silently stop the controllers of one of the two programs. Choose another \
             name, or set --allow-stock-lease-name if kube-controller-manager never runs",
        ));
    }
}

/// Lower-case letters, digits and `-`, ends alphanumeric; with `dotted`, several such joined by
/// dots.
fn is_dns_name(text: &str, longest: usize, dotted: bool) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= longest && if dotted { text.split('.').all(label) } else { label(text) }
}
