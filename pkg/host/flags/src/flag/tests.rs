use super::*;
use std::time::Duration;

use crate::{FlagSupport, GateSetting, GoDuration, Kind};

const LIST: Flag<Vec<String>> = Flag::strings("g", "list", "x,y", "List.");
const COUNT: Flag<i64> = Flag::int32("g", "count", "3", "Count.");
const WAIT: Flag<GoDuration> = Flag::duration("g", "wait", "1m", "Wait.");
const RANGES: Flag<String> = Flag::cidr_list("g", "ranges", "", "Ranges.");
const GATES: Flag<Vec<GateSetting>> = Flag::feature_gates("g", "gates", "", "Gates.");
const LEVELS: Flag<Vec<(String, u8)>> = Flag::vmodule("g", "levels", "", "Levels.");
const ODD: Flag<bool> = Flag::bool("g", "odd", "true", "Odd.").with_support(FlagSupport::Accepted);

const FLAGS: &[Spec] = &[
    LIST.spec(),
    COUNT.spec(),
    WAIT.spec(),
    RANGES.spec(),
    Spec::honoured("g", "pairs", Kind::StringMap, "a=1", "Pairs."),
    GATES.spec(),
    LEVELS.spec(),
    Spec::honoured("g", "certs", Kind::NamedCertKeys, "", "Certificates."),
    ODD.spec(),
];

fn values(given: &[(&str, &str)]) -> Values {
    Values::from_given(FLAGS, given.iter().copied()).unwrap()
}

fn shown(values: &Values, name: &str) -> String {
    values.effective().find(|(known, _)| *known == name).unwrap().1
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
    assert_eq!(values.get(&LIST), ["x", "y"]);
    assert_eq!(values.get(&COUNT), 3);
    assert_eq!(values.get(&WAIT).to_std(), Duration::from_secs(60));
    assert!(values.get(&ODD));
    assert_eq!(values.explicit().count(), 0);
}

#[test]
fn the_last_scalar_wins() {
    let values = values(&[("count", "4"), ("ranges", "a"), ("count", "5"), ("ranges", "b")]);
    assert_eq!(values.get(&COUNT), 5);
    assert_eq!(values.get(&RANGES), "b", "a CIDR list is one text");
}

#[test]
fn the_first_list_replaces_the_default_and_later_ones_append() {
    assert_eq!(values(&[("list", "a")]).get(&LIST), ["a"]);
    assert_eq!(values(&[("list", "a"), ("list", "b,c")]).get(&LIST), ["a", "b", "c"]);
    assert!(values(&[("list", "")]).get(&LIST).is_empty());
    assert_eq!(values(&[("list", ""), ("list", "a")]).get(&LIST), ["a"]);
    let certs = shown(&values(&[("certs", "a,b"), ("certs", "c,d")]), "certs");
    assert_eq!(certs, "[a,b;c,d]");
}

#[test]
fn the_first_map_replaces_the_default_and_later_keys_win() {
    let values = values(&[("pairs", "b=2"), ("pairs", "c=3,b=4")]);
    assert_eq!(shown(&values, "pairs"), "[b=4,c=3]");
}

#[test]
fn a_later_setting_of_a_feature_gate_wins() {
    let values = values(&[("gates", "A=true,B=true"), ("gates", "A=false")]);
    let gates: Vec<String> = values.get(&GATES).iter().map(ToString::to_string).collect();
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
            "levels=",
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
fn a_flag_that_stands_in_no_table_has_its_default() {
    const FORGOTTEN: Flag<i64> = Flag::int32("g", "forgotten", "7", "Forgotten.");
    assert_eq!(values(&[]).get(&FORGOTTEN), 7);
}

#[test]
fn levels_by_file_are_read_as_pairs() {
    let values = values(&[("levels", "server=3,cache*=5")]);
    assert_eq!(values.get(&LEVELS), [("server".to_owned(), 3), ("cache*".to_owned(), 5)]);
    assert_eq!(shown(&values, "levels"), "server=3,cache*=5");
}
