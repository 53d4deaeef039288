use super::*;
use crate::{Kind, Verdict};

const FLAGS: &[Spec] = &[
    Spec::honoured("g", "list", Kind::Strings, "x,y", "List."),
    Spec::honoured("g", "count", Kind::Int32, "3", "Count."),
    Spec::honoured("g", "wait", Kind::Duration, "1m", "Wait."),
    Spec::honoured("g", "ranges", Kind::CidrList, "", "Ranges."),
    Spec::honoured("g", "pairs", Kind::StringMap, "a=1", "Pairs."),
    Spec::honoured("g", "gates", Kind::FeatureGates, "", "Gates."),
    Spec::honoured("g", "certs", Kind::NamedCertKeys, "", "Certificates."),
    Spec::honoured("g", "odd", Kind::Bool, "true", "Odd.").with_verdict(Verdict::Accepted),
];

fn values(given: &[(&str, &str)]) -> Values {
    Values::from_given(FLAGS, given.iter().copied()).unwrap()
}

fn problem(given: &[(&str, &str)]) -> String {
    match Values::from_given(FLAGS, given.iter().copied()) {
        Ok(_) => panic!("{given:?} was accepted"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn a_flag_not_given_has_its_default() {
    let values = values(&[]);
    assert_eq!(values.strings("list"), ["x", "y"]);
    assert_eq!(values.int("count"), 3);
    assert_eq!(values.duration("wait"), Duration::from_secs(60));
    assert!(values.bool("odd"));
    assert_eq!(values.explicit().count(), 0);
}

#[test]
fn the_last_scalar_wins() {
    let values = values(&[("count", "4"), ("ranges", "a"), ("count", "5"), ("ranges", "b")]);
    assert_eq!(values.int("count"), 5);
    assert_eq!(values.string("ranges"), "b", "a CIDR list is one text");
}

#[test]
fn the_first_list_replaces_the_default_and_later_ones_append() {
    assert_eq!(values(&[("list", "a")]).strings("list"), ["a"]);
    assert_eq!(values(&[("list", "a"), ("list", "b,c")]).strings("list"), ["a", "b", "c"]);
    assert!(values(&[("list", "")]).strings("list").is_empty());
    assert_eq!(values(&[("list", ""), ("list", "a")]).strings("list"), ["a"]);
    assert_eq!(values(&[("certs", "a,b"), ("certs", "c,d")]).cert_keys("certs").len(), 2);
}

#[test]
fn the_first_map_replaces_the_default_and_later_keys_win() {
    let values = values(&[("pairs", "b=2"), ("pairs", "c=3,b=4")]);
    let pairs: Vec<String> = values.map("pairs").iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(pairs, ["b=4", "c=3"]);
}

#[test]
fn a_later_setting_of_a_feature_gate_wins() {
    let values = values(&[("gates", "A=true,B=true"), ("gates", "A=false")]);
    let gates: Vec<String> = values.gates("gates").iter().map(ToString::to_string).collect();
    assert_eq!(gates, ["A=false", "B=true"]);
}

#[test]
fn a_flag_given_with_its_default_is_explicit() {
    let values = values(&[("count", "3")]);
    assert!(values.is_set("count"));
    assert!(!values.is_set("list"));
    assert!(!values.is_set("nothing"));
    assert_eq!(values.explicit().map(|spec| spec.name).collect::<Vec<_>>(), ["count"]);
}

#[test]
fn effective_values_are_printed_for_every_flag_in_order_of_name() {
    let values = values(&[("list", "a,\"b,c\""), ("wait", "90s")]);
    let lines: Vec<String> = values.effective().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(
        lines,
        [
            "certs=[]",
            "count=3",
            "gates=",
            "list=[a,\"b,c\"]",
            "odd=true",
            "pairs=[a=1]",
            "ranges=",
            "wait=1m30s"
        ]
    );
}

#[test]
fn a_bad_value_names_its_flag_and_the_text() {
    assert_eq!(problem(&[("count", "x")]), "--count: invalid argument \"x\": not a whole number");
    assert_eq!(problem(&[("none", "x")]), "--none: unknown flag");
}

#[test]
#[should_panic(expected = "flag --none was read and is not declared")]
fn reading_an_undeclared_flag_is_a_bug() {
    values(&[]).bool("none");
}

#[test]
#[should_panic(expected = "flag --count was read as a text")]
fn reading_a_flag_as_another_type_is_a_bug() {
    values(&[]).string("count");
}
