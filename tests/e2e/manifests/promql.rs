//! The metrics that an expression of Prometheus reads.

use std::collections::BTreeSet;

/// Words after which a list of labels follows.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 6] = ["and", "or", "unless", "offset", "bool", "atan2"];

/// The names of the metrics in an expression whose strings have no escapes.
pub(crate) fn metrics_of(expression: &str) -> BTreeSet<&str> {
    let is_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let (mut found, mut rest) = (BTreeSet::new(), expression);
    while let Some(first) = rest.chars().next() {
        if is_of_a_word(first) {
            let end = rest.find(|c| !is_of_a_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after.trim_start();
            let is_function = ["(", "by ", "by(", "without ", "without("];
            let is_function = is_function.iter().any(|next| rest.starts_with(next));
            if BEFORE_LABELS.contains(&word) {
                rest = if rest.starts_with('(') { skip(rest, ')') } else { rest };
            } else if !is_function && !first.is_ascii_digit() && !OPERATORS.contains(&word) {
                found.insert(word);
            }
            continue;
        }
        rest = match first {
            '"' => skip(&rest[1..], '"'),
            '{' => skip_selector(&rest[1..]),
            '[' => skip(rest, ']'),
            _ => &rest[first.len_utf8()..],
        };
    }
    found
}

/// What follows the first `end`.
fn skip(text: &str, end: char) -> &str {
    text.split_once(end).map_or_else(|| panic!("no {end} in {text}"), |(_, after)| after)
}

/// What follows the brace that closes a list of matchers, whose strings may contain braces.
fn skip_selector(mut text: &str) -> &str {
    loop {
        let at = text.find(['"', '}']).unwrap_or_else(|| panic!("no end in {text}"));
        if text[at..].starts_with('}') {
            return &text[at + 1..];
        }
        text = skip(&text[at + 1..], '"');
    }
}

#[test]
fn the_metrics_of_an_expression_are_found_among_labels_functions_and_operators() {
    let expression = r#"sum by (job, le) (rate(a_bucket{code=~"5.{2}", x="up"}[5m] offset 2d))
        / on (job) group_left () max by(job)(b:c:ratio5m) > bool 1e3
        and (time() - d < 1800) or label_replace(e, "f", "$1", "g", "(.*)") unless on () h == 1"#;
    let expected = ["a_bucket", "b:c:ratio5m", "d", "e", "h"];
    assert_eq!(metrics_of(expression), BTreeSet::from(expected));
}
