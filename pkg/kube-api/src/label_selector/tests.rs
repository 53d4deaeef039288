//! The syntax of kubectl, and a naive model of the meaning.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn selects(text: &str, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    let selector = LabelSelector::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    selector.selects(|key| labels.get(key).copied())
}

#[test]
fn each_operator_selects_what_it_selects_for_kubectl() {
    let labels = [("tier", "web"), ("example.org/cores", "16"), ("empty", "")];
    for (text, is_selected) in [
        ("", true),
        ("  ", true),
        ("tier", true),
        ("!tier", false),
        ("! other", true),
        ("tier=web", true),
        ("tier == web", true),
        ("tier=db", false),
        ("tier!=web", false),
        ("other!=web", true),
        ("tier in (db, web)", true),
        ("tier in(db)", false),
        ("tier notin (db,web)", false),
        ("other notin (db)", true),
        ("empty=", true),
        ("empty in ()", true),
        ("tier in (db,)", false),
        ("tier=,empty", false),
        ("example.org/cores>15", true),
        ("example.org/cores > 16", false),
        ("example.org/cores<17", true),
        ("tier>1", false),
        ("other<1", false),
        ("tier=web,example.org/cores>8,!spot", true),
        ("tier=web,spot", false),
        ("in in (a)", false),
        ("notin", false),
    ] {
        assert_eq!(selects(text, &labels), is_selected, "{text:?}");
    }
}

#[test]
fn what_kubectl_refuses_is_refused_with_the_reason() {
    let long = "a".repeat(64);
    for (text, why) in [
        ("tier,", "found the end, expected a label key, or ! and a label key"),
        (",tier", "found \",\", expected a label key, or ! and a label key"),
        ("tier web", "found \"web\", expected one of = == != in notin > < or a comma"),
        ("!tier=web", "found \"=\", expected a comma or the end"),
        ("tier=web db", "found \"db\", expected a comma or the end"),
        ("tier in web", "found \"web\", expected an opening parenthesis"),
        ("tier in (web", "found the end, expected a comma or a closing parenthesis"),
        ("tier===web", "found \"=\", expected a label value"),
        ("tier=(web)", "found \"(\", expected a label value"),
        ("tier>many", "\"many\" is not a whole number"),
        ("tier>", "\"\" is not a whole number"),
        ("-tier", "\"-tier\" is not a valid label key"),
        ("Example.org/tier", "\"Example.org/tier\" is not a valid label key"),
        ("a/b/c", "\"a/b/c\" is not a valid label key"),
        ("/tier", "\"/tier\" is not a valid label key"),
        ("tier=web-", "\"web-\" is not a valid label value"),
        ("tier=w\u{e4}b", "\"w\u{e4}b\" is not a valid label value"),
        (&format!("tier={long}"), &format!("\"{long}\" is not a valid label value")),
    ] {
        assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), *why, "{text:?}");
    }
}

/// A requirement as text, and what it means in the naive model.
fn requirement() -> impl Strategy<Value = (String, LabelTest, &'static str)> {
    let key = prop::sample::select(vec!["a", "b", "example.org/c"]);
    let value = || prop::sample::select(vec!["", "x", "y", "7"]);
    let test = prop_oneof![
        Just(LabelTest::Exists),
        Just(LabelTest::DoesNotExist),
        prop::collection::vec(value(), 1..3)
            .prop_map(|all| LabelTest::In(all.into_iter().map(Into::into).collect())),
        prop::collection::vec(value(), 1..3)
            .prop_map(|all| LabelTest::NotIn(all.into_iter().map(Into::into).collect())),
        (0..9_i64).prop_map(LabelTest::Greater),
        (0..9_i64).prop_map(LabelTest::Less),
    ];
    (key, test).prop_map(|(key, test)| {
        let text = match &test {
            LabelTest::Exists => key.to_owned(),
            LabelTest::DoesNotExist => format!("!{key}"),
            LabelTest::In(values) => format!("{key} in ({})", values.join(",")),
            LabelTest::NotIn(values) => format!("{key} notin ({})", values.join(",")),
            LabelTest::Greater(than) => format!("{key}>{than}"),
            LabelTest::Less(than) => format!("{key}<{than}"),
        };
        (text, test, key)
    })
}

proptest! {
    #[test]
    fn an_object_is_selected_when_it_fulfils_every_requirement(
        wanted in prop::collection::vec(requirement(), 0..4),
        labels in prop::collection::btree_map(
            prop::sample::select(vec!["a", "b", "example.org/c"]),
            prop::sample::select(vec!["", "x", "y", "7"]),
            0..4,
        ),
    ) {
        let texts: Vec<&str> = wanted.iter().map(|(text, ..)| text.as_str()).collect();
        let labels: Vec<_> = labels.into_iter().collect();
        let mut fulfilled = true;
        for (_, test, key) in &wanted {
            let value = labels.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
            fulfilled &= match (test, value) {
                (LabelTest::Exists, value) => value.is_some(),
                (LabelTest::DoesNotExist, value) => value.is_none(),
                (LabelTest::In(all), Some(value)) => all.contains(&value.into()),
                (LabelTest::NotIn(all), Some(value)) => !all.contains(&value.into()),
                (LabelTest::NotIn(_), None) => true,
                (LabelTest::Greater(than), Some("7")) => 7 > *than,
                (LabelTest::Less(than), Some("7")) => 7 < *than,
                _ => false,
            };
        }
        prop_assert_eq!(selects(&texts.join(" , "), &labels), fulfilled);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9=!(),<> ./\u{e4}-]{0,24}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
