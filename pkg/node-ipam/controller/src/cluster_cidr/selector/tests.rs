//! Tests of selectors against Nodes.

use serde_json::{Value, json};

use super::*;

fn marks(labels: &[(&str, &str)]) -> NodeMarks {
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    NodeMarks { labels, taints: Vec::new() }
}

/// Of `matchExpressions`, a list for each term.
fn selector(terms: &Value, combined: Terms) -> Result<Selector, SelectorError> {
    let terms: Vec<Value> =
        terms.as_array().unwrap().iter().map(|term| json!({"matchExpressions": term})).collect();
    let selector = json!({ "nodeSelectorTerms": terms });
    Selector::read(&serde_json::from_value(selector).unwrap(), combined)
}

fn one(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

#[test]
fn every_operator_shows_a_node_as_the_scheduler_does() {
    let node = marks(&[("zone", "one"), ("cores", "8"), ("empty", ""), ("plus", "+9")]);
    for (wanted, is_met) in [
        (one("zone", "In", &["two", "one"]), true),
        (one("zone", "In", &["two"]), false),
        (one("absent", "In", &["one"]), false),
        (one("zone", "NotIn", &["two"]), true),
        (one("zone", "NotIn", &["one", "two"]), false),
        (one("absent", "NotIn", &["one"]), true),
        (one("zone", "Exists", &[]), true),
        (one("empty", "Exists", &[]), true),
        (one("absent", "Exists", &[]), false),
        (one("absent", "DoesNotExist", &[]), true),
        (one("empty", "DoesNotExist", &[]), false),
        (one("cores", "Gt", &["7"]), true),
        (one("cores", "Gt", &["8"]), false),
        (one("plus", "Gt", &["8"]), true),
        (one("zone", "Gt", &["0"]), false),
        (one("absent", "Gt", &["-1"]), false),
        (one("cores", "Lt", &["9"]), true),
        (one("cores", "Lt", &["8"]), false),
        (one("absent", "Lt", &["9"]), false),
    ] {
        let selector = selector(&json!([[wanted]]), Terms::Or).unwrap();
        assert_eq!(selector.fits("n", &node), is_met.then_some(1), "{wanted}");
    }
}

#[test]
fn one_term_is_enough_and_within_it_everything_counts() {
    let both = json!([one("a", "Exists", &[]), one("b", "Exists", &[])]);
    let terms = json!([both, [one("c", "Exists", &[])], []]);
    let selects = selector(&terms, Terms::Or).unwrap();
    for (labels, requirements) in [
        (&[][..], None),
        (&["a"], None),
        (&["a", "b"], Some(2)),
        (&["c"], Some(1)),
        (&["a", "b", "c"], Some(3)),
    ] {
        let labels: Vec<_> = labels.iter().map(|key| (*key, "")).collect();
        assert_eq!(selects.fits("n", &marks(&labels)), requirements, "{labels:?}");
        let all = (labels.len() == 3).then_some(3);
        let as_upstream = selector(&terms, Terms::And).unwrap();
        assert_eq!(as_upstream.fits("n", &marks(&labels)), all, "all of them: {labels:?}");
    }
    let nothing = selector(&json!([[]]), Terms::Or).unwrap();
    assert_eq!(nothing.fits("n", &marks(&[])), None, "a term that asks for nothing");
}

#[test]
fn a_node_is_selected_by_its_name_and_as_upstream_does_by_a_label_of_that_key() {
    let wanted =
        json!({"nodeSelectorTerms": [{"matchFields": [one("metadata.name", "In", &["n1"])]}]});
    let wanted: NodeSelector = serde_json::from_value(wanted).unwrap();
    let by_name = Selector::read(&wanted, Terms::Or).unwrap();
    assert_eq!(by_name.fits("n1", &marks(&[])), Some(1));
    assert_eq!(by_name.fits("n2", &marks(&[("metadata.name", "n1")])), None);
    let by_label = Selector::read(&wanted, Terms::And).unwrap();
    assert_eq!(by_label.fits("n1", &marks(&[])), None);
    assert_eq!(by_label.fits("n2", &marks(&[("metadata.name", "n1")])), Some(1));
}

#[test]
fn the_text_has_all_requirements_by_key_in_the_syntax_of_label_selectors() {
    let terms = json!([
        [one("ipv6", "In", &["true"]), one("zone", "NotIn", &["b", "a"])],
        [one("ipv4", "In", &["true"]), one("cores", "Gt", &["7"]), one("memory", "Lt", &["9"])],
        [one("gpu", "Exists", &[]), one("arm", "DoesNotExist", &[])],
    ]);
    let text = "!arm,cores>7,gpu,ipv4 in (true),ipv6 in (true),memory<9,zone notin (a,b)";
    for combined in [Terms::Or, Terms::And] {
        assert_eq!(selector(&terms, combined).unwrap().text(), text);
    }
    let two = json!([[one("ipv6", "In", &["true"]), one("ipv4", "In", &["true"])]]);
    assert_eq!(selector(&two, Terms::Or).unwrap().text(), "ipv4 in (true),ipv6 in (true)");
}

#[test]
fn what_the_api_does_not_allow_is_refused_and_named() {
    for (wanted, said) in [
        (one("a", "In", &[]), "In of \"a\" needs values, but has 0"),
        (one("a", "NotIn", &[]), "NotIn of \"a\" needs values, but has 0"),
        (one("a", "Exists", &["x"]), "Exists of \"a\" needs no values, but has 1"),
        (one("a", "DoesNotExist", &["x"]), "DoesNotExist of \"a\" needs no values, but has 1"),
        (one("a", "Gt", &["1", "2"]), "Gt of \"a\" needs one whole number, but has 2"),
        (one("a", "Gt", &["x"]), "Gt of \"a\" needs one whole number"),
        (one("a", "Lt", &[]), "Lt of \"a\" needs one whole number, but has 0"),
        (one("a", "Near", &["x"]), "has the operator \"Near\"; use In, NotIn"),
        (one("a", "", &[]), "has the operator \"\""),
    ] {
        let error = selector(&json!([[wanted]]), Terms::Or).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let none = selector(&json!([]), Terms::Or).unwrap_err().to_string();
    assert!(none.contains("no terms"), "{none}");
    for field in [
        one("metadata.namespace", "In", &["x"]),
        one("metadata.name", "Exists", &[]),
        one("metadata.name", "In", &["x", "y"]),
        one("metadata.name", "In", &[]),
    ] {
        let wanted = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        let wanted: NodeSelector = serde_json::from_value(wanted).unwrap();
        let error = Selector::read(&wanted, Terms::Or).unwrap_err().to_string();
        assert!(error.contains("matchFields takes metadata.name with In or NotIn"), "{error}");
    }
}
