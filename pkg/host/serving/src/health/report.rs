//! The outcome of one health request, and its body to the byte (rule:health-bodies-are-stocks).

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::check::Check;
use super::endpoint::Endpoint;

/// What the checks of an endpoint said.
pub(crate) struct Report {
    endpoint: Endpoint,
    lines: String,
    failed: bool,
}

impl Report {
    pub(super) fn of(
        endpoint: Endpoint,
        checks: &[Arc<Check>],
        mut excluded: BTreeSet<String>,
    ) -> Self {
        let mut report = Self { endpoint, lines: String::new(), failed: false };
        for check in checks {
            let name = check.name();
            if excluded.remove(name) {
                report.line(format_args!("[+]{name} excluded: ok"));
            } else if check.run(endpoint).is_ok() {
                report.line(format_args!("[+]{name} ok"));
            } else {
                // rule:reasons-are-withheld
                report.line(format_args!("[-]{name} failed: reason withheld"));
                report.failed = true;
            }
        }
        if !excluded.is_empty() {
            let names: Vec<_> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            report.line(format_args!(
                "warn: some health checks cannot be excluded: no matches for {names}"
            ));
        }
        report
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// A failure always shows every line, a pass only when asked to be `verbose`.
    pub(crate) fn body(self, verbose: bool) -> String {
        let Self { endpoint, lines, failed } = self;
        let name = endpoint.name();
        match (failed, verbose) {
            (true, _) => format!("{lines}{name} check failed\n"),
            (false, true) => format!("{lines}{name} check passed\n"),
            (false, false) => "ok".to_owned(),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        writeln!(self.lines, "{line}").ok();
    }
}
