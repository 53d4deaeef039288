//! Log options and the gates they stand behind.

use flags::{Flag, Problem, Values};

use crate::flags::gates::{self, LOGGING_ALPHA, LOGGING_BETA};
use crate::flags::table::observing::{
    LOG_JSON_INFO_BUFFER_SIZE, LOG_JSON_SPLIT_STREAM, LOG_TEXT_INFO_BUFFER_SIZE,
    LOG_TEXT_SPLIT_STREAM, LOGGING_FORMAT, VMODULE,
};

pub(super) fn check(values: &Values, problems: &mut Vec<Problem>) {
    let format = values.get(&LOGGING_FORMAT);
    match format.as_str() {
        "text" => {}
        "json" if gates::enabled(values, LOGGING_BETA) => {}
        "json" => problems.push(gated(&LOGGING_FORMAT, LOGGING_BETA)),
        other => {
            problems.push(LOGGING_FORMAT.problem(format!("{other:?} is neither text nor json")));
        }
    }
    if format == "json" && !values.get(&VMODULE).is_empty() {
        let rule = "works with --logging-format=text only; use --v instead";
        problems.push(VMODULE.problem(rule));
    }
    if !gates::enabled(values, LOGGING_ALPHA) {
        alpha(values, problems);
    }
}

/// Options that stay closed without [`LOGGING_ALPHA`].
fn alpha(values: &Values, problems: &mut Vec<Problem>) {
    let splits = [LOG_TEXT_SPLIT_STREAM, LOG_JSON_SPLIT_STREAM];
    let set = splits.iter().filter(|flag| values.get(*flag));
    problems.extend(set.map(|flag| gated(flag, LOGGING_ALPHA)));
    let sizes = [LOG_TEXT_INFO_BUFFER_SIZE, LOG_JSON_INFO_BUFFER_SIZE];
    let set = sizes.iter().filter(|flag| values.get(*flag) != 0);
    problems.extend(set.map(|flag| gated(flag, LOGGING_ALPHA)));
}

fn gated<T>(flag: &Flag<T>, gate: &str) -> Problem {
    flag.problem(format!("needs the feature gate {gate}, which is off"))
}
