//! [`Report`]: what was found, for people and for programs.

use std::fmt;

use serde_json::{Value, json};

/// Area of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Flags,
    ApiServer,
    Rights,
    Crds,
    Leases,
    Stock,
    Allocators,
    Nodes,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Flags => "flags",
            Self::ApiServer => "api-server",
            Self::Rights => "rights",
            Self::Crds => "crds",
            Self::Leases => "leases",
            Self::Stock => "stock",
            Self::Allocators => "allocators",
            Self::Nodes => "nodes",
        })
    }
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// The program must not be started.
    Error,
    /// The program may be started; an operator may have to act.
    Warning,
    /// How things are.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "ok",
        })
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) check: Check,
    pub(super) message: String,
    /// Advice; may be empty.
    pub(super) advice: String,
}

/// All of it, in the order in which it was looked at.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn error(&mut self, check: Check, message: impl ToString, advice: impl ToString) {
        self.push(Severity::Error, check, message, advice);
    }

    pub(super) fn warn(&mut self, check: Check, message: impl ToString, advice: impl ToString) {
        self.push(Severity::Warning, check, message, advice);
    }

    pub(super) fn note(&mut self, check: Check, message: impl ToString) {
        self.push(Severity::Note, check, message, "");
    }

    pub(super) fn push(
        &mut self,
        severity: Severity,
        check: Check,
        message: impl ToString,
        advice: impl ToString,
    ) {
        let (message, advice) = (message.to_string(), advice.to_string());
        self.0.push(Finding { severity, check, message, advice });
    }

    /// Whether nothing speaks against a start.
    pub(super) fn is_safe(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|line| line.severity == severity).count()
    }

    /// A line for each, then the sum.
    pub(super) fn text(&self) -> String {
        let lines = self.0.iter().map(|line| {
            let Finding { severity, check, message, advice } = line;
            // Texts of the cluster may hold line ends.
            let said =
                if advice.is_empty() { message.clone() } else { format!("{message}; {advice}") };
            format!("{severity:7}  {check:10}  {}\n", kube_api::printable(&said))
        });
        let verdict = if self.is_safe() { "safe to start" } else { "not safe to start" };
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let sum = format!("{verdict}: {}, {}\n", many(errors, "error"), many(warnings, "warning"));
        lines.collect::<String>() + &sum
    }

    pub(super) fn json(&self) -> String {
        let findings = self.0.iter().map(|line| {
            let Finding { severity, check, message, advice } = line;
            json!({
                "severity": severity.to_string(), "check": check.to_string(),
                "message": message, "advice": advice,
            })
        });
        let findings: Vec<Value> = findings.collect();
        format!("{:#}\n", json!({"safe": self.is_safe(), "findings": findings}))
    }

    #[cfg(test)]
    pub(super) fn lines(&self) -> &[Finding] {
        &self.0
    }
}

fn many(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        report.note(Check::ApiServer, "the API server answers");
        report.warn(Check::Nodes, "one\nwaits", "");
        report
    }

    #[test]
    fn each_finding_is_one_line_and_the_last_one_is_the_sum() {
        let mut report = report();
        let safe = "ok       api-server  the API server answers\n\
                    warning  nodes       one?waits\n\
                    safe to start: no errors, 1 warning\n";
        assert_eq!(report.text(), safe);
        report.error(Check::Leases, "it is held", "choose another");
        report.error(Check::Rights, "none", "");
        let lines: Vec<_> = report.text().lines().skip(2).map(str::to_owned).collect();
        let expected = [
            "error    leases      it is held; choose another",
            "error    rights      none",
            "not safe to start: 2 errors, 1 warning",
        ];
        assert_eq!(lines, expected);
        assert!(!report.is_safe());
    }

    #[test]
    fn programs_read_the_same_as_json() {
        let expected = json!({"safe": true, "findings": [
            {"severity": "ok", "check": "api-server", "message": "the API server answers", "advice": ""},
            {"severity": "warning", "check": "nodes", "message": "one\nwaits", "advice": ""},
        ]});
        assert_eq!(serde_json::from_str::<Value>(&report().json()).unwrap(), expected);
    }
}
