//! Node selectors, as core/v1 has them: what the schema of the CRD does not say.

use ipnet::IpNet;
use kube_api::is_label_key;

use super::field::Field;
use super::findings::Findings;
use super::formats;
use super::formats::IMMUTABLE;
use super::subject::Subject;

pub(crate) fn check(selector: &Field<'_>, findings: &mut Findings) {
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

fn of_label(requirement: &Field<'_>, findings: &mut Findings) {
    let key = requirement.field("key");
    if key.word().is_some_and(|text| !is_label_key(text)) {
        findings.invalid(&key, "must be the key of a label");
    }
    let values = requirement.field("values");
    let count = values.items().count();
    match requirement.field("operator").text() {
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
                |at: &Field<'_>| at.text().is_none_or(|text| text.parse::<i64>().is_ok());
            for value in values.items().filter(|at| !is_number(at)) {
                findings.invalid(&value, "must be an integer when `operator` is 'Lt' or 'Gt'");
            }
        }
        _ => {}
    }
}

fn of_field(requirement: &Field<'_>, findings: &mut Findings) {
    let values = requirement.field("values");
    let has_operator = matches!(requirement.field("operator").text(), Some("In" | "NotIn"));
    if has_operator && values.items().count() != 1 {
        findings.required(&values, "must be only one value when `operator` is 'In' or 'NotIn'");
    }
}

const HOST_BITS_IPV4: &str = "perNodeHostBitsIPv4";
const HOST_BITS_IPV6: &str = "perNodeHostBitsIPv6";

pub(crate) fn check_cluster_cidr(subject: &Subject<'_>, findings: &mut Findings) {
    let spec = subject.spec();
    let ranges = ranges(&spec, findings);
    host_bits(&spec, &ranges, findings);
    check(&spec.field("nodeSelector"), findings);
    // The last: of a spec that is said to be missing nothing more is said.
    if ["ipv4", "ipv6"].iter().all(|name| spec.field(name).is_absent()) {
        findings.required(&spec, "at least one of ipv4 and ipv6");
    }
    let Some(old) = subject.old_spec() else { return };
    for name in ["perNodeHostBits", HOST_BITS_IPV4, HOST_BITS_IPV6, "ipv4", "ipv6", "nodeSelector"]
    {
        let (now, before) = (spec.field(name), old.field(name));
        if now.value() != before.value() {
            findings.invalid(&now, IMMUTABLE);
        }
    }
}

fn ranges(spec: &Field<'_>, findings: &mut Findings) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    let (ipv4, ipv6) = (spec.field("ipv4"), spec.field("ipv6"));
    for (at, family, is_v4) in
        [(&ipv4, "must be an IPv4 CIDR", true), (&ipv6, "must be an IPv6 CIDR", false)]
    {
        match at.text().map(formats::cidr) {
            None => {}
            Some(Some(range)) if matches!(range, IpNet::V4(_)) == is_v4 => ranges.push(range),
            Some(Some(_)) => findings.invalid(at, family),
            Some(None) => findings.invalid(at, formats::CIDR),
        }
    }
    ranges
}

/// The bits of a family win over those of both. No range has blocks of bits that the schema refuses.
fn host_bits(spec: &Field<'_>, ranges: &[IpNet], findings: &mut Findings) {
    let of = |range: &IpNet| {
        let is_v4 = matches!(range, IpNet::V4(_));
        let own = spec.field(if is_v4 { HOST_BITS_IPV4 } else { HOST_BITS_IPV6 });
        if own.is_absent() { spec.field("perNodeHostBits") } else { own }
    };
    let known = ranges.iter().map(|range| (range, of(range)));
    let known: Vec<_> = known.filter(|(_, at)| !findings.has(at)).collect();
    for (range, at) in known {
        let room = i64::from(range.max_prefix_len().saturating_sub(range.prefix_len()));
        if at.number().is_some_and(|bits| bits > room) {
            findings.invalid(&at, &format!("must be less than or equal to {room} for {range}"));
        }
    }
}
