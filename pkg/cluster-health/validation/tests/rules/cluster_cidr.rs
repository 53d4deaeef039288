//! ClusterCIDRs.

use serde_json::{Value, json};

use crate::objects::range;
use crate::row::{Row, all_hold, row};

const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub(crate) fn rows() -> Vec<Row> {
    [ranges(), blocks(), selectors(), updates()].into_iter().flatten().collect()
}

#[test]
fn a_range_is_judged_field_by_field() {
    all_hold(rows());
}

fn ranges() -> Vec<Row> {
    let at = |edits: Value| row("ranges-are-of-their-family", range, edits);
    let says = |name: &str, shown: &str, why: &str| {
        format!("spec.{name}: Invalid: Invalid value: \"{shown}\": {why}")
    };
    vec![
        at(json!({"spec.ipv4": null})),
        at(json!({"spec.ipv6": null})),
        at(json!({"spec.ipv6": ""})).says(&[&says("ipv6", "", CIDR)]),
        at(json!({"spec.ipv4": null, "spec.ipv6": null}))
            .says(&["spec: Required: Required value: at least one of ipv4 and ipv6"]),
        at(json!({"spec.ipv4": "10.0.0.0"})).says(&[&says("ipv4", "10.0.0.0", CIDR)]),
        at(json!({"spec.ipv4": "fd00::/112"})).says(&[&says(
            "ipv4",
            "fd00::/112",
            "must be an IPv4 CIDR",
        )]),
        at(json!({"spec.ipv6": "10.0.0.0/16"})).says(&[&says(
            "ipv6",
            "10.0.0.0/16",
            "must be an IPv6 CIDR",
        )]),
    ]
}

fn blocks() -> Vec<Row> {
    let at =
        |bits: Value| row("blocks-fit-their-range", range, json!({"spec.perNodeHostBits": bits}));
    let own = |bits: Value| row("blocks-fit-their-range", range, bits);
    let wide = |bits: u8, ipv6: &str| {
        row(
            "blocks-fit-their-range",
            range,
            json!({"spec.perNodeHostBits": bits, "spec.ipv6": ipv6, "spec.ipv4": null}),
        )
    };
    let says = |bits: i64, why: &str| {
        format!("spec.perNodeHostBits: Invalid: Invalid value: {bits}: {why}")
    };
    vec![
        at(json!(4)),
        at(json!(16)),
        wide(63, "fd00::/48"),
        at(json!(3)).says(&[&says(3, "must be between 4 and 124, inclusive")]),
        at(json!(125)).says(&[&says(125, "must be between 4 and 124, inclusive")]),
        at(json!(17)).says(&[
            &says(17, "must be less than or equal to 16 for 10.0.0.0/16"),
            &says(17, "must be less than or equal to 16 for fd00::/112"),
        ]),
        own(json!({"spec.perNodeHostBitsIPv4": 4, "spec.perNodeHostBitsIPv6": 16})),
        own(json!({"spec.perNodeHostBits": 64, "spec.perNodeHostBitsIPv4": 8, "spec.perNodeHostBitsIPv6": 16})),
        own(json!({"spec.perNodeHostBitsIPv4": 17})).says(&[
            "spec.perNodeHostBitsIPv4: Invalid: Invalid value: 17: must be less than or equal to 16 for 10.0.0.0/16",
        ]),
        own(json!({"spec.perNodeHostBitsIPv6": 17})).says(&[
            "spec.perNodeHostBitsIPv6: Invalid: Invalid value: 17: must be less than or equal to 16 for fd00::/112",
        ]),
        at(json!(null)).says(&["spec.perNodeHostBits: Required: Required value: the address bits inside of a block, such as 8"]),
    ]
}

