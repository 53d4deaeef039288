//! Log options and the gates they stand behind (`host.md` 1.3 logs, 1.4).

use pflag::{Problem, Values};

use crate::flags::gates::{self, LOGGING_ALPHA, LOGGING_BETA};

/// Options that stay closed without [`LOGGING_ALPHA`].
const ALPHA: [&str; 4] = [
    "log-text-split-stream",
    "log-text-info-buffer-size",
    "log-json-split-stream",
    "log-json-info-buffer-size",
];

pub(super) fn check(values: &Values, problems: &mut Vec<Problem>) {
    const FORMAT: &str = "logging-format";
    let format = values.string(FORMAT);
    match format {
        "text" => {}
        "json" if gates::enabled(values, LOGGING_BETA) => {}
        "json" => problems.push(gated(FORMAT, LOGGING_BETA)),
        other => problems.push(Problem::new(FORMAT, format!("{other:?} is neither text nor json"))),
    }
    if format == "json" && !values.string("vmodule").is_empty() {
        let rule = "works with --logging-format=text only; use --v instead";
        problems.push(Problem::new("vmodule", rule));
    }
    if !gates::enabled(values, LOGGING_ALPHA) {
        for flag in ALPHA {
            if values.get(flag).is_some_and(|value| !value.is_zero()) {
                problems.push(gated(flag, LOGGING_ALPHA));
            }
        }
    }
}

fn gated(flag: &str, gate: &str) -> Problem {
    Problem::new(flag, format!("needs the feature gate {gate}, which is off"))
}
