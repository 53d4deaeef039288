//! Leader election: what would lose or share the lease (`host.md` 3.2, 3.6).

use pflag::{Problem, Values};

use crate::flags::lease::election_config;

const LOCK: &str = "leader-elect-resource-lock";
const NAME: &str = "leader-elect-resource-name";
const NAMESPACE: &str = "leader-elect-resource-namespace";

/// The lease of the program this one runs beside.
const STOCK_LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

pub(super) fn migration(values: &Values, problems: &mut Vec<Problem>) {
    const WHY: &str = "leader migration cannot move controllers to this program; turn node-ipam \
                       off in kube-controller-manager with \
                       --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller, then start this one";
    if values.bool("enable-leader-migration") {
        problems.push(Problem::new("enable-leader-migration", WHY));
    }
    if !values.string("leader-migration-config").is_empty() {
        problems.push(Problem::new("leader-migration-config", WHY));
    }
}

/// Without election none of the lease flags does anything, so none is judged.
pub(super) fn lease(values: &Values, problems: &mut Vec<Problem>) {
    if !values.bool("leader-elect") {
        return;
    }
    let lock = values.string(LOCK);
    if lock != "leases" {
        problems.push(Problem::new(LOCK, format!("{lock:?} is not supported; use leases")));
    }
    names(values, problems);
    // Who the candidate is called breaks no rule.
    let found = election_config(values, String::new()).validate();
    problems.extend(found.into_iter().map(|found| Problem::new(found.flag, found.rule)));
}

/// That they are not empty is the elector's rule.
fn names(values: &Values, problems: &mut Vec<Problem>) {
    let (namespace, name) = (values.string(NAMESPACE), values.string(NAME));
    if !name.is_empty() && !is_dns_name(name, 253, true) {
        problems.push(Problem::new(NAME, format!("{name:?} is not a valid object name")));
    }
    if !namespace.is_empty() && !is_dns_name(namespace, 63, false) {
        problems.push(Problem::new(NAMESPACE, format!("{namespace:?} is not a valid namespace")));
    }
    if (namespace, name) == STOCK_LEASE && !values.bool("allow-stock-lease-name") {
        problems.push(Problem::new(
            NAME,
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