fn selectors() -> Vec<Row> {
    let at =
        |selector: Value| row("selectors-select", range, json!({"spec.nodeSelector": selector}));
    let terms = |term: Value| at(json!({"nodeSelectorTerms": [term]}));
    let label = |requirement: Value| terms(json!({"matchExpressions": [requirement]}));
    let field = |requirement: Value| terms(json!({"matchFields": [requirement]}));
    let path =
        |of: &str, rest: &str| format!("spec.nodeSelector.nodeSelectorTerms[0].{of}[0].{rest}");
    let by_label = |rest: &str| path("matchExpressions", rest);
    let by_field = |rest: &str| path("matchFields", rest);
    let key_of = |key: String| label(json!({"key": key, "operator": "Exists"}));
    let odd_key = |key: &str| {
        by_label(&format!("key: Invalid: Invalid value: \"{key}\": must be the key of a label"))
    };
    vec![
        at(json!(null)),
        terms(json!({})),
        label(json!({"key": "a_b.C-d", "operator": "NotIn", "values": ["x", "y"]})),
        label(json!({"key": "example.com/a", "operator": "DoesNotExist"})),
        label(json!({"key": "a", "operator": "Gt", "values": ["-7"]})),
        field(json!({"key": "metadata.name", "operator": "In", "values": ["n"]})),
        at(json!({"nodeSelectorTerms": []})).says(&["spec.nodeSelector.nodeSelectorTerms: Required: Required value: must have at least one node selector term"]),
        label(json!({"key": "a", "operator": "In"})).says(&[&by_label("values: Required: Required value: must be specified when `operator` is 'In' or 'NotIn'")]),
        label(json!({"key": "a", "operator": "Exists", "values": ["x"]})).says(&[&by_label("values: Forbidden: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]),
        label(json!({"key": "a", "operator": "Lt", "values": ["1", "2"]})).says(&[&by_label("values: Required: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'")]),
        label(json!({"key": "a", "operator": "Gt", "values": ["many"]})).says(&[&by_label("values[0]: Invalid: Invalid value: \"many\": must be an integer when `operator` is 'Lt' or 'Gt'")]),
        label(json!({"key": "a", "operator": "Lt", "values": ["99999999999999999999"]})).says(&[&by_label("values[0]: Invalid: Invalid value: \"99999999999999999999\": must be an integer when `operator` is 'Lt' or 'Gt'")]),
        label(json!({"key": "a", "operator": "Like"})).says(&[&by_label("operator: NotSupported: Unsupported value: \"Like\": supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"")]),
        label(json!({"operator": "Exists"})).says(&[&by_label("key: Required: Required value: the key of a label")]),
        key_of("-a".to_owned()).says(&[&odd_key("-a")]),
        key_of("A.b/c".to_owned()).says(&[&odd_key("A.b/c")]),
        key_of("a/b/c".to_owned()).says(&[&odd_key("a/b/c")]),
        key_of("a".repeat(64)).says(&[&odd_key(&"a".repeat(64))]),
        field(json!({"key": "spec.unschedulable", "operator": "In", "values": ["n"]})).says(&[&by_field("key: NotSupported: Unsupported value: \"spec.unschedulable\": supported values: \"metadata.name\"")]),
        field(json!({"key": "metadata.name", "operator": "Exists"})).says(&[&by_field("operator: NotSupported: Unsupported value: \"Exists\": supported values: \"In\", \"NotIn\"")]),
        field(json!({"key": "metadata.name", "operator": "In", "values": ["a", "b"]})).says(&[&by_field("values: Required: Required value: must be only one value when `operator` is 'In' or 'NotIn'")]),
    ]
}

fn updates() -> Vec<Row> {
    let at = |edits: Value| row("ranges-stay", range, edits).was(json!({}));
    let says = |name: &str, shown: &str| {
        format!("spec.{name}: Invalid: Invalid value: {shown}: field is immutable")
    };
    vec![
        at(json!({"metadata.labels": {"a": "b"}})),
        at(json!({"spec.perNodeHostBits": 9})).says(&[&says("perNodeHostBits", "9")]),
        at(json!({"spec.perNodeHostBitsIPv4": 9})).says(&[&says("perNodeHostBitsIPv4", "9")]),
        at(json!({"spec.perNodeHostBitsIPv6": 9})).says(&[&says("perNodeHostBitsIPv6", "9")]),
        at(json!({"spec.ipv4": "10.1.0.0/16"})).says(&[&says("ipv4", "\"10.1.0.0/16\"")]),
        at(json!({"spec.ipv6": null})).says(&[&says("ipv6", "\"\"")]),
        at(json!({"spec.nodeSelector": null})).says(&[&says("nodeSelector", "\"\"")]),
    ]
}
